/* handle.h: struct ta_snapshot — the same in every library of the project.
 *
 * A snapshot begins as one of two things: taken from the running program it is an image (the chunks of one entry, still
 * without its END), loaded or built from data it is a view. The reading side adds the view of an image when somebody
 * asks; the writing side never needs one. Functions of the reading side are reached through `operations`, so that the
 * runtime does not contain them. */
#ifndef TA_SNAPSHOT_FORMAT_HANDLE_H
#define TA_SNAPSHOT_FORMAT_HANDLE_H

#include "snapshot/format/chunks.h"
#include "snapshot/format/view.h"
#include "tracealloc/snapshot.h"

struct ta__image {
    struct ta__buffer bytes; /* file header and chunks */
    uint64_t digest;
    uint32_t chunk_count, string_count;
    struct ta__index_row row;
};

struct ta__loaded; /* a view and the memory behind it, snapshot/read/loaded.h */

struct ta__snapshot_operations {
    int (*encode)(const struct ta_snapshot *snapshot, struct ta__sink *sink); /* the view as a whole recording */
    void (*release)(struct ta__loaded *loaded);
};

struct ta__metadata_row {
    size_t key, key_length, value, value_length; /* offsets in metadata_bytes */
};

struct ta_snapshot {
    uint32_t object_version; /* TA__OBJECT_VERSION of the library that made it */
    uint32_t entry;          /* number within the recording that it came from */
    struct ta__image image;
    struct ta__loaded *loaded; /* published with release order by whoever decodes first */
    const struct ta__snapshot_operations *operations;
    void *attachment; /* what analysis made of it, and how to free that; published with release order */
    void (*attachment_release)(void *attachment);
    struct ta__buffer metadata, metadata_bytes; /* of struct ta__metadata_row; texts with a NUL each */
    char warning[256];                          /* what loading could not read */
};
#define TA__OBJECT_VERSION 1u

/* Zeroed, on mapped memory; NULL with ta__error_set. */
TA_NODISCARD struct ta_snapshot *ta__object_create(void);
TA_NODISCARD int ta__object_add_metadata(struct ta_snapshot *snapshot, const char *key, size_t key_length,
                                         const char *value, size_t value_length);
/* The image with its metadata, END, index and trailer: a whole recording. 0, or -1 with the error in sink->error. */
TA_NODISCARD int ta__object_seal_image(const struct ta_snapshot *snapshot, struct ta__sink *sink);
/* The metadata as strings from id `first_string` on, then the METADATA chunk. Nothing when there is none. */
TA_NODISCARD int ta__object_put_metadata(const struct ta_snapshot *snapshot, struct ta__chunks *chunks,
                                         uint32_t first_string);

#endif
