/* written.h: recordings that the product's writer makes of a fake source, in a file of their own. */
#ifndef TA_TESTS_WRITTEN_H
#define TA_TESTS_WRITTEN_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tracealloc/analysis.h>
#include <unity.h>

#include "base/error.h"
#include "snapshot/write/write.h"
#include "tests/support/fake_source.h"

struct written {
    struct fake_source fake;
    struct ta__writer writer;
    struct ta__facts facts; /* of the entries to come; its time goes on by ten seconds each */
    char path[64];          /* the entries so far, after written_file */
};

static inline void written_open(struct written *written)
{
    struct ta__sink sink;
    memset(written, 0, sizeof *written);
    fake_open(&written->fake);
    ta__sink_memory(&sink);
    TEST_ASSERT_EQUAL(0, ta__writer_open(&written->writer, &sink));
    written->facts = fake_facts(UINT64_C(1000000000));
}

static inline void written_entry(struct written *written)
{
    TEST_ASSERT_EQUAL_MESSAGE(0, ta__writer_entry(&written->writer, &written->fake.source, &written->facts),
                              ta__error_text());
    written->facts.time_ns += UINT64_C(10000000000);
}

static inline const char *written_file(struct written *written)
{
    const struct ta__buffer *bytes = &written->writer.chunks.sink.memory;
    if (*written->path == '\0') {
        strcpy(written->path, "/tmp/test-written-XXXXXX.ta");
        close(mkstemps(written->path, 3));
    }
    int file = open(written->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    TEST_ASSERT_EQUAL(bytes->length, write(file, bytes->bytes, bytes->length));
    close(file);
    return written->path;
}

/* One more entry, as it is read. */
static inline struct ta_snapshot *written_next(struct written *written)
{
    written_entry(written);
    struct ta_snapshot *snapshot = ta_snapshot_load(written_file(written));
    TEST_ASSERT_NOT_NULL_MESSAGE(snapshot, ta_error_text());
    return snapshot;
}

static inline void written_close(struct written *written)
{
    if (*written->path != '\0')
        unlink(written->path);
    ta__buffer_free(&written->writer.chunks.sink.memory);
    ta__writer_close(&written->writer);
    fake_close(&written->fake);
}

#endif
