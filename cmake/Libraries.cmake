# Libraries.cmake: the system's libraries that modules name in LIBS, each under one name. A library that is not there
# is an error only where a module asks for it.
#
#   unwind    libunwind, in the checking build only
#   zstd      compression; embedded: the archive becomes part of our libraries, its names stay inside
#   iberty    demangling of C++ names; embedded
#   elfutils  libdw and libelf, for symbols and debug information; a shared library that the analysis needs
#   jsonc     json-c, for interchange; a shared library that the analysis needs
#   zlib      compression of pprof's format; a shared library that the analysis needs (as libdw does)
#   ncurses   the terminal view; a shared library that the program needs
set_property(GLOBAL PROPERTY TA_KNOWN_LIBRARIES ncurses unwind zstd iberty elfutils jsonc zlib)

# ta_find(NAME PACKAGE HEADER FILE…): NAME becomes a library made of the first FILE found.
function(ta_find name package header)
    set_property(GLOBAL PROPERTY TA_PACKAGE_OF_${name} ${package})
    find_path(TA_${name}_INCLUDE ${header})
    find_library(TA_${name}_LIBRARY NAMES ${ARGN})
    mark_as_advanced(TA_${name}_INCLUDE TA_${name}_LIBRARY)
    if(TA_${name}_INCLUDE AND TA_${name}_LIBRARY)
        add_library(${name} UNKNOWN IMPORTED GLOBAL)
        set_target_properties(${name} PROPERTIES IMPORTED_LOCATION "${TA_${name}_LIBRARY}"
            INTERFACE_INCLUDE_DIRECTORIES "${TA_${name}_INCLUDE}")
    endif()
endfunction()

ta_find(unwind libunwind-dev libunwind.h unwind)
ta_find(zstd libzstd-dev zstd.h libzstd.a)
ta_find(iberty libiberty-dev libiberty/demangle.h libiberty_pic.a libiberty.a)
ta_find(elf libelf-dev libelf.h elf)
ta_find(dw libdw-dev elfutils/libdwfl.h dw)
ta_find(jsonc libjson-c-dev json-c/json.h json-c)
ta_find(ncurses libncurses-dev curses.h ncursesw)
ta_find(zlib zlib1g-dev zlib.h z)
set_property(GLOBAL PROPERTY TA_PACKAGE_OF_elfutils "libdw-dev and libelf-dev")
if(TARGET dw AND TARGET elf)
    add_library(elfutils INTERFACE IMPORTED GLOBAL)
    target_link_libraries(elfutils INTERFACE dw elf)
endif()

# Stops with the package's name when one of the libraries is known and not there.
function(ta_check_libraries module)
    get_property(known GLOBAL PROPERTY TA_KNOWN_LIBRARIES)
    foreach(library IN LISTS ARGN)
        if(library IN_LIST known AND NOT TARGET ${library})
            get_property(package GLOBAL PROPERTY TA_PACKAGE_OF_${library})
            message(FATAL_ERROR "${module} needs ${library}: install ${package}, or let ./dev do it")
        endif()
    endforeach()
endfunction()

# How a library of a module reaches the user of our archives: `embedded` with its paths, or `needed` with link names.
function(ta_library_kind kind_out names_out library)
    set(kind needed)
    set(names)
    if(library MATCHES "\\.a$")
        set(kind embedded)
        set(names ${library})
    elseif(library STREQUAL "zstd" OR library STREQUAL "iberty")
        set(kind embedded)
        set(names ${TA_${library}_LIBRARY})
    elseif(library MATCHES "^(elfutils|PkgConfig::ELFUTILS)$")
        set(names dw elf)
    elseif(library STREQUAL "zlib")
        set(names z)
    elseif(library STREQUAL "jsonc")
        set(names json-c)
    elseif(NOT library STREQUAL "mimalloc_source" AND NOT library MATCHES "^Threads::")
        set(names ${library})
    endif()
    set(${kind_out} ${kind} PARENT_SCOPE)
    set(${names_out} ${names} PARENT_SCOPE)
endfunction()
