# TraceallocProduct.cmake: the libraries and the program that are made of modules.
#
#   ta_add_product(NAME [RUNTIME] HEART module MODULES module…)
#       libNAME.so (target NAME_shared) and libNAME.a (target NAME_static, '-' becomes '_'). Both offer the same names
#       and no others: the archive is one object whose inner names have been made local, so that neither mimalloc nor
#       zstd nor anything of ours can meet the user's. RUNTIME: never unloaded once loaded. Without its HEART there is no
#       product; of the other modules those take part that exist.
#   ta_add_untraced(MODULES module…)
#       libtracealloc-untraced.so, for `tracealloc cost` alone: in a folder of its own, where nobody links it.
#   ta_add_cli(NAME MODULES module… USES product)
#       the program, linked with the product's archive: it gets what every user gets.

function(ta_add_product name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "RUNTIME" "HEART" "MODULES")
    if(NOT TARGET ta_${arg_HEART})
        return()
    endif()
    set(modules)
    set(libraries)
    foreach(module IN LISTS arg_MODULES)
        if(TARGET ta_${module})
            list(APPEND modules ta_${module})
            get_target_property(others ta_${module} TA_LIBRARIES)
            list(APPEND libraries ${others})
        endif()
    endforeach()
    list(REMOVE_DUPLICATES libraries)
    string(REPLACE "-" "_" id ${name})

    # The shared library.
    set(shared ${id}_shared)
    add_library(${shared} SHARED "${PROJECT_SOURCE_DIR}/cmake/empty.c")
    target_link_libraries(${shared} PRIVATE ${modules} ta_lto_compile ta_lto_link ta_hardening_link ta_sanitizers)
    target_link_options(${shared} PRIVATE -static-libgcc LINKER:--exclude-libs,ALL
        "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/symbols.map"
        $<$<BOOL:${arg_RUNTIME}>:LINKER:-z,nodelete> $<${TA_PLAIN_BUILD}:LINKER:-z,defs>)
    set_target_properties(${shared} PROPERTIES OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION}
        SOVERSION ${PROJECT_VERSION_MAJOR} C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/symbols.map")

    # The archive: all objects and embedded archives linked into one, which keeps global only what the shared one
    # exports.
    set(whole "${PROJECT_BINARY_DIR}/${name}-whole.o")
    set(exported "${PROJECT_BINARY_DIR}/${name}-exported.txt")
    set(objects)
    foreach(module IN LISTS modules)
        list(APPEND objects $<TARGET_OBJECTS:${module}>)
    endforeach()
    set(embedded)
    set(needed)
    foreach(library IN LISTS libraries)
        ta_library_kind(kind paths ${library})
        list(APPEND ${kind} ${paths})
    endforeach()
    add_custom_command(OUTPUT "${whole}" "${exported}"
        COMMAND sh "${PROJECT_SOURCE_DIR}/cmake/whole-object.sh" "${whole}" "${exported}" $<TARGET_FILE:${shared}>
            "${CMAKE_C_COMPILER}" $<IF:$<BOOL:${TA_LTO}>,lto,plain> "${CMAKE_OBJCOPY}" "${CMAKE_NM}"
            ${objects} ${embedded}
        DEPENDS ${shared} ${objects} "${PROJECT_SOURCE_DIR}/cmake/whole-object.sh"
        COMMENT "Linking ${name} into one object with only its public names" VERBATIM COMMAND_EXPAND_LISTS)
    set(static ${id}_static)
    add_library(${static} STATIC "${whole}")
    set_source_files_properties("${whole}" PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set_target_properties(${static} PROPERTIES OUTPUT_NAME ${name} LINKER_LANGUAGE C)
    target_link_libraries(${static} INTERFACE Threads::Threads)

    # What a user of either needs.
    foreach(target IN ITEMS ${shared} ${static})
        target_include_directories(${target} INTERFACE
            "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
            "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
    endforeach()
    target_link_libraries(${static} INTERFACE ${needed})
    if(arg_RUNTIME)
        # Taken even where only libc calls malloc; and gcc leaves the index of unwind tables out of -static.
        target_link_options(${static} INTERFACE $<$<BOOL:${TRACEALLOC_OVERRIDE}>:LINKER:--undefined=malloc>
            LINKER:--eh-frame-hdr)
    endif()
    set_property(GLOBAL APPEND PROPERTY TA_PRODUCTS ${name})
endfunction()

function(ta_add_untraced)
    cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "MODULES")
    if(NOT TARGET ta_alloc_untraced OR NOT TRACEALLOC_OVERRIDE OR TRACEALLOC_SANITIZE)
        return()
    endif()
    list(TRANSFORM arg_MODULES PREPEND ta_)
    add_library(tracealloc_untraced SHARED "${PROJECT_SOURCE_DIR}/cmake/empty.c")
    target_link_libraries(tracealloc_untraced PRIVATE ${arg_MODULES} ta_lto_compile ta_lto_link ta_hardening_link)
    target_link_options(tracealloc_untraced PRIVATE -static-libgcc LINKER:--exclude-libs,ALL
        "LINKER:--version-script,${PROJECT_SOURCE_DIR}/cmake/symbols.map" LINKER:-z,nodelete)
    set_target_properties(tracealloc_untraced PROPERTIES OUTPUT_NAME tracealloc-untraced C_VISIBILITY_PRESET hidden
        POSITION_INDEPENDENT_CODE ON LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib/tracealloc"
        LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/symbols.map")
endfunction()

function(ta_add_cli name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "USES" "MODULES")
    string(REPLACE "-" "_" id ${arg_USES})
    if(NOT TARGET ta_cli OR NOT TARGET ${id}_static)
        return()
    endif()
    list(TRANSFORM arg_MODULES PREPEND ta_)
    add_executable(${name}_cli "${PROJECT_SOURCE_DIR}/cmake/empty.c")
    target_link_libraries(${name}_cli PRIVATE ${arg_MODULES} ${id}_static ta_lto_link ta_hardening_link ta_sanitizers)
    set_target_properties(${name}_cli PROPERTIES OUTPUT_NAME ${name} POSITION_INDEPENDENT_CODE ON)
    target_link_options(${name}_cli PRIVATE -pie)
endfunction()
