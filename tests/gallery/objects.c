/* objects.c: objects as in GUI libraries: one function makes them all, by type. Without names of functions that say
 * "malloc", only how they are called tells what hands out memory. Listeners are never removed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct type {
    const char *name;
    size_t size;
};
struct object {
    const struct type *type;
    struct object *next;
};

__attribute__((noinline)) static void *obtain(size_t size)
{
    return calloc(1, size);
}

__attribute__((noinline)) static struct object *object_new(const struct type *type)
{
    struct object *object = obtain(type->size);
    object->type = type;
    return object;
}

#define WIDGET(name)                                                                                                   \
    __attribute__((noinline)) static struct object *make_##name(void)                                                  \
    {                                                                                                                  \
        static const struct type type = {#name, 100 + 10 * sizeof #name};                                              \
        return object_new(&type);                                                                                      \
    }                                                                                                                  \
    struct unused
WIDGET(window);
WIDGET(button);
WIDGET(label);
WIDGET(entry);
WIDGET(menu);
WIDGET(bar);
WIDGET(list);
WIDGET(tree);
WIDGET(image);
WIDGET(slider);
WIDGET(tab);
WIDGET(frame);
WIDGET(dialog);
WIDGET(canvas);

static struct object *listeners;

__attribute__((noinline)) static void listen(void)
{
    static const struct type type = {"listener", 160};
    struct object *listener = object_new(&type); /* planted */
    listener->next = listeners;
    listeners = listener;
}

int main(int argc, char **argv)
{
    static struct object *(*const make[])(void) = {make_window, make_button, make_label,  make_entry, make_menu,
                                                   make_bar,    make_list,   make_tree,   make_image, make_slider,
                                                   make_tab,    make_frame,  make_dialog, make_canvas};
    int rounds = argc > 1 ? atoi(argv[1]) : 3000;
    static struct object *widgets[14];
    for (int i = 0; i < rounds; i++) {
        free(widgets[i % 14]);
        widgets[i % 14] = make[i % 14]();
        listen();
        usleep(200);
    }
    return 0;
}
