# TraceallocTest.cmake: what a test is.
#
#   ta_add_test(NAME name LABEL label… SOURCES file… [LIBS name…] [ENV VAR=value…] [ARGS arg…] [OPTIONS flag…]
#               [TIMEOUT seconds] [NO_UNITY])
#       an executable with Unity, linked with the modules in LIBS and all they stand on: hidden names are within
#       reach.
#   ta_add_script_test(NAME name LABEL label… COMMAND command… [ENV VAR=value…] [TIMEOUT seconds] [NEEDS target…])
#       a command; it is skipped, not failed, when it ends with 77 (something it needs is not on this machine).
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
    if(NOT timeout)
        set(timeout 120)
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

function(ta_add_test)
    cmake_parse_arguments(PARSE_ARGV 0 arg "NO_UNITY" "NAME;TIMEOUT" "LABEL;SOURCES;LIBS;ENV;ARGS;OPTIONS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_NAME OR NOT arg_SOURCES)
        message(FATAL_ERROR "ta_add_test(${arg_NAME}): needs NAME and SOURCES and knows no '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    add_executable(${arg_NAME} ${arg_SOURCES})
    ta_split_libs(modules others ${arg_LIBS})
    ta_modules_closure(modules ${modules})
    list(TRANSFORM modules PREPEND ta_)
    target_include_directories(${arg_NAME} PRIVATE
        "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    target_compile_definitions(${arg_NAME} PRIVATE _GNU_SOURCE)
    target_compile_options(${arg_NAME} PRIVATE ${arg_OPTIONS})
    target_link_libraries(${arg_NAME} PRIVATE ${modules} ${others}
        ta_warnings_test ta_sanitizers ta_lto_none Threads::Threads)
    if(NOT arg_NO_UNITY)
        target_link_libraries(${arg_NAME} PRIVATE unity)
    endif()
    set_target_properties(${arg_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    add_test(NAME ${arg_NAME} COMMAND ${arg_NAME} ${arg_ARGS})
    ta_register_test(${arg_NAME} "${arg_LABEL}" "${arg_TIMEOUT}" "${arg_ENV}")
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
    foreach(label IN LISTS arg_LABEL)
        foreach(target IN LISTS arg_NEEDS)
            add_dependencies(ta_tests_${label} ${target})
        endforeach()
    endforeach()
endfunction()
