/* early_late.c: allocates in every place a program can run code in, from before constructors to after destructors.
 *
 * Blocks cross from each place to a later one, so that what came early must be known late. */
#include "way.h"

#include <pthread.h>
#include <stdio.h>

enum { PLACES = 12, SIZE = 333 };
static unsigned char *carried[PLACES];
static size_t places;

/* Leaves one block for the next place, returns the one of the last place, and works in between. */
static void visit(const char *place)
{
    if (places > 0)
        drop_block(carried[places - 1], SIZE);
    expect(places < PLACES, "WRONG: too many places");
    carried[places++] = make_block(SIZE);
    use_memory(2000);
    unsigned char *large = make_block((size_t)3 << 20);
    drop_block(large, (size_t)3 << 20);
    void *aligned = NULL;
    expect(posix_memalign(&aligned, 4096, 100) == 0 && aligned != NULL, "WRONG: posix_memalign");
    free(hold(aligned));
    char *text = (char *)hold(calloc(1, 50));
    text = (char *)hold(realloc(text, 5000));
    expect(text != NULL && text[0] == 0, "WRONG: realloc");
    free(text);
    free(hold(NULL));
    say(place);
}

#if defined(EARLY_IFUNC)
static int answer(void)
{
    return 42;
}

static unsigned char *resolver_block;

static int (*resolve_answer(void))(void)
{
    resolver_block = (unsigned char *)malloc(77);
    if (resolver_block != NULL)
        resolver_block[0] = 7;
    free(malloc(20));
    return answer;
}

int indirect_answer(void) __attribute__((ifunc("resolve_answer")));
#endif

#if !defined(__PIC__) || defined(__PIE__)
static void before_constructors(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    (void)environment;
    visit("preinit_array");
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **,
                                                                              char **) = before_constructors;
#endif

__attribute__((constructor(101))) static void first_constructor(void)
{
    visit("first constructor");
}

__attribute__((constructor)) static void last_constructor(void)
{
    visit("constructor");
}

__attribute__((destructor)) static void early_destructor(void)
{
    visit("destructor");
}

__attribute__((destructor(101))) static void last_destructor(void)
{
    visit("last destructor");
    drop_block(carried[places - 1], SIZE);
    expect_content();
}

static void at_exit(void)
{
    visit("atexit");
}

static void with_status(int status, void *argument)
{
    (void)status;
    (void)argument;
    visit("on_exit");
}

static pthread_key_t key;

static void end_of_thread(void *value)
{
    drop_block((unsigned char *)value, 99);
    use_memory(100);
}

static void *thread(void *unused)
{
    pthread_setspecific(key, make_block(99));
    use_memory(1000);
    return unused;
}

int main(void)
{
    expect_ours();
    atexit(at_exit);
    on_exit(with_status, NULL);
    pthread_key_create(&key, end_of_thread);
    for (int i = 0; i < 20; i++) {
        pthread_t one;
        expect(pthread_create(&one, NULL, thread, NULL) == 0, "WRONG: pthread_create");
        pthread_join(one, NULL);
    }
    visit("main");
#if defined(EARLY_IFUNC)
    expect(indirect_answer() == 42, "WRONG: ifunc");
    expect(resolver_block != NULL && resolver_block[0] == 7, "WRONG: the resolver's block");
    free(resolver_block);
#endif
    expect_content();
    return 0;
}
