# What turns addresses into lines; included by this folder's CMakeLists.txt.
set(TA_SYMBOLS_SOURCES symbols.c symbols_dwarf.c symbols_module.c symbols_names.c symbols_sink.c symbols_text.c)
set(TA_SYMBOLS_LIBS elfutils iberty)
