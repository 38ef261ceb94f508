/* stack_step.c: see stack_step.h. No malloc, no lock. */
#include "snapshot/triggers/stack_step.h"

#include <stddef.h>

#include "trace/unwind/modules.h"
#include "trace/unwind/rule_cache.h"

static int cfa_of(const struct ta__place *place, uint64_t rule, ta__word_reader read, uint64_t *cfa)
{
    switch (ta__rule_kind(rule)) {
    case TA__RULE_SP:
        *cfa = place->sp + (uint64_t)ta__rule_offset(rule);
        return 1;
    case TA__RULE_FP:
        *cfa = place->fp + (uint64_t)ta__rule_offset(rule);
        return 1;
    case TA__RULE_PLT:
        *cfa = ta__rule_plt_cfa(rule, (uintptr_t)place->ip, place->sp);
        return 1;
    case TA__RULE_FP_DEREF:
        return read(place->fp + (uint64_t)ta__rule_offset(rule), cfa);
    default:
        return 0;
    }
}

static int step_over_signal(struct ta__place *place, ta__word_reader read)
{
    uint64_t context = place->sp;
    place->is_interrupted = 1;
    return read(context + TA__SIGNAL_IP, &place->ip) && read(context + TA__SIGNAL_FP, &place->fp) &&
           read(context + TA__SIGNAL_SP, &place->sp) && place->ip != 0;
}

int ta__place_step(struct ta__place *place, ta__word_reader read)
{
    uint64_t cfa, fp = place->fp;
    uint64_t rule = place->is_interrupted ? ta__rule_interrupted((uintptr_t)place->ip) : ta__rule((uintptr_t)place->ip);
    if (ta__rule_kind(rule) == TA__RULE_SIGNAL)
        return step_over_signal(place, read);
    if (!cfa_of(place, rule, read, &cfa) || cfa <= place->sp || (cfa & 7) != 0)
        return 0;
    if (ta__rule_saves_fp(rule) &&
        !read((ta__rule_slot_from_fp(rule) ? place->fp : cfa) + (uint64_t)ta__rule_slot(rule), &fp))
        return 0;
#if defined(__x86_64__)
    if (!read(cfa - 8, &place->ip))
        return 0;
#else
    if (!read(cfa + (uint64_t)ta__rule_slot(rule) + 8, &place->ip))
        return 0;
#endif
    place->sp = cfa;
    place->fp = fp;
    place->is_interrupted = 0;
    return place->ip != 0;
}

void ta__place_text(struct ta__message *message, uint64_t ip)
{
    struct ta__module scratch;
    const struct ta__module *module = ta__module_describe((uintptr_t)ip, &scratch);
    ta__message_begin_plain(message);
    if (module != NULL && module->path != NULL) {
        ta__message_text(message, module->path);
        ta__message_text(message, "+");
        ip -= module->bias;
    }
    ta__message_hex(message, ip);
    message->text[message->length < TA__MESSAGE_MAX ? message->length : TA__MESSAGE_MAX - 1] = '\0';
}
