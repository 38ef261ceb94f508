# What turns addresses into lines; included by this folder's CMakeLists.txt.
# Sets TA_SYMBOLS_SOURCES and TA_SYMBOLS_LIBRARIES (elfutils, the demangler of libiberty, threads).
set(TA_SYMBOLS_SOURCES symbols.c symbols_dwarf.c symbols_module.c symbols_text.c)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(ELFUTILS REQUIRED IMPORTED_TARGET libdw>=0.186 libelf>=0.186)
find_library(TRACEALLOC_IBERTY_LIBRARY NAMES libiberty_pic.a libiberty.a REQUIRED)
find_path(TRACEALLOC_IBERTY_INCLUDE NAMES libiberty/demangle.h REQUIRED)
set(TA_SYMBOLS_LIBRARIES PkgConfig::ELFUTILS ${TRACEALLOC_IBERTY_LIBRARY} Threads::Threads)
