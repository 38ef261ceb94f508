/* plugin.c: what host.c loads. It keeps a note of every text that it has seen. */
#include <stdlib.h>
#include <string.h>

struct note {
    struct note *next;
    char text[100];
};
static struct note *notes;

static char *upper(const char *text)
{
    char *copy = malloc(4096);
    memcpy(copy, text, 4096);
    return copy;
}

void filter(const char *text);
void filter(const char *text)
{
    char *copy = upper(text);
    struct note *note = malloc(sizeof *note); /* planted */
    memcpy(note->text, copy, sizeof note->text);
    note->next = notes;
    notes = note;
    free(copy);
}
