# Libraries.cmake: the system's libraries that modules name in LIBS. Each is looked for only when a module asks for it,
# so that the runtime can be built where the analysis' libraries are missing.
#
#   zstd     compression; the static library, which becomes part of our own ones (its names are hidden)
#   elfutils libdw and libelf; symbols and debug information, for the analysis only

function(ta_require_library name header library package)
    find_path(TA_${name}_INCLUDE ${header})
    find_library(TA_${name}_LIBRARY ${library})
    mark_as_advanced(TA_${name}_INCLUDE TA_${name}_LIBRARY)
    if(NOT TA_${name}_INCLUDE OR NOT TA_${name}_LIBRARY)
        message(STATUS "${name} not found (${header}, ${library}): install ${package}, or let ./dev do it")
        return()
    endif()
    add_library(${name} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${TA_${name}_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${TA_${name}_INCLUDE}")
endfunction()

ta_require_library(zstd zstd.h libzstd.a libzstd-dev)
ta_require_library(elfutils_elf libelf.h elf libelf-dev)
ta_require_library(elfutils_dw elfutils/libdwfl.h dw libdw-dev)
if(TARGET elfutils_dw AND TARGET elfutils_elf)
    add_library(elfutils INTERFACE IMPORTED GLOBAL)
    target_link_libraries(elfutils INTERFACE elfutils_dw elfutils_elf)
endif()
