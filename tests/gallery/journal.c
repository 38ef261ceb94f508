/* journal.c: a journal in one buffer that doubles when it is full, and is never flushed; beside it batches that come and
 * go, many times as large. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct journal {
    char *text;
    size_t length, room;
};

__attribute__((noinline)) static void append(struct journal *journal, const char *line)
{
    size_t length = strlen(line);
    if (journal->length + length > journal->room) {
        journal->room = journal->room + journal->room / 8 + 4096;
        journal->text = realloc(journal->text, journal->room); /* planted */
    }
    memcpy(journal->text + journal->length, line, length);
    journal->length += length;
}

__attribute__((noinline)) static void work(void **batch, int round)
{
    if (round % 200 == 199)
        for (int i = 0; i < 200; i++) {
            free(batch[i]);
            batch[i] = NULL;
        }
    else
        batch[round % 200] = calloc(1, 16384); /* batch */
}

int main(int argc, char **argv)
{
    struct journal journal = {0};
    void *batch[200] = {0};
    int rounds = argc > 1 ? atoi(argv[1]) : 3000;
    for (int i = 0; i < rounds; i++) {
        char line[300];
        work(batch, i);
        snprintf(line, sizeof line, "%0250d\n", i);
        append(&journal, line);
        usleep(200);
    }
    return 0;
}
