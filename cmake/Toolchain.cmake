# Toolchain.cmake: language level, warnings, hardening, sanitizers and LTO, each an INTERFACE target. No global flags.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release or Debug" FORCE)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g -DNDEBUG")
set(CMAKE_C_FLAGS_DEBUG "-g3") # the presets of the sanitizers add -O1
set(CMAKE_CXX_FLAGS_DEBUG "-g3")

find_package(Threads REQUIRED)

# Warnings: for the modules the whole set, for tests the same without the conversions.
add_library(ta_warnings_test INTERFACE)
target_compile_options(ta_warnings_test INTERFACE -Wall -Wextra -Wshadow -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<BOOL:${TRACEALLOC_WERROR}>:-Werror>)
add_library(ta_warnings INTERFACE)
target_link_libraries(ta_warnings INTERFACE ta_warnings_test)
target_compile_options(ta_warnings INTERFACE -Wconversion $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)

# Invariants: which are checked. For all that includes base/assert.h, tests too.
if(NOT TRACEALLOC_CHECKS STREQUAL "")
    add_compile_definitions(TA_CHECKS=${TRACEALLOC_CHECKS})
elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_definitions(TA_CHECKS=1)
endif()

# Sanitizers: nothing unless asked for.
add_library(ta_sanitizers INTERFACE)
set(TA_PLAIN_BUILD 1)
if(TRACEALLOC_SANITIZE)
    set(TA_PLAIN_BUILD 0)
    target_compile_options(ta_sanitizers INTERFACE -fsanitize=${TRACEALLOC_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    target_link_options(ta_sanitizers INTERFACE -fsanitize=${TRACEALLOC_SANITIZE})
    if(TRACEALLOC_SANITIZE STREQUAL "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # It cannot follow fences and says so of each; what they order is for the other builds to prove.
        target_compile_options(ta_sanitizers INTERFACE -Wno-tsan)
    endif()
endif()

# Hardening. Hot modules (alloc, trace) go without the checks that cost instructions in every call; links are always
# hard.
set(ta_optimised $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_library(ta_hardening INTERFACE)
target_compile_options(ta_hardening INTERFACE -fstack-protector-strong -fstack-clash-protection
    $<$<AND:${ta_optimised},${TA_PLAIN_BUILD}>:-U_FORTIFY_SOURCE>
    $<$<AND:${ta_optimised},${TA_PLAIN_BUILD}>:-D_FORTIFY_SOURCE=2>)
add_library(ta_hardening_hot INTERFACE)
target_compile_options(ta_hardening_hot INTERFACE -fno-stack-protector -U_FORTIFY_SOURCE)
add_library(ta_hardening_link INTERFACE)
target_link_options(ta_hardening_link INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack LINKER:--as-needed)

# LTO: fat objects, so that the products are optimised as a whole while tests link the machine code at once.
set(TA_LTO OFF)
if(TRACEALLOC_LTO AND TA_PLAIN_BUILD AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set(TA_LTO ON)
endif()
add_library(ta_lto_compile INTERFACE)
add_library(ta_lto_link INTERFACE)
add_library(ta_lto_none INTERFACE)
if(TA_LTO)
    target_compile_options(ta_lto_compile INTERFACE -flto=auto -ffat-lto-objects)
    target_link_options(ta_lto_link INTERFACE -flto=auto)
    target_link_options(ta_lto_none INTERFACE -fno-lto)
endif()
