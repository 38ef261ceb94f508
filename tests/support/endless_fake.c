/* endless_fake.c: see endless.h; the writer alone, on tables that are made up. */
#include <unistd.h>

#include "tests/support/endless.h"
#include "tests/support/fake_live.h"
#include "tests/support/fake_source.h"

int endless_write(const char *path, unsigned long limit)
{
    struct fake_source fake;
    fake_open(&fake);
    fake_live = &fake.source;
    struct ta_record *record = ta_record_open(path, 0);
    if (record == NULL)
        return 1;
    ta_record_set_limit(record, limit);
    for (uint32_t contexts = 200;; contexts += 10) {
        fake_program(&fake, contexts, 300);
        fake_activity(&fake, 3);
        if (ta_record_append(record, "tick") != 0 || write(1, "+", 1) != 1)
            return 1;
    }
}

int endless_is_entry(struct ta_snapshot *snapshot, size_t number)
{
    struct ta_snapshot_info info;
    return ta_snapshot_info(snapshot, &info, sizeof info) == 0 && info.contexts == 190 + 10 * number;
}
