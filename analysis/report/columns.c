/* columns.c: see columns.h. */
#include "analysis/report/columns.h"

void ta__column_put(struct ta__column *column, uint64_t value)
{
    char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (char)(value | 0x80);
    bytes[length++] = (char)value;
    ta__text_add(&column->bytes, bytes, length);
    column->count++;
}

void ta__column_put_signed(struct ta__column *column, int64_t value)
{
    ta__column_put(column, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

void ta__output_add_base64(struct ta__output *output, const char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t have = length - i < 3 ? length - i : 3;
        uint32_t word = (uint32_t)at[i] << 16 | (uint32_t)(have > 1 ? at[i + 1] : 0) << 8 | (have > 2 ? at[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], digits[word >> 6 & 63], digits[word & 63]};
        for (size_t k = have + 1; k < 4; k++)
            four[k] = '=';
        ta__output_add(output, four, sizeof four);
    }
}
