/* domain_rules.c: reads a file of rules (base/rule_text.h has the grammar) and puts them in force.
 *
 * Nothing changes before the whole file has been read and found right. Rules stay in memory for ever, because frames are
 * matched with them at any time; a file that is loaded again leaves its former rules behind. */
#include <errno.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/domains/domain_table.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/rule_text.h"
#include "trace/attribution.h"
#include "tracealloc/domain.h"

/* ---- in force ---------------------------------------------------------------------------------------------------- */

static struct ta__lock one_at_a_time = {.rank = TA__RANK_RULES};

static int refuse(struct ta__rule_text *text, const char *what)
{
    ta__message_begin_plain(&text->error);
    ta__message_text(&text->error, text->path);
    ta__message_text(&text->error, what);
    return 0;
}

/* With what the program has said: a name of another domain is taken. */
static int check_names(struct ta__rule_text *text)
{
    for (uint32_t i = 0; i < text->rule_count; i++) {
        const struct ta__rule *rule = &text->rules[i];
        uint32_t holder;
        if (!ta_domain_find(rule->name, &holder) || holder == rule->number)
            continue;
        refuse(text, ":");
        ta__message_number(&text->error, rule->line);
        ta__message_text(&text->error, ":1: another domain of the program has the name already: '");
        ta__message_text(&text->error, rule->name);
        ta__message_text(&text->error, "'");
        return 0;
    }
    return 1;
}

static int set_names(struct ta__rule_text *text)
{
    for (uint32_t i = 0; i < text->rule_count; i++)
        if (ta_domain_set_name(text->rules[i].number, text->rules[i].name) != 0) {
            refuse(text, ": ");
            ta__message_text(&text->error, ta__error_text());
            return 0;
        }
    return 1;
}

/* Inside an operation. */
static int apply(const struct ta__rule_text *text, struct ta__attribution_rule *rules)
{
    int result = ta__trace_tables_ready();
    for (uint32_t i = 0; i < text->rule_count && result; i++) {
        int index = ta__domain_index(text->rules[i].number);
        rules[i] = (struct ta__attribution_rule){(uint32_t)index, &text->rules[i]};
        result = index >= 0;
    }
    result = result && ta__attribution_set(rules, text->rule_count, text);
    for (uint32_t index = 1; index < ta__domain_count() && result; index++)
        ta__store_relaxed(&ta__domain_at(index)->is_ruled, 0u);
    for (uint32_t i = 0; i < text->rule_count && result; i++)
        ta__store_relaxed(&ta__domain_at(rules[i].domain)->is_ruled, 1u);
    ta__gate_change(TA__GATE_DOMAINS, 0); /* every thread learns of the rules */
    return result;
}

static int put_in_force(struct ta__rule_text *text)
{
    size_t bytes = (text->rule_count + 1) * sizeof(struct ta__attribution_rule);
    struct ta__attribution_rule *rules = ta__memory_map(bytes);
    uint32_t gate;
    int result = 0;
    if (rules == NULL)
        return refuse(text, ": no memory for the rules");
    if (set_names(text)) {
        struct ta__thread *self = ta__begin(&gate);
        if (self != NULL) {
            result = apply(text, rules) || refuse(text, ": no memory for the rules");
            ta__end(self, gate);
        } else {
            refuse(text, ": not from inside the allocator");
        }
    }
    if (!result)
        ta__memory_unmap(rules, bytes);
    return result;
}

static int load(struct ta__rule_text *text, const char *path)
{
    if (!ta__rule_text_read(text, path))
        return 0;
    if (text->wants_files && !text->is_compiled)
        return refuse(text, ": file= needs debug information, which only the compiled rules have: "
                            "tracealloc rules compile (tracealloc run --rules does it by itself)");
    return check_names(text) && put_in_force(text);
}

TA_API int ta_domain_load_rules(const char *path)
{
    if (ta__thread_get() == NULL) {
        errno = EAGAIN;
        return ta__error_set("not from inside the allocator", NULL);
    }
    /* It stays when the rules do. */
    struct ta__rule_text *text = ta__memory_map(sizeof *text);
    if (text == NULL) {
        errno = ENOMEM;
        return ta__error_set(path, ": no memory to read it", NULL);
    }
    ta__lock_acquire(&one_at_a_time);
    int result = load(text, path);
    ta__lock_release(&one_at_a_time);
    if (result)
        return 0;
    struct ta__message error = text->error;
    ta__rule_text_close(text);
    ta__memory_unmap(text, sizeof *text);
    errno = EINVAL;
    return ta__error_take(&error);
}

void ta__domain_rules_after_fork(void)
{
    ta__lock_after_fork(&one_at_a_time);
}
