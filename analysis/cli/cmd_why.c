/* cmd_why.c: tracealloc why — what an address of a process is, and who points to the block that it lies in. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/cli/block_age.h"
#include "analysis/cli/inside.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/places.h"
#include "analysis/cli/table.h"

enum { STEPS_MOST = 40 };

static const char *const kind_names[] = {
    [TA_PLACE_NOTHING] = "nothing",     [TA_PLACE_BLOCK] = "block",   [TA_PLACE_BEHIND] = "behind",
    [TA_PLACE_HEADER] = "header",       [TA_PLACE_FREE] = "free",     [TA_PLACE_DAMAGED] = "damaged",
    [TA_PLACE_ALLOCATOR] = "allocator", [TA_PLACE_TABLES] = "tables", [TA_PLACE_REGISTER] = "register",
    [TA_PLACE_STACK] = "stack",         [TA_PLACE_DATA] = "data",     [TA_PLACE_CODE] = "code",
    [TA_PLACE_MAPPING] = "mapping",
};

static int is_block(const struct ta_place *place)
{
    return place->kind == TA_PLACE_BLOCK || place->kind == TA_PLACE_BEHIND || place->kind == TA_PLACE_HEADER;
}

/* What is asked of. */
struct asking {
    FILE *out; /* what is said, to be wrapped at last */
    struct ta_snapshot *snapshot;
    struct ta_statistics *own;
    const char *history;      /* a recording of the process, or NULL */
    struct cli_block_age age; /* by it; now_ns is 0 when it says nothing of the block */
};

/* ---- in words ---------------------------------------------------------------------------------------------------- */

/* A function or a type, as the other commands shorten them; whole names are in JSON. */
static void say_name(const struct asking *asking, const char *before, const char *name)
{
    char *shorter = cli_function_name(name);
    fprintf(asking->out, "%s%s", before, shorter);
    free(shorter);
}

static void say_block(const struct asking *asking, const struct ta_place *place)
{
    char size[32], *asker = cli_trace_label(asking->snapshot, asking->own, place->trace);
    ta_size_text((double)place->size, 0, size, sizeof size);
    fprintf(asking->out, "block of %s at 0x%" PRIx64, size, place->start);
    if (*place->type != '\0')
        say_name(asking, ", a ", place->type);
    fprintf(asking->out, ", from %s", asker);
    free(asker);
}

static void say_place(const struct asking *asking, const struct ta_place *place)
{
    switch (place->kind) {
    case TA_PLACE_REGISTER:
        fprintf(asking->out, "register %s of thread %u", place->name, place->thread);
        break;
    case TA_PLACE_STACK:
        fprintf(asking->out, "stack of thread %u, 0x%" PRIx64, place->thread, place->address);
        if (*place->name != '\0')
            say_name(asking, ", in the frame of ", place->name);
        break;
    case TA_PLACE_DATA:
        fprintf(asking->out, "data, 0x%" PRIx64 ": %s", place->address, place->name);
        break;
    case TA_PLACE_CODE:
        fprintf(asking->out, "code, 0x%" PRIx64 ": %s", place->address, place->name);
        break;
    default:
        fprintf(asking->out, "mapping %s%s0x%" PRIx64 "+0x%" PRIx64, place->name, *place->name != '\0' ? ", " : "",
                place->start, place->offset);
        break;
    }
}

static void say_stack(const struct asking *asking, const struct ta_place *place)
{
    struct ta_traceback traceback;
    if (place->trace < 0) {
        fputs("  who asked for it is not known: it was not traced\n", asking->out);
        return;
    }
    traceback = ta_snapshot_trace_traceback(asking->snapshot, (size_t)place->trace);
    fputs("  asked for by\n", asking->out);
    for (size_t i = 0; i < ta_traceback_length(traceback); i++) {
        struct ta_frame frame;
        char where[4096];
        if (ta_traceback_frame(traceback, -1 - (int64_t)i, &frame) != 0)
            break;
        cli_place_text(&frame, where, sizeof where);
        const char *offset = strstr(where, "+0x"), *same = strstr(frame.function, "+0x");
        int says_more = *frame.function != '\0' && (offset == NULL || same == NULL || strcmp(offset, same) != 0);
        fprintf(asking->out, "    %s", where);
        if (says_more)
            say_name(asking, "  ", frame.function);
        fputc('\n', asking->out);
    }
}

