/* leaky.c: small programs that lose memory, each in its own way, to be judged by three tools: ours, LeakSanitizer and
 * valgrind.
 *
 *     leaky NAME          ends
 *     leaky NAME wait     says "ready" where it would end, and waits
 *     leaky               lists the names */
#include <dlfcn.h>
#include <pthread.h>
#include <search.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define APART         __attribute__((noinline))
#define HIDE(pointer) __asm__ volatile("" : "+r"(pointer))

struct node {
    struct node *next, *other;
    char *text;
    char room[40];
};

void *kept[64]; /* not static: what is never read would not be written either */

APART static struct node *make_node(void)
{
    struct node *node = calloc(1, sizeof *node);
    HIDE(node);
    return node;
}

APART static void plain(void)
{
    for (int i = 0; i < 10; i++) {
        void *block = malloc(100);
        HIDE(block);
    }
}

APART static void overwritten(void)
{
    for (int i = 0; i < 5; i++) {
        kept[0] = malloc(33);
        HIDE(kept[0]);
    }
}

APART static void list(void)
{
    struct node *head = NULL;
    for (int i = 0; i < 20; i++) {
        struct node *node = make_node();
        node->next = head;
        head = node;
    }
    HIDE(head);
}

APART static struct node *tree_of(int depth)
{
    if (depth == 0)
        return NULL;
    struct node *node = make_node();
    node->next = tree_of(depth - 1);
    node->other = tree_of(depth - 1);
    node->text = strdup("a leaf of a tree");
    return node;
}

APART static void tree(void)
{
    struct node *root = tree_of(6);
    HIDE(root);
}

APART static void kept_tree(void)
{
    kept[1] = tree_of(5);
}

APART static void pruned_tree(void)
{
    struct node *root = tree_of(5);
    kept[2] = root;
    root->next = NULL;
}

APART static void circle(void)
{
    for (int i = 0; i < 4; i++) {
        struct node *a = make_node(), *b = make_node(), *c = make_node();
        a->next = b;
        b->next = c;
        c->next = a;
        c->text = strdup("held by a circle");
        HIDE(a);
    }
}

APART static void self(void)
{
    struct node *node = make_node();
    node->next = node;
    HIDE(node);
}

APART static void figure_eight(void)
{
    struct node *middle = make_node();
    middle->next = make_node();
    middle->next->next = middle;
    middle->other = make_node();
    middle->other->next = middle;
    HIDE(middle);
}

APART static void tail_on_circle(void)
{
    struct node *tail = make_node(), *a = make_node(), *b = make_node();
    tail->next = a;
    a->next = b;
    b->next = a;
    HIDE(tail);
}

APART static void inner_pointer(void)
{
    char *block = malloc(500);
    kept[3] = block + 77;
}

APART static void shrunk(void)
{
    char *block = malloc(4000);
    HIDE(block);
    block = realloc(block, 64);
    HIDE(block);
}

APART static void lost_by_realloc(void)
{
    char *block = malloc(64), *other = malloc(64);
    HIDE(other);
    block = realloc(block, 100000);
    HIDE(block);
}

APART static void large(void)
{
    char *block = calloc(1, 5 << 20);
    HIDE(block);
}

APART static void aligned(void)
{
    void *block = aligned_alloc(4096, 8192), *other = NULL;
    HIDE(block);
    if (posix_memalign(&other, 256, 1000) != 0)
        abort();
    kept[4] = aligned_alloc(1 << 16, 1 << 17);
    HIDE(other);
    other = NULL;
}

APART static void empty(void)
{
    for (int i = 0; i < 3; i++) {
        void *block = malloc(0);
        HIDE(block);
    }
}

APART static void texts(void)
{
    char *text = NULL;
    if (asprintf(&text, "%d is a number in a text of its own", getpid()) < 0)
        abort();
    HIDE(text);
    text = strndup("another one", 7);
    HIDE(text);
}

APART static void stream(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    fputs("what the stream holds", file);
    fclose(file);
    HIDE(text);
}

