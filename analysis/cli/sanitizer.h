/* sanitizer.h: whether a program was built with a sanitizer that is an allocator itself. */
#ifndef TA_ANALYSIS_CLI_SANITIZER_H
#define TA_ANALYSIS_CLI_SANITIZER_H

#include <elf.h>

/* What -fsanitize= calls it ("address", "thread" …); NULL: none, or it cannot be told. */
const char *cli_sanitizer_of(int descriptor, const Elf64_Ehdr *header);

#endif
