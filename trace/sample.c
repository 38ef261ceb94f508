/* sample.c: see sample.h. Called about once per sample, except for the countdown.
 *
 * exp and log are computed here: the library needs nothing but libc. */
#include "trace/sample.h"

#include "base/hash.h"
#include "trace/trace.h"

/* exp(-x) for x ≥ 0, to about 1e-15: halve the argument, take the series, square back. */
static double exp_minus(double x)
{
    if (x > 40)
        return 0;
    int halvings = 0;
    while (x > 0.125) {
        x *= 0.5;
        halvings++;
    }
    double term = 1;
    double sum = 1;
    for (int i = 1; i < 12; i++) {
        term *= -x / i;
        sum += term;
    }
    while (halvings-- > 0)
        sum *= sum;
    return sum;
}

/* -log(u) for 0 < u ≤ 1: u = m · 2^-e with m in (0.5, 1], log m by the series of the inverse hyperbolic tangent. */
static double log_minus(double u)
{
    double result = 0;
    while (u <= 0.5) {
        u *= 2;
        result += 0.693147180559945309;
    }
    double z = (u - 1) / (u + 1);
    double square = z * z;
    double power = z;
    double sum = 0;
    for (int i = 1; i < 30; i += 2) {
        sum += power / i;
        power *= square;
    }
    return result - 2 * sum;
}

uint64_t ta__sample_weight(size_t size, uint64_t sample_bytes)
{
    /* An empty block cannot be hit by a byte: it is treated as one of one byte. */
    double x = (double)(size != 0 ? size : 1) / (double)sample_bytes;
    double probability = x < 1e-6 ? x * (1 - x / 2) : 1 - exp_minus(x);
    return (uint64_t)(TA__SAMPLE_UNIT / probability + 0.5);
}

int64_t ta__sample_interval(uint64_t *random, uint64_t sample_bytes)
{
    *random += TA__GOLDEN;
    double u = ((double)(ta__hash_word(*random) >> 11) + 1) * 0x1p-53;
    return (int64_t)(log_minus(u) * (double)sample_bytes);
}

int ta__sample_this(struct ta__thread *self, size_t size)
{
    self->sample_left -= (int64_t)(size != 0 ? size : 1);
    if (TA_LIKELY(self->sample_left >= 0))
        return 0;
    self->sample_left = ta__sample_interval(&self->sample_random, ta__trace_sample_bytes());
    return 1;
}

static void add_in(struct ta__thread *self, uint32_t leaf, uint64_t units, uint64_t bytes)
{
    ta__count_allocation(self, leaf, bytes);
    ta__owner_add(&self->counts[leaf].allocated_blocks, units - 1);
}

static void add_out(struct ta__thread *self, uint32_t leaf, uint64_t units, uint64_t bytes)
{
    if (self->counts == NULL) {
        ta__counters_shared_remove(leaf, units, bytes);
        return;
    }
    if (bytes > TA__LARGE_FALL)
        ta__counters_before_fall(self);
    ta__count_free(self, leaf, bytes);
    ta__owner_add(&self->counts[leaf].freed_blocks, units - 1);
}

/* Bytes are rounded to whole ones. */
static uint64_t weighted_bytes(uint64_t weight, size_t size)
{
    return (uint64_t)(((unsigned __int128)weight * size + TA__SAMPLE_UNIT / 2) / TA__SAMPLE_UNIT);
}

void ta__count_block_in(struct ta__thread *self, uint32_t leaf, size_t size)
{
    if (ta__trace_sample_bytes() == 0) {
        add_in(self, leaf, 1, size);
        return;
    }
    uint64_t weight = ta__sample_weight(size, ta__trace_sample_bytes());
    add_in(self, leaf, weight, weighted_bytes(weight, size));
}

void ta__count_block_out(struct ta__thread *self, uint32_t leaf, size_t size)
{
    if (ta__trace_sample_bytes() == 0) {
        add_out(self, leaf, 1, size);
        return;
    }
    uint64_t weight = ta__sample_weight(size, ta__trace_sample_bytes());
    add_out(self, leaf, weight, weighted_bytes(weight, size));
}

static uint64_t whole_unit(void)
{
    return ta__trace_sample_bytes() == 0 ? 1 : TA__SAMPLE_UNIT;
}

void ta__count_tracked_in(struct ta__thread *self, uint32_t leaf, size_t size)
{
    add_in(self, leaf, whole_unit(), size);
}

void ta__count_tracked_out(struct ta__thread *self, uint32_t leaf, size_t size)
{
    add_out(self, leaf, whole_unit(), size);
}
