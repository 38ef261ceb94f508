/* handle.c: what both libraries can do with a snapshot: free it, write it, keep its metadata.
 *
 * The public functions are weak: a program that links both libraries statically meets them twice. */
#include "snapshot/format/handle.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "snapshot/format/tables.h"

#define SHARED_BY_LIBRARIES __attribute__((weak))

struct ta_snapshot *ta__object_create(void)
{
    struct ta_snapshot *snapshot = ta__memory_map(sizeof *snapshot);
    if (snapshot == NULL) {
        ta__error_set("no memory for a snapshot", NULL);
        return NULL;
    }
    snapshot->object_version = TA__OBJECT_VERSION;
    return snapshot;
}

SHARED_BY_LIBRARIES void ta_snapshot_free(struct ta_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    if (snapshot->attachment != NULL)
        snapshot->attachment_release(snapshot->attachment);
    if (snapshot->loaded != NULL)
        snapshot->operations->release(snapshot->loaded);
    ta__buffer_free(&snapshot->image.bytes);
    ta__buffer_free(&snapshot->metadata);
    ta__buffer_free(&snapshot->metadata_bytes);
    ta__memory_unmap(snapshot, sizeof *snapshot);
}

/* ---- metadata ---- */

static uint32_t row_count(const struct ta_snapshot *snapshot)
{
    return TA__ROW_COUNT(struct ta__metadata_row, snapshot->metadata);
}

static struct ta__metadata_row *find(const struct ta_snapshot *snapshot, const char *key, size_t length)
{
    struct ta__metadata_row *rows = TA__ROWS(struct ta__metadata_row, snapshot->metadata);
    for (uint32_t i = 0; i < row_count(snapshot); i++)
        if (rows[i].key_length == length && memcmp(snapshot->metadata_bytes.bytes + rows[i].key, key, length) == 0)
            return &rows[i];
    return NULL;
}

int ta__object_add_metadata(struct ta_snapshot *snapshot, const char *key, size_t key_length, const char *value,
                            size_t value_length)
{
    struct ta__buffer *bytes = &snapshot->metadata_bytes;
    if (key_length > TA__STRING_MAX || value_length > TA__STRING_MAX)
        return ta__error_set("the metadata text is longer than 8 MiB", NULL);
    struct ta__metadata_row row = {bytes->length, key_length, bytes->length + key_length + 1, value_length};
    size_t length_before = bytes->length;
    struct ta__metadata_row *old = find(snapshot, key, key_length);
    if (ta__buffer_put(bytes, key, key_length) != 0 || ta__buffer_put(bytes, "", 1) != 0 ||
        ta__buffer_put(bytes, value, value_length) != 0 || ta__buffer_put(bytes, "", 1) != 0 ||
        (old == NULL && ta__buffer_put(&snapshot->metadata, &row, sizeof row) != 0)) {
        bytes->length = length_before;
        return ta__error_set("no memory for the metadata", NULL);
    }
    if (old != NULL)
        *old = row;
    return 0;
}

SHARED_BY_LIBRARIES int ta_snapshot_set_metadata(struct ta_snapshot *snapshot, const char *key, const char *value)
{
    if (value != NULL)
        return ta__object_add_metadata(snapshot, key, strlen(key), value, strlen(value));
    struct ta__metadata_row *row = find(snapshot, key, strlen(key));
    if (row == NULL)
        return 0;
    struct ta__metadata_row *end = TA__ROWS(struct ta__metadata_row, snapshot->metadata) + row_count(snapshot);
    memmove(row, row + 1, (size_t)(end - row - 1) * sizeof *row);
    snapshot->metadata.length -= sizeof *row;
    return 0;
}

SHARED_BY_LIBRARIES const char *ta_snapshot_metadata(const struct ta_snapshot *snapshot, const char *key)
{
    const struct ta__metadata_row *row = find(snapshot, key, strlen(key));
    return row == NULL ? NULL : (const char *)snapshot->metadata_bytes.bytes + row->value;
}

SHARED_BY_LIBRARIES size_t ta_snapshot_metadata_count(const struct ta_snapshot *snapshot)
{
    return row_count(snapshot);
}

