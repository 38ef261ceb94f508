# Packages.cmake: Debian packages, made by `./dev package` (cpack -G DEB over the preset "package"):
#
#   libtracealloc0            the library that programs are linked with, or run under
#   libtracealloc-analysis0   the library that reads recordings
#   libtracealloc-dev         headers, archives, CMake and pkg-config files, manual pages of section 3
#   tracealloc                the program, its manual page and completions
#
# What is installed says in Install.cmake which of them it belongs to: the components runtime, analysis, development,
# tools.
set(CPACK_PACKAGE_VENDOR "tracealloc")
# Who makes the packages, as Debian's tools have it.
if(DEFINED ENV{DEBEMAIL})
    set(packager "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
    set(packager "tracealloc <tracealloc@localhost>")
endif()
string(STRIP "${packager}" CPACK_PACKAGE_CONTACT)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime analysis development tools)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}")

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
function(ta_deb component name section)
    string(TOUPPER ${component} upper)
    list(JOIN ARGN "\n" text)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${text}" PARENT_SCOPE)
endfunction()
set(soversion ${PROJECT_VERSION_MAJOR})
set(own_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
ta_deb(runtime libtracealloc${soversion} libs
    "malloc that traces every allocation with its whole stack"
    "It takes the place of the C library's malloc, and knows of every block who"
    "asked for it: the call stack, the size, the part of the program. It is linked"
    "or preloaded, and takes snapshots at any moment.")
ta_deb(analysis libtracealloc-analysis${soversion} libs
    "reads and analyses the recordings of tracealloc"
    "Statistics, differences, filters, lines and functions, and exports to pprof,"
    "flame graphs and other formats.")
ta_deb(development libtracealloc-dev libdevel
    "malloc that traces every allocation - development files"
    "Headers for C and C++, archives, and files for CMake and pkg-config of"
    "libtracealloc and libtracealloc-analysis.")
ta_deb(tools tracealloc devel
    "says who holds a program's memory"
    "Runs programs so that every allocation is traced with its whole stack, and"
    "answers from the recording: what holds the memory, what grew, what leaks, by"
    "line, function, stack, module or domain. It draws flame graphs, compares, and"
    "is a gate for continuous integration.")

# What depends on the libraries depends on exactly these: until 1.0 their names may change with every version.
foreach(pair IN ITEMS "RUNTIME libtracealloc" "ANALYSIS libtracealloc-analysis")
    string(REGEX MATCH "[A-Z]+" upper "${pair}")
    string(REGEX REPLACE "^[A-Z]+ " "" library "${pair}")
    set(folder "${PROJECT_BINARY_DIR}/packaging/${library}")
    file(CONFIGURE OUTPUT "${folder}/shlibs"
        CONTENT "${library} ${soversion} ${library}${soversion} ${own_version}\n")
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${folder}/shlibs;${PROJECT_SOURCE_DIR}/packaging/triggers")
endforeach()
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/packaging/compress-manual.cmake")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libtracealloc${soversion} ${own_version}, sensible-utils")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libtracealloc${soversion} ${own_version}, libtracealloc-analysis${soversion} ${own_version}, libdw-dev, libelf-dev, libjson-c-dev, zlib1g-dev")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "debuginfod")

# Each package says whose it is and what changed.
set(changelog "${PROJECT_BINARY_DIR}/packaging/changelog")
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT "${changelog}" CONTENT
"tracealloc (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * See CHANGELOG.md of the sources.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
find_program(TA_GZIP gzip)
if(TA_GZIP)
    execute_process(COMMAND "${TA_GZIP}" -9nc "${changelog}" OUTPUT_FILE "${changelog}.Debian.gz")
    foreach(component IN LISTS CPACK_COMPONENTS_ALL)
        string(TOUPPER ${component} upper)
        set(folder "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
        install(FILES "${PROJECT_SOURCE_DIR}/packaging/copyright" DESTINATION "${folder}" COMPONENT ${component}
            EXCLUDE_FROM_ALL)
        install(FILES "${changelog}.Debian.gz" DESTINATION "${folder}" COMPONENT ${component} EXCLUDE_FROM_ALL)
    endforeach()
endif()
include(CPack)
