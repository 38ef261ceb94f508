# TraceallocTest.cmake: what a test is, and what a benchmark is.
#
#   ta_add_test(NAME name LABEL label… SOURCES file… [LIBS name…] [ENV VAR=value…] [ARGS arg…] [OPTIONS flag…]
#               [TIMEOUT seconds] [NO_UNITY])
#       an executable with Unity, linked with the modules in LIBS and all they stand on: hidden names are within
#       reach.
#   ta_add_script_test(NAME name LABEL label… COMMAND command… [ENV VAR=value…] [TIMEOUT seconds] [NEEDS target…])
#       a command; it is skipped, not failed, when it ends with 77 (something it needs is not on this machine).
#   ta_add_benchmark(NAME name SOURCES file… [LIBS name…])
#       an executable bench/name that is built only when asked for; no test.
#
# The labels say when a test runs (docs/testing.md). `ta_tests_LABEL` builds the executables of one label.
set(TA_TEST_LABELS unit integration conformance cli golden fuzz-replay threads long)
foreach(label IN LISTS TA_TEST_LABELS)
    add_custom_target(ta_tests_${label})
endforeach()

function(ta_register_test name labels timeout env)
    foreach(label IN LISTS labels)
        if(NOT label IN_LIST TA_TEST_LABELS)
            message(FATAL_ERROR "test ${name}: unknown label '${label}'; known are ${TA_TEST_LABELS}")
        endif()
    endforeach()
    if(NOT labels)
        message(FATAL_ERROR "test ${name}: needs a LABEL")
    endif()
    if(NOT timeout) # ends what hangs; how slow a machine is decides nothing
        set(timeout 600)
        if("long" IN_LIST labels)
            set(timeout 3600)
        endif()
    endif()
    set(environment ${env})
    if(TRACEALLOC_SANITIZE)
        list(APPEND environment "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1")
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77
        ENVIRONMENT "${environment}")
endfunction()

# What an executable of tests and of benchmarks has in common: made of `sources`, linked with the modules that `libs`
# names and all they stand on, put into the build's folder of that name.
function(ta_add_helper_program name folder sources libs)
    add_executable(${name} ${sources})
    ta_split_libs(modules others ${libs})
    ta_modules_closure(modules ${modules})
    list(TRANSFORM modules PREPEND ta_)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_link_libraries(${name} PRIVATE ${modules} ${others}
        ta_warnings_test ta_sanitizers ta_lto_none Threads::Threads)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/${folder}")
endfunction()

function(ta_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "NO_UNITY" "NAME;TIMEOUT" "LABEL;SOURCES;LIBS;ENV;ARGS;OPTIONS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
        message(FATAL_ERROR "ta_add_test(${arg_NAME}): needs NAME and SOURCES and knows no '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    ta_add_helper_program(${arg_NAME} tests "${arg_SOURCES}" "${arg_LIBS}")
    # What a sanitizer's build optimises is the product: a test is compiled in a fifth of the time without.
    target_compile_options(${arg_NAME} PRIVATE $<$<CONFIG:Debug>:-O0> ${arg_OPTIONS})
    if(NOT arg_NO_UNITY)
        target_link_libraries(${arg_NAME} PRIVATE unity)
    endif()
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS})
    ta_register_test(${arg_NAME} "${arg_LABEL}" "${arg_TIMEOUT}" "${arg_ENV}")
    set_property(GLOBAL APPEND PROPERTY TA_TEST_TARGETS "${arg_NAME} ${arg_NAME}")
    foreach(label IN LISTS arg_LABEL)
        add_dependencies(ta_tests_${label} ${arg_NAME})
    endforeach()
endfunction()

function(ta_add_script_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TIMEOUT" "LABEL;COMMAND;ENV;NEEDS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_COMMAND)
        message(FATAL_ERROR "ta_add_script_test(${arg_NAME}): needs NAME and COMMAND and knows no"
            " '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    add_test(NAME ${arg_NAME} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    ta_register_test(${arg_NAME} "${arg_LABEL}" "${arg_TIMEOUT}" "${arg_ENV}")
    string(REPLACE ";" " " needs "${arg_NAME};${arg_NEEDS}")
    set_property(GLOBAL APPEND PROPERTY TA_TEST_TARGETS "${needs}")
    foreach(label IN LISTS arg_LABEL)
        foreach(target IN LISTS arg_NEEDS)
            add_dependencies(ta_tests_${label} ${target})
        endforeach()
    endforeach()
endfunction()

function(ta_add_benchmark)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;LIBS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
        message(FATAL_ERROR "ta_add_benchmark(${arg_NAME}): needs NAME and SOURCES and knows no"
            " '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    ta_add_helper_program(${arg_NAME} bench "${arg_SOURCES}" "${arg_LIBS}")
    set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()