SHARED_BY_LIBRARIES int ta_snapshot_metadata_at(const struct ta_snapshot *snapshot, size_t index, const char **key,
                                                size_t *key_length, const char **value, size_t *value_length)
{
    if (index >= row_count(snapshot))
        return ta__error_set("there is no metadata of that index", NULL);
    const struct ta__metadata_row *row = &TA__ROWS(struct ta__metadata_row, snapshot->metadata)[index];
    if (key != NULL)
        *key = (const char *)snapshot->metadata_bytes.bytes + row->key;
    if (key_length != NULL)
        *key_length = row->key_length;
    if (value != NULL)
        *value = (const char *)snapshot->metadata_bytes.bytes + row->value;
    if (value_length != NULL)
        *value_length = row->value_length;
    return 0;
}

/* ---- writing ---- */

int ta__object_put_metadata(const struct ta_snapshot *snapshot, struct ta__chunks *chunks, uint32_t first_string)
{
    uint32_t count = row_count(snapshot);
    struct ta__buffer strings = {0}, pairs = {0};
    int result = count == 0 ? 0 : -1;
    if (count > 0 && ta__buffer_reserve(&strings, count * 2 * sizeof(struct ta__view_string)) == 0 &&
        ta__buffer_reserve(&pairs, count * sizeof(struct ta__view_pair)) == 0) {
        struct ta__view_string *texts = TA__ROWS(struct ta__view_string, strings);
        struct ta__view_pair *rows = TA__ROWS(struct ta__view_pair, pairs);
        for (uint32_t i = 0; i < count; i++) {
            const char *key, *value;
            size_t key_length, value_length;
            ta_snapshot_metadata_at(snapshot, i, &key, &key_length, &value, &value_length);
            texts[2 * i] = (struct ta__view_string){key, key_length};
            texts[2 * i + 1] = (struct ta__view_string){value, value_length};
            rows[i] = (struct ta__view_pair){first_string + 2 * i, first_string + 2 * i + 1};
        }
        result = ta__put_strings(chunks, texts, first_string, 2 * count);
        if (result == 0)
            result = ta__put_pairs(chunks, TA__KIND_METADATA, rows, count);
    } else if (count > 0) {
        chunks->sink.error = ENOMEM;
    }
    ta__buffer_free(&strings);
    ta__buffer_free(&pairs);
    return result;
}

int ta__object_seal_image(const struct ta_snapshot *snapshot, struct ta__sink *sink)
{
    const struct ta__image *image = &snapshot->image;
    struct ta__chunks chunks;
    memset(&chunks, 0, sizeof chunks);
    chunks.sink = *sink;
    chunks.digest = image->digest;
    chunks.chunk_count = image->chunk_count;
    chunks.entry_offset = TA__FILE_HEADER_LENGTH;
    struct ta__index_row row = image->row;
    int result = -1;
    if (ta__compressor_open(&chunks.coder) != 0)
        chunks.sink.error = ENOMEM;
    else if (ta__sink_write(&chunks.sink, image->bytes.bytes, image->bytes.length) == 0 &&
             ta__object_put_metadata(snapshot, &chunks, image->string_count) == 0 &&
             ta__entry_end(&chunks, &row) == 0 && ta__chunks_seal(&chunks) == 0)
        result = 0;
    *sink = chunks.sink;
    ta__chunks_close(&chunks);
    return result;
}

SHARED_BY_LIBRARIES int ta_snapshot_dump(const struct ta_snapshot *snapshot, const char *path)
{
    int saved_errno = errno;
    struct ta__new_file file;
    if (ta__new_file_open(&file, path) != 0)
        return -1;
    struct ta__sink sink;
    ta__sink_descriptor(&sink, file.descriptor);
    int result = snapshot->image.bytes.length != 0 ? ta__object_seal_image(snapshot, &sink)
                                                   : snapshot->operations->encode(snapshot, &sink);
    if (result != 0) {
        ta__new_file_abandon(&file);
        ta__error_set("cannot write ", path, NULL);
        ta__error_add_errno(sink.error);
        errno = sink.error;
        return -1;
    }
    if (ta__new_file_commit(&file, 0) != 0)
        return -1;
    errno = saved_errno;
    return 0;
}
