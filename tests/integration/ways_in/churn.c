/* churn.c: very many short threads. Each frees what another left, leaves something itself, and allocates once more in a
 * destructor of thread-specific data, which may run after the allocator's own. Memory must not grow with the number of
 * threads that have been. Argument: how many threads. */
#include "way.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { AT_ONCE = 8, LEFT = 32, GROWTH_MAX_KIB = 48 * 1024 };
static _Atomic(unsigned char *) left[LEFT];
static pthread_key_t keys[3];

static void end_of_thread(void *value)
{
    free(value);
    use_memory(3);
    free(atomic_exchange(&left[(uintptr_t)value / 64 % LEFT], make_block(500)));
}

static void *live(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    for (size_t i = 0; i < 3; i++)
        pthread_setspecific(keys[i], make_block(64 + i));
    use_memory(20);
    free(atomic_exchange(&left[number % LEFT], make_block(1 + number % 5000)));
    if (number % 16 == 0)
        pthread_exit(NULL);
    return NULL;
}

static long resident_kib(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    expect(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2, "WRONG: statm");
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    expect_ours();
    size_t count = argc > 1 ? (size_t)atoi(argv[1]) : 20000;
    for (size_t i = 0; i < 3; i++)
        expect(pthread_key_create(&keys[i], end_of_thread) == 0, "WRONG: pthread_key_create");
    long early = 0;
    for (size_t begun = 0; begun < count; begun += AT_ONCE) {
        pthread_t threads[AT_ONCE];
        for (size_t i = 0; i < AT_ONCE; i++)
            expect(pthread_create(&threads[i], NULL, live, (void *)(begun + i)) == 0, "WRONG: pthread_create");
        for (size_t i = 0; i < AT_ONCE; i++)
            pthread_join(threads[i], NULL);
        if (begun <= count / 10)
            early = resident_kib();
    }
    expect(resident_kib() - early < GROWTH_MAX_KIB, "WRONG: memory grows with the number of threads");
    for (size_t i = 0; i < LEFT; i++)
        free(left[i]);
    expect_content();
    say("all threads lived");
    return 0;
}
