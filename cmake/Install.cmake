# Install.cmake: what `cmake --install` lays down: libraries, headers, the program, the CMake package, pkg-config
# files, manual pages and shell completions.
include(CMakePackageConfigHelpers)

get_property(products GLOBAL PROPERTY TA_PRODUCTS)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tracealloc")

# Products are tracealloc::tracealloc and tracealloc::static, tracealloc::analysis and tracealloc::analysis_static.
foreach(product IN LISTS products)
    string(REPLACE "-" "_" id ${product})
    string(REGEX REPLACE "^tracealloc_" "" short ${id})
    set_target_properties(${id}_shared PROPERTIES EXPORT_NAME ${short})
    set_target_properties(${id}_static PROPERTIES EXPORT_NAME ${short}_static)
    if(product STREQUAL "tracealloc")
        set_target_properties(${id}_static PROPERTIES EXPORT_NAME static)
    endif()
    if(product STREQUAL "tracealloc")
        set(component runtime)
    else()
        set(component analysis)
    endif()
    install(TARGETS ${id}_shared ${id}_static EXPORT tracealloc-targets
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component} NAMELINK_COMPONENT development
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endforeach()
if(TARGET tracealloc_cli)
    install(TARGETS tracealloc_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
if(TARGET tracealloc_cli AND TARGET tracealloc_untraced)
    install(TARGETS tracealloc_untraced LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tracealloc COMPONENT tools)
endif()
# What the README and the tutorial use.
file(GLOB examples CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.c" "${PROJECT_SOURCE_DIR}/examples/*.cpp")
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tracealloc/examples COMPONENT tools)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

if(products)
    install(EXPORT tracealloc-targets NAMESPACE tracealloc:: DESTINATION ${package_dir} COMPONENT development)
    configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/tracealloc-config.cmake.in"
        "${PROJECT_BINARY_DIR}/tracealloc-config.cmake" INSTALL_DESTINATION ${package_dir})
    set(version_file "${PROJECT_BINARY_DIR}/tracealloc-config-version.cmake")
    write_basic_package_version_file("${version_file}" COMPATIBILITY SameMinorVersion)
    install(FILES "${PROJECT_BINARY_DIR}/tracealloc-config.cmake" "${version_file}"
        "${PROJECT_SOURCE_DIR}/cmake/tracealloc-memory-test.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/tracealloc-run-memory-test.cmake"
        "${PROJECT_SOURCE_DIR}/cmake/tracealloc-replace-allocator.cmake"
        DESTINATION ${package_dir} COMPONENT development)
endif()

# gdb loads the script together with the library that it is named after.
if(TARGET tracealloc_shared)
    install(FILES "${PROJECT_SOURCE_DIR}/share/gdb/tracealloc-gdb.py"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load/${CMAKE_INSTALL_FULL_LIBDIR}"
        RENAME "libtracealloc.so.${PROJECT_VERSION}-gdb.py" COMPONENT runtime)
endif()

# pkg-config: tracealloc (shared), tracealloc-static (the archive, malloc included), tracealloc-analysis.
file(RELATIVE_PATH TA_PC_PREFIX "/usr/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/usr")
string(REGEX REPLACE "/$" "" TA_PC_PREFIX "${TA_PC_PREFIX}")
set(TA_PC_UNDEFINED "")
if(TRACEALLOC_OVERRIDE)
    set(TA_PC_UNDEFINED "-Wl,--undefined=malloc ")
endif()
foreach(pc IN ITEMS tracealloc tracealloc-static tracealloc-analysis)
    string(REPLACE "-static" "" product ${pc})
    if(product IN_LIST products)
        configure_file("${PROJECT_SOURCE_DIR}/cmake/${pc}.pc.in" "${PROJECT_BINARY_DIR}/${pc}.pc" @ONLY)
        install(FILES "${PROJECT_BINARY_DIR}/${pc}.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
            COMPONENT development)
    endif()
endforeach()

# Manual pages: docs/man/NAME.SECTION; in section 3 every other function that a page is about leads to it.
file(GLOB pages CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/docs/man/*.[1357]")
foreach(page IN LISTS pages)
    string(REGEX MATCH "[1357]$" section "${page}")
    set(component tools)
    if(section STREQUAL "3")
        set(component development)
    endif()
    install(FILES "${page}" DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
    if(section STREQUAL "3")
        get_filename_component(page_name "${page}" NAME_WE)
        file(STRINGS "${page}" names REGEX "^ta_.* \\\\- ")
        string(REGEX REPLACE " \\\\-.*" "" names "${names}")
        string(REPLACE ", " ";" names "${names}")
        list(REMOVE_ITEM names ${page_name})
        foreach(name IN LISTS names)
            file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/man/${name}.3" CONTENT ".so man3/${page_name}.3\n")
            install(FILES "${PROJECT_BINARY_DIR}/man/${name}.3" DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
                COMPONENT development)
        endforeach()
    endif()
endforeach()

# Completions: each where its shell looks.
function(ta_install_completion file folder name)
    install(FILES "${PROJECT_SOURCE_DIR}/analysis/cli/completion/${file}"
        DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} RENAME ${name} COMPONENT tools)
endfunction()
ta_install_completion(tracealloc.bash bash-completion/completions tracealloc)
ta_install_completion(tracealloc.zsh zsh/site-functions _tracealloc)
ta_install_completion(tracealloc.fish fish/vendor_completions.d tracealloc.fish)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license) # in no package
