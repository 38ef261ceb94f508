# Mimalloc.cmake: the allocator below ours, as source. Gives TA_MIMALLOC_DIR (as released), TA_MIMALLOC_PATCHED_DIR (with
# what is ours) and the INTERFACE target mimalloc_source
# (include folders and definitions) for the one file in alloc/ that compiles mimalloc's src/static.c.
# Why this version, and why from source: docs/decisions/0001-mimalloc-from-source.md.
include(Fetch)
set(TA_MIMALLOC_VERSION 3.4.1)
set(TA_MIMALLOC_VERSION_NUMBER 30401)

if(TRACEALLOC_MIMALLOC_SOURCE)
    set(TA_MIMALLOC_DIR "${TRACEALLOC_MIMALLOC_SOURCE}")
    ta_check_hashes(trouble "${TA_MIMALLOC_DIR}" "${PROJECT_SOURCE_DIR}/cmake/mimalloc-${TA_MIMALLOC_VERSION}.sha256")
    if(NOT trouble STREQUAL "")
        message(WARNING "TRACEALLOC_MIMALLOC_SOURCE is not mimalloc ${TA_MIMALLOC_VERSION} as released: ${trouble}")
    endif()
else()
    ta_fetch(NAME mimalloc VERSION ${TA_MIMALLOC_VERSION}
        URL "https://github.com/microsoft/mimalloc/archive/refs/tags/v${TA_MIMALLOC_VERSION}.tar.gz"
        PACKAGE emscripten SUITES forky sid PACKAGE_PATH usr/share/emscripten/system/lib/mimalloc)
    set(TA_MIMALLOC_DIR "${TRACEALLOC_DEPS_DIR}/mimalloc-${TA_MIMALLOC_VERSION}")
    # alloc.c includes this one. Without MI_MALLOC_OVERRIDE it holds nothing, and it is the one file in which Debian's
    # copy departs from the release; so neither copy is used.
    file(CONFIGURE OUTPUT "${TA_MIMALLOC_DIR}/src/alloc-override.c" CONTENT
        "/* Left empty on purpose: tracealloc defines malloc and its relatives itself. */\n")
endif()

# A copy with what is ours: heaps whose blocks have headers (cmake/mimalloc-3.4.1.patch says what and why).
set(patch "${PROJECT_SOURCE_DIR}/cmake/mimalloc-${TA_MIMALLOC_VERSION}.patch")
set(TA_MIMALLOC_PATCHED_DIR "${PROJECT_BINARY_DIR}/mimalloc-${TA_MIMALLOC_VERSION}")
set(hashes "")
file(GLOB_RECURSE files "${TA_MIMALLOC_DIR}/include/*.h" "${TA_MIMALLOC_DIR}/src/*.[ch]")
foreach(file IN ITEMS ${files} ${patch})
    file(SHA256 "${file}" hash)
    string(APPEND hashes ${hash})
endforeach()
string(SHA256 stamp "${hashes}")
if(NOT EXISTS "${TA_MIMALLOC_PATCHED_DIR}/made-of-${stamp}")
    find_program(TRACEALLOC_PATCH patch REQUIRED)
    file(REMOVE_RECURSE "${TA_MIMALLOC_PATCHED_DIR}")
    file(COPY "${TA_MIMALLOC_DIR}/" DESTINATION "${TA_MIMALLOC_PATCHED_DIR}")
    execute_process(COMMAND "${TRACEALLOC_PATCH}" --silent --strip=1 --input=${patch} WORKING_DIRECTORY "${TA_MIMALLOC_PATCHED_DIR}"
        RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "the changes to mimalloc in ${patch} do not fit ${TA_MIMALLOC_DIR}:\n${said}")
    endif()
    file(TOUCH "${TA_MIMALLOC_PATCHED_DIR}/made-of-${stamp}")
endif()
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${patch}")

# The version that the header states, whoever gave the tree.
set(header "${TA_MIMALLOC_DIR}/include/mimalloc.h")
if(NOT EXISTS "${header}" OR NOT EXISTS "${TA_MIMALLOC_DIR}/src/static.c")
    message(FATAL_ERROR "no mimalloc source (include/mimalloc.h, src/static.c) in ${TA_MIMALLOC_DIR}")
endif()
file(STRINGS "${header}" line REGEX "^#define +MI_MALLOC_VERSION +[0-9]+")
string(REGEX MATCH "VERSION +([0-9]+)" matched "${line}")
if(NOT CMAKE_MATCH_1 EQUAL TA_MIMALLOC_VERSION_NUMBER)
    message(FATAL_ERROR "${header} says version '${CMAKE_MATCH_1}'; this library needs ${TA_MIMALLOC_VERSION_NUMBER}")
endif()

add_library(mimalloc_source INTERFACE)
target_include_directories(mimalloc_source SYSTEM INTERFACE "${TA_MIMALLOC_PATCHED_DIR}/include" "${TA_MIMALLOC_PATCHED_DIR}/src")
target_compile_definitions(mimalloc_source INTERFACE
    MI_DEBUG=0                 # in every build: its padding and encoded lists are not what alloc/heap.h knows
    MI_NO_THP                  # else a heap per thread and domain costs twenty times the memory
    MI_VISIT_ABANDONED=1       # else very large blocks are not seen by walks and outlive their heap
    MI_SKIP_COLLECT_ON_EXIT=1) # memory is still in use when the process ends
