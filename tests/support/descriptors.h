/* descriptors.h: whether something that was opened stays open. */
#ifndef TA_TESTS_DESCRIPTORS_H
#define TA_TESTS_DESCRIPTORS_H

#include <fcntl.h>

/* How many descriptors are open. */
static inline int open_descriptors(void)
{
    int count = 0;
    for (int file = 0; file < 200; file++)
        count += fcntl(file, F_GETFD) >= 0;
    return count;
}

#endif
