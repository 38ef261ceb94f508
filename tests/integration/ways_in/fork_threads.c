/* fork_threads.c: forks again and again while other threads allocate; every child allocates, makes a thread, ends.
 *
 * Argument: how many children. A lock that another thread held at the moment of the fork would stop the child for
 * ever; its alarm makes that a failure. */
#include "way.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { THREADS = 4, PASSED = 64 };
static atomic_bool stop;
static _Atomic(unsigned char *) passed[PASSED];

static void *work(void *argument)
{
    size_t at = (size_t)(uintptr_t)argument;
    while (!atomic_load(&stop)) {
        size_t size = 1 + at * 61 % 9000;
        unsigned char *block = make_block(at % 300 == 0 ? size * 200 : size);
        block = atomic_exchange(&passed[at++ % PASSED], block);
        free(block);
    }
    return NULL;
}

static void *work_once(void *unused)
{
    use_memory(50);
    return unused;
}

static void live_as_child(void)
{
    alarm(30);
    use_memory(200);
    for (size_t i = 0; i < PASSED; i++)
        free(atomic_exchange(&passed[i], NULL));
    pthread_t one;
    expect(pthread_create(&one, NULL, work_once, NULL) == 0, "WRONG: pthread_create in a child");
    pthread_join(one, NULL);
    expect_content();
}

int main(int argc, char **argv)
{
    expect_ours();
    int children = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, work, (void *)(i * 1000)) == 0, "WRONG: pthread_create");
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        expect(child >= 0, "WRONG: fork");
        if (child == 0) {
            live_as_child();
            if (i % 4 == 0)
                exit(0);
            _exit(0);
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child, "WRONG: waitpid");
        expect(!WIFSIGNALED(status), "WRONG: a signal ended a child");
        expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "WRONG: a child failed");
        use_memory(5);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PASSED; i++)
        free(passed[i]);
    expect_content();
    say("all children ended well");
    return 0;
}
