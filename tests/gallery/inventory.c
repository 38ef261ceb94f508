/* inventory.c: a tool as they were always written in C: everything goes through xmalloc and its relatives, which a dozen
 * functions call. One of them holds nearly all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

__attribute__((noinline)) void *xmalloc(size_t size)
{
    return check(malloc(size));
}

__attribute__((noinline)) char *xstrdup(const char *text)
{
    char *copy = xmalloc(strlen(text) + 1);
    return strcpy(copy, text);
}

struct item {
    char *name;
    struct item *next;
    int stock[12];
};

static struct item *items;
static char *names[16];

#define NAMED(n)                                                                                                       \
    __attribute__((noinline)) static void read_option_##n(void)                                                        \
    {                                                                                                                  \
        size_t size = 40 + n;                                                                                          \
        names[n] = strcpy(xmalloc(size), "the value of option number " #n);                                            \
    }                                                                                                                  \
    struct unused
NAMED(0);
NAMED(1);
NAMED(2);
NAMED(3);
NAMED(4);
NAMED(5);
NAMED(6);
NAMED(7);
NAMED(8);
NAMED(9);
NAMED(10);
NAMED(11);
NAMED(12);

__attribute__((noinline)) void add_item(int number)
{
    char name[64];
    snprintf(name, sizeof name, "item number %d", number);
    struct item *item = xmalloc(sizeof *item); /* planted */
    item->name = xstrdup(name);
    item->next = items;
    items = item;
}

int main(void)
{
    static void (*const options[])(void) = {read_option_0,  read_option_1,  read_option_2, read_option_3, read_option_4,
                                            read_option_5,  read_option_6,  read_option_7, read_option_8, read_option_9,
                                            read_option_10, read_option_11, read_option_12};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        options[i]();
    for (int i = 0; i < 3000; i++)
        add_item(i);
    printf("%s\n", names[3]);
}
