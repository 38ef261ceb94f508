# tracealloc_replace_allocator(TARGET [SHARED | STATIC])
#
# The program or library is linked with tracealloc such that malloc, new and their relatives are tracealloc's, whether or
# not its own code calls them: the library comes first, and stays although the linker may think that nobody needs it.
# SHARED (unless STATIC is given): libtracealloc.so. STATIC: the archive becomes part of the target; not for libraries
# that programs load, because a process has one malloc.
include_guard(GLOBAL)

function(tracealloc_replace_allocator target)
    cmake_parse_arguments(PARSE_ARGV 1 arg "SHARED;STATIC" "" "")
    if(NOT TARGET ${target} OR arg_UNPARSED_ARGUMENTS OR (arg_SHARED AND arg_STATIC))
        message(FATAL_ERROR "tracealloc_replace_allocator(TARGET [SHARED | STATIC]): not '${ARGV}'")
    endif()
    get_target_property(type ${target} TYPE)
    if(arg_STATIC)
        if(type STREQUAL "SHARED_LIBRARY" OR type STREQUAL "MODULE_LIBRARY")
            message(FATAL_ERROR "tracealloc_replace_allocator(${target} STATIC): a library cannot bring a malloc of its "
                "own; link the program")
        endif()
        target_link_libraries(${target} PRIVATE tracealloc::static)
    else()
        # A list of its own, so that nothing is dropped as unneeded (--as-needed is the default of some distributions).
        target_link_options(${target} BEFORE PRIVATE
            "LINKER:--push-state,--no-as-needed" "$<TARGET_FILE:tracealloc::tracealloc>" "LINKER:--pop-state")
        target_link_libraries(${target} PRIVATE tracealloc::tracealloc)
    endif()
endfunction()
