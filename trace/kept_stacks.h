/* kept_stacks.h: the stacks that a thread met again and again, each with the words it was read from.
 *
 * The memo (capture.h) remembers one stack, the last. A program's loop mostly makes several requests in turn, from
 * stacks that differ in a few inner frames; walking those frames again each time is what tracing would cost most. So a
 * stack that is met a second time with the same registers is kept here: when all its words still hold their values, it
 * is the same stack (for the reason given in capture.c), and its leaf is the answer. Nothing else is touched.
 *
 *   heads        by return address and sp: the first path of these registers; the path found last, and the one expected next
 *   path         one stack: its words, innermost first, are values of its chunks, found at sp + offsets
 *   branches     (path, number of a word, what it is now) → the first path that has the words before it, and this one
 *   follower     of a path: the other one that was found next of this head; programs repeat the order of their requests. A
 *                path says, too, whether it was itself that came next: so one of the two is expected, and looked at first
 *
 *        head ──▶ path  a b c d e
 *                         │   └ x ──▶ path  a b c d x           of a stack  a y c z:  its second word is not b, but
 *                         └ y ──▶ path  a y c d e               a path has y there; its fourth is not d, and none
 *                                         └ w ──▶ path  a y c w e      has z: it is not kept, and would go there
 *
 * So each word is compared once, and a stack that is not found is known to be that of no path. A search may begin at any
 * path of the registers, and begins at the one that was expected: where a word differs that the path has in common
 * with the one it branches off from, the search goes on in that one. Only the owner reads and writes. When there is no more
 * room, or rules or limit change, all is forgotten at once. Where most of what filled the room had been kept before, there
 * is twice the room from then on, as far as the program has the memory for it. */
#ifndef TA_TRACE_KEPT_STACKS_H
#define TA_TRACE_KEPT_STACKS_H

#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/hash.h"
#include "trace/trace.h"
#include "trace/unwind/rule_cache.h"
#include "trace/thread_state.h"

/* The thread's own small table of rules, in front of the one that all share: the latter gives each call site a cache
 * line and every 128 bytes of code a page, which a walk of three frames pays in misses. Nobody else reads or writes it,
 * so that an entry is just address and rule. It is void when the shared table's tag has moved. */
struct ta__near_rule {
    uint64_t ip;
    uint64_t rule;
};
/* The same for the table of leaves; void when numbers come to mean other leaves. */
struct ta__near_leaf {
    uint64_t hash;
    uint64_t leaf;
};
/* With a limit of one frame: a call site, and what its blocks are counted as. Void with the kept stacks. */
struct ta__near_site {
    uint64_t ip;
    struct ta__source_counts *row;
    uint32_t leaf, domain;
};
enum { TA__NEAR_RULES = 1024, TA__NEAR_LEAVES = 1024, TA__NEAR_SITES = 256 };

enum {
    /* The room that each thread begins with; it doubles up to TA__KEPT_ROOM_MOST times. */
    TA__KEPT_PATHS = 2048, /* the first is none */
    TA__KEPT_BRANCHES = 4096,
    TA__KEPT_CHUNKS = 8192,
    TA__KEPT_ROOM_MOST = 3,
    TA__KEPT_HEADS = 4096,
    TA__KEPT_CANDIDATES = 16384,
    TA__KEPT_WORDS_EACH = 1024,
    TA__KEPT_CHUNK = 4,
};

/* Words of a stack and where they are read; the last one is repeated to fill the last chunk. They are compared two chunks
 * at a time: of an odd number one first, and a path then begins one chunk in front of its first. */
struct ta__kept_chunk {
    _Alignas(16) uint64_t values[TA__KEPT_CHUNK];
    uint32_t offsets[TA__KEPT_CHUNK];
};

