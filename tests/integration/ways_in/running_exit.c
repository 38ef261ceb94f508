/* running_exit.c: the process ends while other threads are in the middle of allocating.
 *
 * Argument: how: "return", "exit", "quick_exit", "_exit", or "main_first" (main's thread ends before the others). */
#include "way.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_size_t started;

static void *work(void *unused)
{
    atomic_fetch_add(&started, 1);
    for (;;)
        use_memory(100);
    return unused;
}

static void *end_later(void *unused)
{
    use_memory(20000);
    say("ended");
    exit(0);
    return unused;
}

int main(int argc, char **argv)
{
    expect_ours();
    const char *how = argc > 1 ? argv[1] : "return";
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        expect(pthread_create(&thread, NULL, work, NULL) == 0, "WRONG: pthread_create");
        pthread_detach(thread);
    }
    while (atomic_load(&started) < 4)
        use_memory(10);
    if (strcmp(how, "main_first") == 0) {
        pthread_t thread;
        expect(pthread_create(&thread, NULL, end_later, NULL) == 0, "WRONG: pthread_create");
        pthread_exit(NULL);
    }
    say("ended");
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    return 0;
}
