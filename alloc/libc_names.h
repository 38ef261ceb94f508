/* libc_names.h: malloc's names in libc's own symbol table.
 *
 * Names are usually found in the order of loading, and ours come before libc's. Some look-ups begin at libc: those of an
 * object that was opened with RTLD_DEEPBIND (PHP's extensions), and dlsym with libc's handle (Python's ctypes, JNA).
 * They would find the allocator that serves nobody here, and its free would abort on our blocks. So what libc's table
 * says of these names becomes ours, for this process, in memory. Nothing else of the flag's meaning changes.
 *
 * Called once while the process is set up, by one thread. Where the program brings an allocator of its own, where there
 * is no loader, or where libc's pages cannot be written, nothing happens. */
#ifndef TA_ALLOC_LIBC_NAMES_H
#define TA_ALLOC_LIBC_NAMES_H

void ta__libc_names_replace(void);

#endif