struct ta__kept_path {
    _Alignas(TA_CACHE_LINE) uint64_t ip;
    uint64_t sp;          /* with bit 0 where the domain is not 0, so that requests in domain 0 need not ask for it */
    uint64_t fp, fp_mask; /* 0 where fp does not decide what lies further out */
    const char *chunks_end;
    int32_t chunks_begin; /* from there, in bytes */
    uint32_t leaf;
    uint32_t domain;
    uint32_t room;   /* from sp to the end of the stack that all its words lie in; 0: the stack is the thread's own */
    uint16_t parent; /* the path that it branches off from; 0: none */
    union {
        uint16_t number; /* of the first word that differs from the parent's */
        uint16_t next;   /* without a parent: another path with the same head, of other registers */
    };
    uint16_t follower; /* 0: not known */
    uint8_t is_odd;
    uint8_t turns; /* TA__KEPT_MOVES and TA__KEPT_EXPECTED; not 0: ta__kept_turn when it is found */
};
_Static_assert(sizeof(struct ta__kept_path) == TA_CACHE_LINE, "one line");

enum {
    TA__KEPT_MOVES = 1,    /* the follower came next the last time, and not the path itself */
    TA__KEPT_EXPECTED = 2, /* it is expected behind another one, and has perhaps not been found yet */
};

/* Expected and last are of the thread's own stack. */
struct ta__kept_head {
    uint32_t expected;    /* the path that is tried first: its distance in bytes; 0: none */
    uint16_t first, last; /* of the registers' paths; the one that was found last */
};

struct ta__kept_branch {
    uint64_t word;
    uint32_t from;   /* near->era | the number of a path; an entry of another era is empty */
    uint16_t number; /* of the word: the place of its chunk in bytes, and its own in that */
    uint16_t to;
};
_Static_assert(TA__KEPT_WORDS_EACH / TA__KEPT_CHUNK * sizeof(struct ta__kept_chunk) <= UINT16_MAX, "it has room");

/* All that a thread keeps beside its memo. */
struct ta__near {
    uint64_t tag;          /* the tag of the shared rules that rules and paths come from */
    uint32_t leaf_meaning; /* when the near leaves were true */
    uint32_t paths_used, chunks_used, branches_used;
    uint32_t paths_max, chunks_max, branches_max;
    uint32_t kept_again; /* of the paths: stacks that had been kept before, and were forgotten */
    uint32_t has_sites;
    uint32_t keeps_none;            /* there are so few requests to answer that keeping stacks would only take memory */
    uint32_t era;                   /* above the bits of a path's number */
    struct ta__kept_branch missing; /* what the last search would have needed to go on; from 0: nothing */
    struct ta__kept_branch *missing_at; /* the empty entry where that would have been */
    struct ta__kept_chunk *chunks;      /* these two lie behind the paths */
    struct ta__kept_branch *branches;
    uint32_t branch_shift; /* of 64 bits, to a number of a branch */
    struct ta__near_rule rules[TA__NEAR_RULES];
    struct ta__near_leaf leaves[TA__NEAR_LEAVES];
    struct ta__near_site sites[TA__NEAR_SITES];
    struct ta__kept_head heads[TA__KEPT_HEADS];
    uint32_t candidates[TA__KEPT_CANDIDATES]; /* stacks that were walked lately; bit 0 is 0 where it was kept then */
    struct ta__kept_path paths[];
};

/* Bytes of all that, with room for 2^room times as many kept stacks as each thread begins with. */
TA_INLINE size_t ta__near_bytes(uint32_t room)
{
    enum {
        ROOM_BYTES = TA__KEPT_PATHS * sizeof(struct ta__kept_path) + TA__KEPT_CHUNKS * sizeof(struct ta__kept_chunk) +
                     TA__KEPT_BRANCHES * sizeof(struct ta__kept_branch)
    };
    return sizeof(struct ta__near) + ((size_t)ROOM_BYTES << room);
}

TA_INLINE struct ta__near_site *ta__near_site_of(struct ta__near *near, uint64_t ip)
{
    return &near->sites[(uint32_t)ip * UINT32_C(0x9E3779B1) >> 24];
}
_Static_assert(TA__NEAR_SITES == 1 << 8, "as many as the number has bits");

TA_INLINE uint32_t ta__kept_head_of(uint64_t ip, uint64_t sp)
{
    return (((uint32_t)ip + (uint32_t)sp) * UINT32_C(0x9E3779B1)) >> 20;
}
_Static_assert(TA__KEPT_HEADS == 1 << 12, "as many as the number has bits");

