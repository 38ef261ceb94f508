/* size_text.c: see size_text.h. */
#include "analysis/size_text.h"

#include <math.h>

#include "tracealloc/analysis.h"

/* Rounds half to even on the exact binary value, as printf does, but knows no locale. `decimals` is 0 or 1. */
static void add_number(struct ta__text *text, double value, int decimals, int sign)
{
    int exponent;
    ta__wide number = (ta__wide)ldexp(frexp(fabs(value), &exponent), 53) * (decimals == 1 ? 10 : 1);
    exponent -= 53; /* |value| = number / 10^decimals * 2^exponent */
    if (exponent >= 0) {
        number = exponent < 70 ? number << exponent : ~(ta__wide)0; /* beyond all sums */
    } else if (exponent < -120) {
        number = 0;
    } else {
        ta__wide rest = number & (((ta__wide)1 << -exponent) - 1), half = (ta__wide)1 << (-exponent - 1);
        number >>= -exponent;
        if (rest > half || (rest == half && number % 2 == 1))
            number++;
    }
    if (signbit(value) || sign)
        ta__text_add_string(text, signbit(value) ? "-" : "+");
    ta__text_add_wide(text, decimals == 1 ? number / 10 : number);
    if (decimals == 1)
        ta__text_add_format(text, ".%d", (int)(number % 10));
}

void ta__size_text_add(struct ta__text *text, double size, int sign)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    if (!isfinite(size))
        size = 0; /* no size of anything */
    size_t unit = 0, last = sizeof units / sizeof *units - 1;
    while (fabs(size) >= 10 * 1024 && unit < last) {
        size /= 1024;
        unit++;
    }
    add_number(text, size, unit > 0 && fabs(size) < 100 ? 1 : 0, sign);
    ta__text_add_string(text, " ");
    ta__text_add_string(text, units[unit]);
}

size_t ta_size_text(double size, int sign, char *out, size_t capacity)
{
    struct ta__text text = {0};
    ta__size_text_add(&text, size, sign);
    return ta__text_deliver(&text, out, capacity);
}

static int bit_length(ta__wide value)
{
    int bits = 0;
    for (; value >> 64 != 0; value >>= 64)
        bits += 64;
    return value == 0 ? 0 : bits + 64 - __builtin_clzll((unsigned long long)value);
}

/* The quotient is taken with 55 or 56 bits, the lowest of them sticky, so that the conversion to 53 bits is the only
 * rounding. Sums stay below 2^120 here: a trace counts at most 2^64 bytes, a snapshot at most 2^32 traces. */
double ta__average(ta__wide size, ta__wide count)
{
    if (size == 0)
        return 0;
    for (; bit_length(count) > 70; count >>= 1) /* no longer exact, and no longer real */
        size >>= 1;
    int shift = 55 - (bit_length(size) - bit_length(count));
    if (shift > 0)
        size <<= shift;
    else
        count <<= -shift;
    ta__wide quotient = size / count;
    if (size % count != 0)
        quotient |= 1;
    return ldexp((double)(uint64_t)quotient, -shift);
}
