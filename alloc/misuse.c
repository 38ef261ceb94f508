/* misuse.c: wrong pointers given to free and realloc.
 *
 *      the pointer is …                          what happens
 *      in no page of ours                        ignored and counted: it may belong to another allocator
 *      in our memory, header does not verify     one line; then abort, or leak with on_corruption=leak
 *      the same where a destroyed domain was      one line for the first; ignored and counted
 *
 * The line says what the pointer most likely is, and with tracing on where the block it points into was allocated. */
#include "alloc/alloc.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/message.h"
#include "trace/modules.h"

void ta__foreign(void *user)
{
    (void)user;
    ta__add_relaxed(&ta__trace_events.foreign_frees, 1);
}

/* The live block around an address, or NULL. */
static struct ta__header *surrounding_block(void *user)
{
    mi_page_t *page = ta__heap_page(user);
    if (page == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)mi_page_start(page);
    size_t bytes = mi_page_block_size(page);
    if ((uintptr_t)user < start || bytes == 0)
        return NULL;
    struct ta__header *header = ta__header_in_block((void *)(start + ((uintptr_t)user - start) / bytes * bytes));
    if (!ta__header_verifies(ta__header_user(header)))
        return NULL;
    uintptr_t begin = (uintptr_t)ta__header_user(header);
    return (uintptr_t)user > begin && (uintptr_t)user - begin < bytes ? header : NULL;
}

static void say_frames(uint32_t leaf)
{
    enum { FRAMES_SHOWN = 32 };
    uint64_t addresses[FRAMES_SHOWN];
    size_t count = ta__leaf_frames(leaf, addresses, FRAMES_SHOWN);
    for (size_t i = 0; i < count && i < FRAMES_SHOWN; i++) {
        uint64_t address = addresses[i];
        struct ta__message message;
        ta__message_begin_plain(&message);
        ta__message_text(&message, "  ");
        ta__module_id id = ta__module_find((uintptr_t)address);
        if (id.v != 0) {
            const struct ta__module *module = ta__module_at(id);
            ta__message_text(&message, module->path);
            ta__message_text(&message, "+");
            ta__message_hex(&message, address - module->bias);
        } else {
            ta__message_hex(&message, address);
        }
        ta__message_send(&message);
    }
}

void ta__misuse_dead(const char *call, void *user)
{
    static uint32_t said;
    ta__add_relaxed(&ta__trace_events.invalid_frees, 1);
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) != 0)
        return;
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, call);
    ta__message_text(&message, "(");
    ta__message_hex(&message, (uintptr_t)user);
    ta__message_text(&message, "): a block of a domain that was destroyed, or no block; ignored from now on");
    ta__message_send(&message);
}

void ta__misuse(const char *call, void *user)
{
    ta__add_relaxed(&ta__trace_events.invalid_frees, 1);
    struct ta__message message;
    ta__message_begin(&message);
    ta__message_text(&message, call);
    ta__message_text(&message, "(");
    ta__message_hex(&message, (uintptr_t)user);
    struct ta__header *around = surrounding_block(user);
    if (around == NULL) {
        ta__message_text(&message, "): double free or damaged block");
    } else {
        ta__message_text(&message, "): not the start of a block, ");
        ta__message_number(&message, (uintptr_t)user - (uintptr_t)ta__header_user(around));
        ta__message_text(&message, " bytes inside one of ");
        ta__message_number(&message, ta__header_size(around));
        if ((ta__gate_read() & TA__GATE_TRACING) == 0)
            ta__message_text(&message, "; with TRACEALLOC=100 in the environment, it would say who allocated that");
    }
    ta__message_send(&message);
    if (around != NULL && (ta__header_kind(ta__header_user(around)) & TA__KIND_TRACED) != 0 &&
        ta__trace_is_present(ta__header_epoch(around))) {
        ta__message_begin_plain(&message);
        ta__message_text(&message, "Memory block allocated at (most recent call first):");
        ta__message_send(&message);
        say_frames(around->leaf);
    }
    if (!ta__options.leak_on_corruption)
        abort();
}