static void say_age(const struct asking *asking)
{
    const struct cli_block_age *age = &asking->age;
    char earliest[64], latest[64];
    cli_time_text(age->earliest_ns, earliest, sizeof earliest);
    cli_time_text(age->latest_ns, latest, sizeof latest);
    double most = (double)(age->now_ns - age->earliest_ns) / 1e9, least = (double)(age->now_ns - age->latest_ns) / 1e9;
    int has_latest = age->latest_ns != age->now_ns;
    if (age->earliest_ns != 0 && has_latest)
        fprintf(asking->out, "  when: %.1f s to %.1f s ago, %s to %s\n", least, most, earliest, latest);
    else if (age->earliest_ns != 0)
        fprintf(asking->out, "  when: in the last %.1f s, after %s\n", most, earliest);
    else if (has_latest)
        fprintf(asking->out, "  when: more than %.1f s ago, before %s\n", least, latest);
    else
        fprintf(asking->out, "  when: is not in %s, there always were blocks of this stack\n", asking->history);
    fprintf(asking->out, "  %" PRIu64 " block%s of this stack live%s now\n", age->live, cli_s(age->live),
            age->live == 1 ? "s" : "");
}

static void say_neighbour(const struct ta_why *why, const struct asking *asking, int side)
{
    struct ta_place place;
    if (ta_why_neighbour(why, side, &place) != 0)
        return;
    fprintf(asking->out, "  the block %s is ", side < 0 ? "before" : "behind");
    if (place.kind == TA_PLACE_DAMAGED)
        fprintf(asking->out, "one of 0x%" PRIx64 " bytes at 0x%" PRIx64 ", whose header was overwritten", place.size,
                place.start);
    else {
        say_block(asking, &place);
        fprintf(asking->out, ", and ends at 0x%" PRIx64, place.start + place.size);
    }
    fputc('\n', asking->out);
}

/* Exact; large ones also as one reads them. */
static void exact_size(uint64_t bytes, char *text, size_t size)
{
    char short_one[32];
    ta_size_text((double)bytes, 0, short_one, sizeof short_one);
    if (bytes < 10240)
        snprintf(text, size, "%" PRIu64 " byte%s", bytes, cli_s(bytes));
    else
        snprintf(text, size, "%" PRIu64 " bytes (%s)", bytes, short_one);
}

static void say_what(const struct ta_why *why, const struct asking *asking)
{
    struct ta_place place;
    char size[64];
    ta_why_place(why, &place);
    exact_size(place.size, size, sizeof size);
    fprintf(asking->out, "%s0x%" PRIx64 "%s is ", cli_style(CLI_BOLD), place.address, cli_style(CLI_PLAIN));
    switch (place.kind) {
    case TA_PLACE_BLOCK:
        if (place.offset == 0)
            fprintf(asking->out, "a live block of %s\n", size);
        else
            fprintf(asking->out, "in a live block of %s at 0x%" PRIx64 ", %" PRIu64 " byte%s from its beginning\n",
                    size, place.start, place.offset, cli_s(place.offset));
        break;
    case TA_PLACE_BEHIND:
        fprintf(asking->out, "%" PRIu64 " byte%s behind the end of a live block of %s at 0x%" PRIx64 "\n",
                place.offset - place.size, cli_s(place.offset - place.size), size, place.start);
        break;
    case TA_PLACE_HEADER:
        fprintf(asking->out, "in front of a live block of %s, which begins at 0x%" PRIx64 "\n", size, place.start);
        break;
    case TA_PLACE_FREE:
        fprintf(asking->out,
                "in a free block of %s at 0x%" PRIx64 ", %" PRIu64
                " byte%s from its beginning: it was given back, or never used\n",
                size, place.start, place.offset, cli_s(place.offset));
        break;
    case TA_PLACE_DAMAGED:
        fprintf(asking->out, "in a block of %s at 0x%" PRIx64 " whose header was overwritten\n", size, place.start);
        break;
    case TA_PLACE_ALLOCATOR:
        fputs("memory of the allocator, in no block\n", asking->out);
        break;
    case TA_PLACE_TABLES:
        fputs("in the tables of tracealloc or its allocator\n", asking->out);
        break;
    case TA_PLACE_NOTHING:
        fprintf(asking->out, "not mapped%s%s\n", *place.name != '\0' ? ": " : "", place.name);
        break;
    default:
        say_place(asking, &place);
        fputc('\n', asking->out);
        break;
    }
    if (is_block(&place)) {
        if (*place.type != '\0') {
            say_name(asking, "  it is a ", place.type);
            fputc('\n', asking->out);
        }
        say_stack(asking, &place);
        if (asking->age.now_ns != 0)
            say_age(asking);
    }
    if (place.kind != TA_PLACE_BLOCK) {
        say_neighbour(why, asking, -1);
        say_neighbour(why, asking, 1);
    }
}

