/* symbolize.c: symbolises a list of addresses with the library's own symbols module, for comparison with eu-addr2line.
 *
 * usage: symbolize FILE < addresses    (hexadecimal, as in the file; looked up as they are, like addr2line does)
 * Prints what `addr2line -a -i -f` prints for the same list (raw names with -r), and the time on standard error: -q
 * leaves the time alone, -t N sets the number of threads, -s N the bytes of a slice, -b HEX the build id, -p shows
 * progress. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/symbols/symbols.h"

static void show_progress(void *context, size_t done, size_t total)
{
    (void)context;
    fprintf(stderr, "\r%zu/%zu", done, total);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: symbolize [-p] [-q] [-r] [-t THREADS] [-s BYTES] [-b BUILD-ID] FILE < ADDRESSES\n");
        return 2;
    }
    struct ta__symbolizer_options options = {0};
    int quiet = 0, raw = 0;
    static uint8_t build_id[64];
    uint32_t build_id_length = 0;
    int at = 1;
    for (; at < argc - 1; at++) {
        if (strcmp(argv[at], "-p") == 0)
            options.progress = show_progress;
        else if (strcmp(argv[at], "-q") == 0)
            quiet = 1;
        else if (strcmp(argv[at], "-r") == 0)
            raw = 1;
        else if (strcmp(argv[at], "-t") == 0 && at + 2 < argc)
            options.threads = (unsigned)atoi(argv[++at]);
        else if (strcmp(argv[at], "-s") == 0 && at + 2 < argc)
            options.slice_bytes = strtoull(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "-b") == 0 && at + 2 < argc)
            for (const char *hex = argv[++at];
                 build_id_length < 64 && sscanf(hex, "%2hhx", &build_id[build_id_length]) == 1; hex += 2)
                build_id_length++;
    }

    struct ta__symbolizer_address *addresses = NULL;
    uint32_t count = 0, capacity = 0;
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        if (count == capacity) {
            capacity = capacity ? capacity * 2 : 1024;
            addresses = realloc(addresses, capacity * sizeof *addresses);
            if (!addresses)
                return 2;
        }
        addresses[count++] =
            (struct ta__symbolizer_address){.address = strtoull(line, NULL, 16), .module = 1, .interrupted = 1};
    }

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    struct ta__symbolizer_module module = {.path = argv[at], .build_id = build_id, .build_id_length = build_id_length};
    struct ta__symbolizer *symbolizer = ta__symbolizer_open(&options, &module, 1);
    struct ta__symbols symbols;
    if (!symbolizer || ta__symbolizer_run(symbolizer, addresses, count, &symbols) != 0) {
        fprintf(stderr, "symbolize: failed\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);

    for (uint32_t i = 0; i < count && !quiet; i++) {
        printf("0x%016llx\n", (unsigned long long)addresses[i].address);
        for (uint32_t j = 0; j < symbols.ranges[i].count; j++) {
            const struct ta__view_symbol *symbol = &symbols.symbols[symbols.ranges[i].first + j];
            uint32_t name = raw ? symbol->raw_name : symbol->function;
            printf("%s\n%s:%u\n", name ? symbols.strings[name].text : "??", symbols.strings[symbol->file].text,
                   symbol->line);
        }
    }
    const char *reason;
    enum ta__symbolizer_state state = ta__symbolizer_module_state(symbolizer, 0, &reason);
    fprintf(stderr, "%u addresses, %u frames, state %d %s, %.3f s\n", count, symbols.symbol_count, (int)state, reason,
            (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
    ta__symbolizer_close(symbolizer);
    free(addresses);
    return 0;
}
