/* domain_report.c: the table of domains at exit, for TRACEALLOC_OPTIONS=domains_at_exit=1. One line per domain on file
 * descriptor 2; nothing without the option. */
#include <string.h>

#include "alloc/alloc.h"
#include "base/message.h"
#include "tracealloc.h"
#include "tracealloc/domain.h"

/* Text to the right of a column of `width`. */
static void put_right(struct ta__message *message, const char *text, size_t length, size_t width)
{
    for (size_t i = length; i < width; i++)
        ta__message_text(message, " ");
    ta__message_span(message, text, length);
}

static void put_number(struct ta__message *message, uint64_t number, size_t width)
{
    struct ta__message digits = {.length = 0};
    ta__message_number(&digits, number);
    put_right(message, digits.text, digits.length, width);
}

static void put_heads(void)
{
    static const char *const heads[] = {"domain", "live bytes", "blocks", "peak bytes", "allocated bytes", "blocks"};
    static const unsigned char widths[] = {10, 16, 12, 16, 18, 14};
    struct ta__message message;
    ta__message_begin_plain(&message);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        put_right(&message, heads[i], strlen(heads[i]), widths[i]);
    ta__message_text(&message, "  name");
    ta__message_send(&message);
}

static void put_domain(const struct ta_domain_stats *stats)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    put_number(&message, stats->domain, 10);
    put_number(&message, stats->live_bytes, 16);
    put_number(&message, stats->live_blocks, 12);
    if (stats->domain == 0)
        put_right(&message, "-", 1, 16);
    else
        put_number(&message, stats->peak_bytes, 16);
    put_number(&message, stats->allocated_bytes, 18);
    put_number(&message, stats->allocated_blocks, 14);
    ta__message_text(&message, "  ");
    ta__message_text(&message, ta_domain_name(stats->domain));
    ta__message_send(&message);
}

__attribute__((destructor)) static void report_at_exit(void)
{
    if (!ta__options.domains_at_exit)
        return;
    ta__message_line("domains at exit", ta_is_tracing() ? ":" : " (domain 0 is counted only while tracing):", NULL);
    put_heads();
    uint32_t count = ta__domain_count();
    for (uint32_t index = 0; index < count; index++) {
        const struct ta__domain *domain = ta__domain_at(index);
        struct ta_domain_stats stats;
        if (!ta__domain_is_dead(domain) && ta_domain_get_stats(domain->number, &stats, sizeof stats) == 0)
            put_domain(&stats);
    }
    if (ta_is_tracing()) {
        struct ta__message message;
        size_t current;
        ta_get_traced_memory(&current, NULL);
        ta__message_begin_plain(&message);
        put_right(&message, "all", 3, 10);
        put_number(&message, current, 16);
        ta__message_send(&message);
    }
}