static void say_path(const struct asking *asking, const struct ta_place *steps, size_t length)
{
    size_t shown = length < STEPS_MOST ? length : STEPS_MOST;
    for (size_t i = 0; i < shown; i++) {
        fprintf(asking->out, i == 0 ? "    " : "      → ");
        if (i == 0)
            say_place(asking, &steps[i]);
        else if (i + 1 == length)
            fprintf(asking->out, "this block");
        else {
            say_block(asking, &steps[i]);
            fprintf(asking->out, ", at +%" PRIu64, steps[i].offset);
        }
        fputc('\n', asking->out);
    }
    if (shown < length)
        fprintf(asking->out, "      → … %zu step%s more\n", length - shown, cli_s(length - shown));
}

static void say_pointers(const struct ta_why *why, const struct asking *asking, size_t most)
{
    uint64_t count = ta_why_referrer_count(why);
    struct ta_place place, steps[STEPS_MOST + 1];
    if (count == 0) {
        fputs("  nothing points to it: it is lost\n", asking->out);
        return;
    }
    fprintf(asking->out, "  %" PRIu64 " pointer%s to it:\n", count, cli_s(count));
    for (size_t i = 0; i < most && ta_why_referrer(why, i, &place) == 0; i++) {
        fprintf(asking->out, "    ");
        if (is_block(&place)) {
            say_block(asking, &place);
            fprintf(asking->out, ", at +%" PRIu64, place.offset);
        } else {
            say_place(asking, &place);
        }
        fputc('\n', asking->out);
    }
    if (count > most)
        fprintf(asking->out, "    … and %" PRIu64 " more (-n 0 lists up to a thousand)\n", count - most);
    if (!ta_why_is_reached(why)) {
        fputs("  but nothing leads there from outside of malloc's blocks: it is lost\n", asking->out);
        return;
    }
    fputs("  shortest ways from outside:\n", asking->out);
    for (size_t i = 0; i < 3 && i < most; i++) {
        size_t length = ta_why_path(why, i, steps, STEPS_MOST + 1);
        if (length == 0)
            break;
        say_path(asking, steps, length);
    }
}

/* ---- for machines ------------------------------------------------------------------------------------------------ */

static void print_place(const struct asking *asking, const struct ta_place *place)
{
    printf("{\"kind\": \"%s\", \"address\": \"0x%" PRIx64 "\"", kind_names[place->kind], place->address);
    if (place->size > 0 || is_block(place))
        printf(", \"start\": \"0x%" PRIx64 "\", \"size\": %" PRIu64 ", \"offset\": %" PRId64, place->start, place->size,
               (int64_t)place->offset);
    if (place->thread != 0)
        printf(", \"thread\": %u", place->thread);
    if (*place->name != '\0') {
        fputs(", \"name\": ", stdout);
        cli_print_json_string(stdout, place->name, strlen(place->name));
    }
    if (*place->type != '\0') {
        fputs(", \"type\": ", stdout);
        cli_print_json_string(stdout, place->type, strlen(place->type));
    }
    if (is_block(place)) {
        char *asker = cli_trace_label(asking->snapshot, asking->own, place->trace);
        fputs(", \"where\": ", stdout);
        cli_print_json_string(stdout, asker, strlen(asker));
        free(asker);
    }
    putchar('}');
}

