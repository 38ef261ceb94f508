/* growth_program.c: memory of every kind, planted: what grows, what is a cache, what comes and goes.
 *
 *     growth_program ROUNDS [sound | tidy]          sound: without the leak; tidy: it is freed at the end; a round takes
 *                                                   a millisecond, and in every hundred there is an entry of the
 *                                                   recording that GROWTH_RECORDING names, however busy the machine is
 *     growth_program ROUNDS record FILE [CLEAR_AT]  under tracing: an entry after each round, traces cleared at one */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline))

struct link {
    struct link *next;
    char bytes[56];
};

static struct link *volatile leaked;
static void *volatile early[200], *volatile cache[256], *volatile table, *volatile burst[4096], *volatile freed[64];
static size_t burst_count;

KEEP static void leak(void)
{
    struct link *link = malloc(sizeof *link);
    link->next = leaked;
    leaked = link;
}

static void tidy_up(void)
{
    for (struct link *link = leaked, *next; link != NULL; link = next) {
        next = link->next;
        free(link);
    }
}

KEEP static void fill_cache(unsigned round)
{
    unsigned slot = round * 7 % 256;
    free(cache[slot]);
    cache[slot] = malloc(1000);
}

KEEP static void build_table(void)
{
    table = calloc(1, 300000);
}

KEEP static void come_and_go(unsigned round)
{
    burst[burst_count++] = malloc(500);
    if (round % 300 == 299)
        while (burst_count > 0)
            free(burst[--burst_count]);
}

KEEP static void churn(void)
{
    char *text = malloc(64);
    memset(text, 'x', 64);
    __asm__ volatile("" : : "r"(text) : "memory");
    free(text);
}

KEEP static void start_up(void)
{
    for (size_t i = 0; i < 200; i++)
        early[i] = malloc(512);
}

KEEP static void allocate_for_the_end(void)
{
    for (size_t i = 0; i < 64; i++)
        if (freed[i] == NULL) {
            freed[i] = malloc(3000);
            return;
        }
}

/* Until the recording has grown, but not for ever: it may have ended. */
static void wait_for_entry(const char *recording)
{
    static off_t size;
    struct stat status;
    for (int tries = 0; recording != NULL && tries < 20000; tries++) {
        if (stat(recording, &status) == 0 && status.st_size != size) {
            size = status.st_size;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* What the library calls, found at run time: this program is built without it. */
static void *call(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL) {
        fprintf(stderr, "growth_program: no %s\n", name);
        exit(3);
    }
    return found;
}

static int record(unsigned rounds, const char *path, unsigned clear_at)
{
    void *(*open)(const char *, unsigned) = (void *(*)(const char *, unsigned))call("ta_record_open");
    int (*append)(void *, const char *) = (int (*)(void *, const char *))call("ta_record_append");
    int (*close)(void *) = (int (*)(void *))call("ta_record_close");
    void (*clear)(void) = (void (*)(void))call("ta_clear_traces");
    void *file = open(path, 0);
    for (unsigned round = 0; round < rounds && file != NULL; round++) {
        leak();
        if (round % 2 == 0) /* of 1500 rounds the first third fills it, however fast they are */
            fill_cache(round / 2);
        churn();
        if (round == clear_at)
            clear();
        if (append(file, "test") != 0)
            return 4;
    }
    return file == NULL || close(file) != 0;
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    if (argc > 3 && strcmp(argv[2], "record") == 0)
        return record(rounds, argv[3], argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : rounds);
    int leaks = argc < 3 || strcmp(argv[2], "sound") != 0;
    if (argc > 2 && strcmp(argv[2], "tidy") == 0)
        atexit(tidy_up);
    start_up();
    for (unsigned round = 0; round < rounds; round++) {
        if (leaks)
            leak();
        if (round % 2 == 0)
            fill_cache(round / 2);
        come_and_go(round);
        churn();
        if (round == rounds / 2)
            build_table();
        if (round % (rounds / 80 + 1) == 0)
            allocate_for_the_end();
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (round % 100 == 99)
            wait_for_entry(getenv("GROWTH_RECORDING"));
    }
    for (size_t i = 0; i < 64; i++)
        free(freed[i]);
    return 0;
}
