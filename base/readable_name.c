/* readable_name.c: see readable_name.h. */
#include "base/readable_name.h"

#include <libiberty/demangle.h>
#include <string.h>

/* Longer ones are made of templates within templates: what they need of the stack grows with the square of it. */
enum { MANGLED_MAX = 2000 };

struct output {
    char *text;
    size_t length, room;
};

static void add_piece(const char *piece, size_t length, void *context)
{
    struct output *output = context;
    if (length < output->room - output->length)
        memcpy(output->text + output->length, piece, length);
    output->length = length < output->room - output->length ? output->length + length : output->room;
}

size_t ta__readable_name(const char *name, int with_parameters, char *text, size_t room)
{
    struct output output = {text, 0, room};
    if (name[0] != '_' || name[1] != 'Z' || strnlen(name, MANGLED_MAX) == MANGLED_MAX)
        return 0;
    if (!cplus_demangle_v3_callback(name, (with_parameters ? DMGL_PARAMS : 0) | DMGL_ANSI, add_piece, &output) ||
        output.length >= room)
        return 0;
    text[output.length] = '\0';
    return output.length;
}