static void print_json(const struct ta_why *why, const struct asking *asking, size_t most)
{
    struct ta_place place, steps[STEPS_MOST + 1];
    ta_why_place(why, &place);
    fputs("{\"place\": ", stdout);
    print_place(asking, &place);
    char *stack = place.trace >= 0 ? cli_stack_text(ta_snapshot_trace_traceback(asking->snapshot, (size_t)place.trace))
                                   : cli_text("%s", "");
    fputs(", \"stack\": ", stdout);
    cli_print_json_string(stdout, stack, strlen(stack));
    free(stack);
    if (asking->age.now_ns != 0) {
        printf(", \"age\": {\"live_blocks\": %" PRIu64, asking->age.live);
        if (asking->age.earliest_ns != 0)
            printf(", \"most_ns\": %" PRIu64, asking->age.now_ns - asking->age.earliest_ns);
        printf(", \"least_ns\": %" PRIu64 "}", asking->age.now_ns - asking->age.latest_ns);
    }
    for (int side = -1; side <= 1; side += 2)
        if (ta_why_neighbour(why, side, &place) == 0) {
            fputs(side < 0 ? ", \"before\": " : ", \"behind\": ", stdout);
            print_place(asking, &place);
        }
    printf(", \"pointers\": %" PRIu64 ", \"reached\": %s, \"referrers\": [", ta_why_referrer_count(why),
           ta_why_is_reached(why) ? "true" : "false");
    for (size_t i = 0; i < most && ta_why_referrer(why, i, &place) == 0; i++) {
        fputs(i == 0 ? "" : ", ", stdout);
        print_place(asking, &place);
    }
    fputs("], \"paths\": [", stdout);
    for (size_t i = 0; i < 3; i++) {
        size_t length = ta_why_path(why, i, steps, STEPS_MOST + 1);
        if (length == 0)
            break;
        fputs(i == 0 ? "[" : ", [", stdout);
        for (size_t k = 0; k < length && k < STEPS_MOST + 1; k++) {
            fputs(k == 0 ? "" : ", ", stdout);
            print_place(asking, &steps[k]);
        }
        putchar(']');
    }
    fputs("]}\n", stdout);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int parse_address(const char *text, uint64_t *address)
{
    char *end;
    errno = 0;
    *address = strtoull(text, &end, 0);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 ? 0 : -1;
}

/* The words of the answer, in lines as wide as the terminal. */
static void say(const struct ta_why *why, struct asking *asking, int says_pointers, size_t most)
{
    char *text = NULL;
    size_t length = 0;
    asking->out = open_memstream(&text, &length);
    if (asking->out == NULL)
        return;
    say_what(why, asking);
    if (says_pointers)
        say_pointers(why, asking, most);
    if (fclose(asking->out) == 0)
        cli_print_wrapped(text);
    free(text);
}

static int tell(const struct cli_inside *inside, struct ta_image *image, uint64_t address)
{
    struct ta_why *why = ta_image_why(image, address);
    struct asking asking = {.snapshot = ta_image_snapshot(image), .history = inside->history};
    size_t most = cli_inside_rows(inside, 10);
    if (why == NULL)
        return cli_library_error("why");
    struct ta_place place;
    ta_why_place(why, &place);
    if (inside->history != NULL && is_block(&place) && place.trace >= 0 &&
        cli_block_age(&asking.age, inside->history, asking.snapshot, (size_t)place.trace) != 0) {
        ta_why_free(why);
        return CLI_TROUBLE;
    }
    asking.own = ta_snapshot_statistics(asking.snapshot, "own", 0);
    if (inside->json)
        print_json(why, &asking, most);
    else
        say(why, &asking, is_block(&place) && !inside->brief, most);
    ta_statistics_free(asking.own);
    ta_why_free(why);
    return cli_finish_output();
}

/* Of a core that ended with a fault, the address of the fault is what one wants to know of. */
static int address_of_fault(const char *what, uint64_t *address)
{
    struct ta_image *image = ta_image_open(what, NULL, 0);
    struct ta_image_info info = {0};
    if (image == NULL)
        return cli_error("%s", ta_error_text());
    ta_image_get_info(image, &info, sizeof info);
    ta_image_close(image);
    *address = info.fault_address;
    if (info.signal != 0 && info.has_fault_address)
        return CLI_OK;
    if (info.signal != 0)
        return cli_error("%s: was ended by SIG%s, which says no address: tracealloc why ADDRESS %s", what,
                         sigabbrev_np((int)info.signal) != NULL ? sigabbrev_np((int)info.signal) : "?", what);
    return cli_error("%s: did not fail at an address: tracealloc why ADDRESS %s", what, what);
}

static int run(int argc, char **argv)
{
    static const int options[] = {INSIDE_LIMIT,
                                  INSIDE_JSON,
                                  INSIDE_COLOR,
                                  INSIDE_NO_PAUSE,
                                  INSIDE_TAGGED,
                                  INSIDE_UNALIGNED,
                                  INSIDE_AT,
                                  INSIDE_REGISTERS,
                                  INSIDE_BRIEF,
                                  INSIDE_HISTORY,
                                  0};
    struct cli_inside inside;
    uint64_t address = 0;
    if (cli_inside_parse(&inside, &cli_why, options, 1, 2, argc, argv) != 0)
        return CLI_TROUBLE;
    if (inside.help)
        return cli_finish_output();
    const char *text = inside.at != NULL ? inside.at : inside.operand_count == 2 ? inside.operands[0] : NULL;
    const char *what = inside.operands[inside.operand_count - 1];
    if (inside.at != NULL && inside.operand_count == 2)
        return cli_error("why: one address, please");
    if (text == NULL && strncmp(what, "0x", 2) == 0 && parse_address(what, &address) == 0)
        return cli_error("why: %s of which process or core? tracealloc why %s PID|CORE", what, what);
    if (text != NULL && parse_address(text, &address) != 0)
        return cli_error("why: expected an address such as 0x7f12345678a0, not '%s'", text);
    if (text == NULL && address_of_fault(what, &address) != CLI_OK)
        return CLI_TROUBLE;
    inside.image.about = address;
    struct ta_image *image = cli_inside_open(&inside, what, TA_IMAGE_PATHS);
    if (image == NULL)
        return CLI_TROUBLE;
    int status = tell(&inside, image, address);
    ta_image_close(image);
    return status;
}

const struct cli_command cli_why = {
    .name = "why",
    .arguments = "[ADDRESS] PID|CORE [-n N] [--history FILE] [--tagged] [--json]",
    .summary = "say what an address of a process is, and who points to its block",
    .help = "  -n N             so many pointers to the block: 10 unless given, 0 = all (up to a thousand)\n"
            "  --at ADDRESS     the same as ADDRESS in front\n"
            "  --brief          what the address is, not who points there\n"
            "  --history FILE   a recording of the process, as run writes it: between which entries the block was "
            "asked for\n"
            "  --tagged         the upper 16 bits of pointers may be anything\n"
            "  --unaligned      pointers may stand anywhere, not only at multiples of 8\n"
            "  --no-pause       do not hold the process still; --registers TID=SP,IP,TLS,…;… says its threads, for "
            "debuggers\n"
            "  --json           {place, stack, age, before, behind, pointers, referrers, paths}\n"
            "  --color WHEN     auto (default), always or never\n"
            "\n"
            "Of a live block: its size, who asked for it, the pointers to it, and the shortest ways to it from\n"
            "registers, stacks and data, with the place of each pointer. Of any other address: what it is, and which\n"
            "blocks are its neighbours. Without an address: where the program of a core failed.\n"
            "\n"
            "  tracealloc why 0x55d0c8a3f2a0 1234\n"
            "  tracealloc why core.1234\n",
    .run = run,
};
