/* attribution.c: see attribution.h. */
#include "trace/attribution.h"

uint32_t ta__attribution_key(void)
{
    return 0;
}

uint32_t ta__attribution_of(uint32_t outer, uint64_t address, uint32_t module)
{
    (void)address, (void)module;
    return outer;
}