/* All but the stack, which is the same where sp is, if it is the thread's own. */
TA_INLINE int ta__kept_has_registers(const struct ta__kept_path *path, uint64_t ip, uint64_t sp, uint64_t fp,
                                     uint32_t domain)
{
    return path->ip == ip && path->sp == (sp | (domain != 0)) && (domain == 0 || path->domain == domain) &&
           ((path->fp ^ fp) & path->fp_mask) == 0;
}

/* Do the words still have their values? They are looked at two to a register, without a branch between: that takes fewer
 * instructions, and less time, than one by one (docs/performance-causes.md). */
#if defined(__SSE2__)
typedef __m128i ta__kept_same;
#define TA__KEPT_SAME_AT_FIRST _mm_set1_epi32(-1)

TA_READS_STACKS_INLINE __m128i ta__kept_chunk_same(const struct ta__kept_chunk *chunk, uint64_t sp, __m128i same)
{
#pragma GCC unroll 2
    for (int i = 0; i < TA__KEPT_CHUNK; i += 2) {
        __m128d words = _mm_load_sd((const double *)(sp + chunk->offsets[i]));
        words = _mm_loadh_pd(words, (const double *)(sp + chunk->offsets[i + 1]));
        __m128i values = _mm_load_si128((const __m128i *)(const void *)&chunk->values[i]);
        __m128i equal = _mm_cmpeq_epi8(_mm_castpd_si128(words), values);
        /* Said in so many words, for gcc would gather the results in a tree, which takes copies. */
        __asm__("pand %1, %0" : "+x"(same) : "x"(equal));
    }
    return same;
}

TA_INLINE int ta__kept_all_same(__m128i same)
{
    return _mm_movemask_epi8(same) == 0xFFFF;
}
#else
typedef uint64_t ta__kept_same; /* what differs */
#define TA__KEPT_SAME_AT_FIRST UINT64_C(0)

TA_READS_STACKS_INLINE uint64_t ta__kept_chunk_same(const struct ta__kept_chunk *chunk, uint64_t sp, uint64_t differs)
{
#pragma GCC unroll 4
    for (int i = 0; i < TA__KEPT_CHUNK; i++)
        differs |= *(const uint64_t *)(sp + chunk->offsets[i]) ^ chunk->values[i];
    return differs;
}

TA_INLINE int ta__kept_all_same(uint64_t differs)
{
    return differs == 0;
}
#endif

/* `gives_up`: at the first few words that have not, where they are expected to differ. */
TA_READS_STACKS_INLINE int ta__kept_is_unchanged(const struct ta__kept_path *path, uint64_t sp, int gives_up)
{
    const struct ta__kept_chunk *end = (const struct ta__kept_chunk *)(const void *)path->chunks_end;
    const struct ta__kept_chunk *at =
        (const struct ta__kept_chunk *)(const void *)(path->chunks_end + path->chunks_begin);
    ta__kept_same same = TA__KEPT_SAME_AT_FIRST;
    if (path->is_odd)
        goto odd;
    do {
        same = ta__kept_chunk_same(at, sp, same);
    odd:
        same = ta__kept_chunk_same(at + 1, sp, same);
        at += 2;
        if (gives_up && !ta__kept_all_same(same))
            return 0;
    } while (at != end);
    return gives_up || ta__kept_all_same(same);
}

/* A path was found, of the thread's own stack: it is the last one, and says which is expected next. */
TA_INLINE void ta__kept_expect(struct ta__near *near, struct ta__kept_head *head, uint32_t index)
{
    struct ta__kept_path *path = &near->paths[index];
    head->last = (uint16_t)index;
    path->turns &= TA__KEPT_MOVES;
    if (path->turns != 0) {
        index = path->follower;
        near->paths[index].turns |= TA__KEPT_EXPECTED;
    }
    head->expected = index * (uint32_t)sizeof *path;
}

/* The same where registers are dearer than a few instructions. */
TA_INLINE void ta__kept_turn(const struct ta__thread *self, const struct ta__kept_path *path)
{
    __asm__("" ::: "memory"); /* what is needed is read again */
    struct ta__near *near = self->near;
    struct ta__kept_head *head = &near->heads[ta__kept_head_of(path->ip, path->sp & ~UINT64_C(1))];
    ta__kept_expect(near, head, (uint32_t)(path - near->paths));
}

