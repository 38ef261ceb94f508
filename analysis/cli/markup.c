/* markup.c: see markup.h. */
#include "analysis/cli/markup.h"

#include <stdio.h>

static void print_escaped(const char *text, const char *(*escape)(char character))
{
    for (; *text != '\0'; text++) {
        const char *as = escape(*text);
        if (as != NULL)
            fputs(as, stdout);
        else
            putchar((unsigned char)*text < 0x20 ? '?' : *text);
    }
}

static const char *xml(char character)
{
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    default:
        return NULL;
    }
}

static const char *workflow(char character)
{
    switch (character) {
    case '%':
        return "%25";
    case '\n':
        return "%0A";
    case '\r':
        return "%0D";
    default:
        return NULL;
    }
}

void cli_print_xml(const char *text)
{
    print_escaped(text, xml);
}

void cli_print_workflow(const char *text)
{
    print_escaped(text, workflow);
}
