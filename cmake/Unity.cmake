# Unity.cmake: the test framework (ThrowTheSwitch), as source. Gives the library `unity`.
include(Fetch)
set(TA_UNITY_VERSION 2.5.4)

if(TRACEALLOC_UNITY_SOURCE)
    set(TA_UNITY_DIR "${TRACEALLOC_UNITY_SOURCE}")
    if(NOT EXISTS "${TA_UNITY_DIR}/unity.c")
        message(FATAL_ERROR "no unity.c in ${TA_UNITY_DIR} (TRACEALLOC_UNITY_SOURCE)")
    endif()
else()
    ta_fetch(NAME unity VERSION ${TA_UNITY_VERSION} PACKAGE cmock SUITES trixie forky sid
        PACKAGE_PATH usr/share/cmock/vendor/unity/src)
    set(TA_UNITY_DIR "${TRACEALLOC_DEPS_DIR}/unity-${TA_UNITY_VERSION}")
endif()

add_library(unity STATIC "${TA_UNITY_DIR}/unity.c")
target_include_directories(unity SYSTEM PUBLIC "${TA_UNITY_DIR}")
target_compile_definitions(unity PUBLIC UNITY_SUPPORT_64 UNITY_INCLUDE_DOUBLE)
target_link_libraries(unity PRIVATE ta_sanitizers)