/* The leaf of any stack of this head that is kept and unchanged, or 0; it is then the last one. */
uint32_t ta__kept_search(const struct ta__thread *self, struct ta__kept_head *head, uint64_t ip, uint64_t sp,
                         uint64_t fp, uint32_t domain);

TA_INLINE uint32_t ta__kept_find_further(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                         uint32_t domain)
{
    struct ta__kept_head *head = &self->near->heads[ta__kept_head_of(ip, sp)];
    self->near->missing.from = 0;
    return head->first != 0 ? ta__kept_search(self, head, ip, sp, fp, domain) : 0;
}

/* The leaf of the stack that is expected next of those that begin like this one, if it is unchanged; or 0. The rules that
 * it was found by are still true: who changes them changes the gate. */
TA_INLINE uint32_t ta__kept_find_expected(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                          uint32_t domain)
{
    const struct ta__near *near = self->near;
    const struct ta__kept_head *head = &near->heads[ta__kept_head_of(ip, sp)];
    const struct ta__kept_path *path =
        (const struct ta__kept_path *)(const void *)((const char *)near->paths + head->expected);
    if (TA_UNLIKELY(!ta__kept_has_registers(path, ip, sp, fp, domain) || !ta__kept_is_unchanged(path, sp, 0)))
        return 0;
    if (TA_UNLIKELY(path->turns != 0))
        ta__kept_turn(self, path);
    if (path->leaf == 0)
        __builtin_unreachable();
    return path->leaf;
}

/* The same of the other one of the two that came behind the one found last. */
TA_INLINE uint32_t ta__kept_find_other(const struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp,
                                       uint32_t domain)
{
    struct ta__near *near = self->near;
    const struct ta__kept_head *head = &near->heads[ta__kept_head_of(ip, sp)];
    struct ta__kept_path *last = &near->paths[head->last];
    const struct ta__kept_path *path = (last->turns & TA__KEPT_MOVES) != 0 ? last : &near->paths[last->follower];
    if (TA_UNLIKELY(!ta__kept_has_registers(path, ip, sp, fp, domain) || !ta__kept_is_unchanged(path, sp, 1)))
        return 0;
    /* All of that once more, where registers are dearer than a few instructions. */
    ip = path->ip;
    __asm__("" : "+r"(ip), "+r"(self));
    near = self->near;
    near->paths[near->heads[ta__kept_head_of(ip, sp)].last].turns ^= TA__KEPT_MOVES;
    ta__kept_turn(self, path);
    if (path->leaf == 0)
        __builtin_unreachable();
    return path->leaf;
}

enum ta__met { TA__MET_FIRST, TA__MET_AGAIN, TA__MET_AND_KEPT };

/* The memo holds a stack of these registers, found by walking, which was met before: keeps it. `stack_high` as the walk began. */
void ta__kept_keep(struct ta__thread *self, uint64_t ip, uint64_t sp, uint64_t fp, uint64_t stack_high, uint32_t domain,
                   enum ta__met met);

/* Was this stack walked before, not long ago, and perhaps kept then? Never where none are kept. */
TA_INLINE enum ta__met ta__kept_meet(struct ta__near *near, uint32_t leaf, uint64_t sp)
{
    uint32_t key = (leaf ^ (uint32_t)(sp >> 4) << 12) * UINT32_C(0x9E3779B1) | 1;
    /* By the number, so that few leaves touch few pages; four places for a leaf that is met with several sp. */
    uint32_t *candidate = &near->candidates[(leaf << 2 | (uint32_t)(sp >> 4 & 3)) & (TA__KEPT_CANDIDATES - 1)];
    uint32_t was = *candidate;
    if ((was | 1) == key) {
        *candidate = key ^ 1;
        return was == key ? TA__MET_AGAIN : TA__MET_AND_KEPT;
    }
    if (TA_LIKELY(!near->keeps_none))
        *candidate = key;
    return TA__MET_FIRST;
}
_Static_assert((TA__KEPT_CANDIDATES & (TA__KEPT_CANDIDATES - 1)) == 0, "a power of two");

/* None counts any more. */
void ta__kept_forget(struct ta__thread *self);
/* The memory goes back, with all else that is in near; the world is stopped, and the thread forgets before it looks. */
void ta__kept_give_back(struct ta__thread *thread);

#endif