static void *thread_loses(void *argument)
{
    void *block = malloc(777);
    HIDE(block);
    return argument;
}

APART static void thread(void)
{
    for (int i = 0; i < 3; i++) {
        pthread_t one;
        if (pthread_create(&one, NULL, thread_loses, NULL) != 0)
            abort();
        pthread_join(one, NULL);
    }
}

static __thread void *of_thread[8];

static void *thread_keeps(void *argument)
{
    of_thread[3] = malloc(555);
    return argument;
}

APART static void thread_local_lost(void)
{
    pthread_t one;
    if (pthread_create(&one, NULL, thread_keeps, NULL) != 0)
        abort();
    pthread_join(one, NULL);
    of_thread[1] = malloc(444);
}

static pthread_key_t key;

static void *thread_specific(void *argument)
{
    pthread_setspecific(key, malloc(222));
    return argument;
}

APART static void specific(void)
{
    pthread_t one;
    if (pthread_key_create(&key, NULL) != 0 || pthread_create(&one, NULL, thread_specific, NULL) != 0)
        abort();
    pthread_join(one, NULL);
    pthread_setspecific(key, malloc(111));
}

static void *root_of_tree;

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

APART static void libc_tree(void)
{
    for (int i = 0; i < 10; i++) {
        char text[16];
        snprintf(text, sizeof text, "word %d", i);
        tsearch(strdup(text), &root_of_tree, compare_texts);
    }
    root_of_tree = NULL;
}

static jmp_buf back;

APART static void jump(void)
{
    void *block = malloc(321);
    HIDE(block);
    longjmp(back, 1);
}

APART static void jumped_over(void)
{
    if (setjmp(back) == 0)
        jump();
}

static void on_signal(int number)
{
    (void)number;
    void *block = malloc(61);
    HIDE(block);
}

APART static void handler(void)
{
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    raise(SIGUSR1);
}

APART static void array_of_pointers(void)
{
    char **rows = malloc(10 * sizeof *rows);
    for (int i = 0; i < 10; i++)
        rows[i] = malloc((size_t)i * 10 + 1);
    HIDE(rows);
}

APART static void tagged_low(void)
{
    kept[5] = (void *)((uintptr_t)malloc(48) | 5);
}

APART static void nothing(void)
{
    for (int i = 10; i < 40; i++)
        kept[i] = malloc(64);
    free(malloc(100));
}

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    {"plain", plain},
    {"overwritten", overwritten},
    {"list", list},
    {"tree", tree},
    {"kept_tree", kept_tree},
    {"pruned_tree", pruned_tree},
    {"circle", circle},
    {"self", self},
    {"figure_eight", figure_eight},
    {"tail_on_circle", tail_on_circle},
    {"inner_pointer", inner_pointer},
    {"shrunk", shrunk},
    {"lost_by_realloc", lost_by_realloc},
    {"large", large},
    {"aligned", aligned},
    {"empty", empty},
    {"texts", texts},
    {"stream", stream},
    {"thread", thread},
    {"thread_local_lost", thread_local_lost},
    {"specific", specific},
    {"libc_tree", libc_tree},
    {"jumped_over", jumped_over},
    {"handler", handler},
    {"array_of_pointers", array_of_pointers},
    {"tagged_low", tagged_low},
    {"nothing", nothing},
};

/* Old values on the stack and in registers are not to keep anything. */
APART static void wipe(void)
{
    volatile char room[32 << 10];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
#if defined(__x86_64__)
    __asm__ volatile("xor %%ecx, %%ecx\n\txor %%edx, %%edx\n\txor %%esi, %%esi\n\txor %%edi, %%edi\n\t"
                     "xor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d"
                     :
                     :
                     : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
#endif
}

int main(int count, char **words)
{
    static char waits;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (count < 2)
            puts(programs[i].name);
        else if (strcmp(words[1], programs[i].name) == 0)
            programs[i].run();
    }
    wipe();
    waits = count > 2;
    if (waits && write(STDOUT_FILENO, "ready\n", 6) == 6)
        for (;;)
            pause();
    return 0;
}
