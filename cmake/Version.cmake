# Version.cmake: the version lives in project(); this hands it to C and C++ as <tracealloc/version.h>.
set(TA_GENERATED_INCLUDE "${PROJECT_BINARY_DIR}/include")
configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in" "${TA_GENERATED_INCLUDE}/tracealloc/version.h" @ONLY)
