# TraceallocModule.cmake: what a module is.
#
#   ta_add_module(NAME SOURCES file… [LIBS name…] [OPTIONS flag…] [HOT])
#
# makes the OBJECT library ta_NAME: position independent, hidden visibility, all warnings. LIBS names other modules
# (they must have been added before), a name of Libraries.cmake, or any CMake library. HOT leaves out the hardening
# that costs instructions in every call.

# The modules that NAMEs stand on, themselves included; modules that do not exist are left out.
function(ta_modules_closure out)
    set(todo ${ARGN})
    set(seen)
    while(todo)
        list(POP_FRONT todo name)
        if(TARGET ta_${name} AND NOT name IN_LIST seen)
            list(APPEND seen ${name})
            get_target_property(more ta_${name} TA_MODULES)
            list(APPEND todo ${more})
        endif()
    endwhile()
    set(${out} ${seen} PARENT_SCOPE)
endfunction()

# Splits names into modules of ours and other libraries.
function(ta_split_libs modules_out others_out)
    set(modules)
    set(others)
    foreach(name IN LISTS ARGN)
        string(REGEX REPLACE "^ta_" "" bare ${name})
        get_property(is_module GLOBAL PROPERTY TA_IS_MODULE_${bare})
        if(is_module)
            list(APPEND modules ${bare})
        else()
            list(APPEND others ${name})
        endif()
    endforeach()
    set(${modules_out} ${modules} PARENT_SCOPE)
    set(${others_out} ${others} PARENT_SCOPE)
endfunction()

function(ta_add_module name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "HOT" "" "SOURCES;LIBS;OPTIONS")
    if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
        message(FATAL_ERROR "ta_add_module(${name}): needs SOURCES and knows no '${arg_UNPARSED_ARGUMENTS}'")
    endif()
    set(target ta_${name})
    add_library(${target} OBJECT ${arg_SOURCES})
    set_property(GLOBAL PROPERTY TA_IS_MODULE_${name} ON)
    ta_split_libs(modules others ${arg_LIBS})
    ta_check_libraries("module ${name}" ${others})
    set_target_properties(${target} PROPERTIES
        POSITION_INDEPENDENT_CODE ON
        C_VISIBILITY_PRESET hidden
        CXX_VISIBILITY_PRESET hidden
        VISIBILITY_INLINES_HIDDEN ON
        TA_MODULES "${modules}"
        TA_LIBRARIES "${others}")
    target_include_directories(${target} PUBLIC
        "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include")
    target_compile_definitions(${target} PUBLIC
        _GNU_SOURCE TRACEALLOC_TRACING=$<BOOL:${TRACEALLOC_TRACING}> TRACEALLOC_OVERRIDE=$<BOOL:${TRACEALLOC_OVERRIDE}>)
    target_compile_options(${target} PRIVATE -ftls-model=initial-exec
        "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=" ${arg_OPTIONS})
    target_link_libraries(${target} PUBLIC Threads::Threads ta_sanitizers ${others}
        PRIVATE ta_warnings ta_lto_compile $<IF:$<BOOL:${arg_HOT}>,ta_hardening_hot,ta_hardening>)
endfunction()
