/* input.c: see input.h. */
#include "snapshot/read/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"

enum { WINDOW = 256 << 10 };

static int cannot_read(const char *path, int number)
{
    ta__error_set("cannot read ", path, NULL);
    ta__error_add_errno(number);
    errno = number;
    return -1;
}

int ta__input_open(struct ta__input *input, const char *path)
{
    memset(input, 0, sizeof *input);
    input->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (input->descriptor < 0)
        return cannot_read(path, errno);
    struct stat status;
    int number = fstat(input->descriptor, &status) != 0 ? errno : 0;
    if (number == 0 && S_ISDIR(status.st_mode))
        number = EISDIR;
    if (number == 0 && !S_ISREG(status.st_mode)) {
        close(input->descriptor);
        errno = ESPIPE;
        return ta__error_set("cannot read ", path, ": it is not a regular file", NULL);
    }
    if (number != 0) {
        close(input->descriptor);
        return cannot_read(path, number);
    }
    input->length = (uint64_t)status.st_size;
    return 0;
}

void ta__input_memory(struct ta__input *input, const void *bytes, size_t length)
{
    memset(input, 0, sizeof *input);
    input->descriptor = -1;
    input->memory = bytes;
    input->length = length;
}

void ta__input_close(struct ta__input *input)
{
    if (input->descriptor >= 0)
        close(input->descriptor);
    input->descriptor = -1;
    ta__buffer_free(&input->window);
}

static int read_window(struct ta__input *input, uint64_t offset, size_t length)
{
    size_t wanted = length < WINDOW ? WINDOW : length;
    if (wanted > input->length - offset)
        wanted = (size_t)(input->length - offset);
    input->window.length = 0;
    input->lacks_memory = ta__buffer_reserve(&input->window, wanted) != 0;
    if (input->lacks_memory)
        return -1;
    input->window_offset = offset;
    while (input->window.length < wanted) {
        ssize_t got = pread(input->descriptor, input->window.bytes + input->window.length,
                            wanted - input->window.length, (off_t)(offset + input->window.length));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        input->window.length += (size_t)got;
    }
    return input->window.length >= length ? 0 : -1;
}

const uint8_t *ta__input_at(struct ta__input *input, uint64_t offset, size_t length)
{
    if (offset > input->length || length > input->length - offset)
        return NULL;
    if (input->descriptor < 0)
        return input->memory + offset;
    if (offset < input->window_offset || offset - input->window_offset > input->window.length ||
        length > input->window.length - (offset - input->window_offset))
        if (read_window(input, offset, length) != 0)
            return NULL;
    return input->window.bytes + (offset - input->window_offset);
}

const char *ta__input_why(const struct ta__input *input, const char *text)
{
    return input->lacks_memory ? "no memory to read the recording" : text;
}

/* ---- problems ---- */

const char *ta__section_name(uint32_t kind)
{
    static const char *const names[] = {
        [TA__KIND_ENTRY] = "entry",       [TA__KIND_STRINGS] = "strings",
        [TA__KIND_MODULES] = "modules",   [TA__KIND_FRAMES] = "frames",
        [TA__KIND_CONTEXTS] = "contexts", [TA__KIND_DOMAINS] = "domains",
        [TA__KIND_THREADS] = "threads",   [TA__KIND_LEAVES] = "leaves",
        [TA__KIND_COUNTERS] = "counters", [TA__KIND_PEAK] = "peak",
        [TA__KIND_TRACES] = "traces",     [TA__KIND_OPTIONS] = "options",
        [TA__KIND_METADATA] = "metadata", [TA__KIND_SYMBOLS] = "symbols",
        [TA__KIND_BLOCKS] = "blocks",     [TA__KIND_SYMBOL_RANGES] = "symbol ranges",
    };
    if (kind == TA__KIND_END)
        return "end";
    if (kind == TA__KIND_INDEX)
        return "index";
    if (kind == TA__KIND_TRAILER)
        return "trailer";
    return kind < sizeof names / sizeof *names && names[kind] != NULL ? names[kind] : "unknown section";
}

int ta__problem_begin(struct ta__problem *problem, const char *section, uint64_t offset, const char *text)
{
    problem->section = section;
    problem->offset = offset;
    ta__message_begin_plain(&problem->text);
    ta__message_text(&problem->text, text);
    return -1;
}

void ta__problem_to_message(const struct ta__problem *problem, struct ta__message *message)
{
    if (problem->section[0] != '\0') {
        ta__message_text(message, "section ");
        ta__message_text(message, problem->section);
        ta__message_text(message, " at offset ");
        ta__message_number(message, problem->offset);
        ta__message_text(message, ": ");
    }
    ta__message_span(message, problem->text.text, problem->text.length);
}

int ta__problem_to_error(const struct ta__problem *problem, const char *name)
{
    struct ta__message message;
    ta__message_begin_plain(&message);
    ta__message_text(&message, name);
    ta__message_text(&message, ": ");
    ta__problem_to_message(problem, &message);
    return ta__error_take(&message);
}

/* ---- headers ---- */

int ta__input_header(struct ta__input *input, uint32_t *features, struct ta__problem *problem)
{
    const uint8_t *bytes = ta__input_at(input, 0, TA__FILE_HEADER_LENGTH);
    if (input->length == 0)
        return ta__problem_begin(problem, "", 0, "the file is empty");
    if (bytes == NULL && input->lacks_memory)
        return ta__problem_begin(problem, "", 0, ta__input_why(input, ""));
    if (bytes == NULL) {
        size_t length = input->length < TA__FILE_MAGIC_LENGTH ? (size_t)input->length : TA__FILE_MAGIC_LENGTH;
        bytes = ta__input_at(input, 0, length);
        if (bytes != NULL && memcmp(bytes, TA__FILE_MAGIC, length) == 0)
            return ta__problem_begin(problem, "", 0, "the file ends within its header");
        return ta__problem_begin(problem, "", 0, "this is not a tracealloc recording");
    }
    if (memcmp(bytes, TA__FILE_MAGIC, TA__FILE_MAGIC_LENGTH) != 0) {
        if (memcmp(bytes, "\x89TAR\n", 5) == 0)
            return ta__problem_begin(problem, "", 0, "the recording was damaged by a transfer in text mode");
        return ta__problem_begin(problem, "", 0, "this is not a tracealloc recording");
    }
    /* The version comes before the check, which another version may compute differently. */
    uint32_t version = ta__u16_at(bytes + 8);
    if (version != TA__FILE_VERSION) {
        ta__problem_begin(problem, "", 8, "format version ");
        ta__message_number(&problem->text, version);
        ta__message_text(&problem->text, " is not supported; this library reads version 1");
        return -1;
    }
    if (ta__u32_at(bytes + 28) != (uint32_t)ta__hash_bytes(bytes, 28))
        return ta__problem_begin(problem, "", 28, "the file header is damaged: wrong check");
    if (ta__u16_at(bytes + 10) != TA__FILE_HEADER_LENGTH)
        return ta__problem_begin(problem, "", 10, "the file header has a wrong length");
    uint32_t unknown = ta__u32_at(bytes + 12) & ~TA__REQUIRED_FEATURES_KNOWN;
    if (unknown != 0) {
        ta__problem_begin(problem, "", 12, "the recording requires feature bit ");
        ta__message_number(&problem->text, (uint64_t)__builtin_ctz(unknown));
        ta__message_text(&problem->text, ", which this library does not know");
        return -1;
    }
    *features = ta__u32_at(bytes + 16);
    return 0;
}

int ta__input_chunk(struct ta__input *input, uint64_t offset, struct ta__chunk_header *header,
                    struct ta__problem *problem)
{
    const uint8_t *bytes = ta__input_at(input, offset, TA__CHUNK_HEADER_LENGTH);
    if (bytes == NULL)
        return ta__problem_begin(problem, "unknown section", offset,
                                 ta__input_why(input, "the file ends within a section header"));
    if (ta__u32_at(bytes) != TA__CHUNK_MAGIC)
        return ta__problem_begin(problem, "unknown section", offset, "no section begins here");
    uint64_t hash = ta__hash_bytes(bytes, 28);
    if (ta__u32_at(bytes + 28) != (uint32_t)hash)
        return ta__problem_begin(problem, "unknown section", offset, "the section header is damaged: wrong check");
    *header = (struct ta__chunk_header){
        .offset = offset,
        .hash = hash,
        .kind = ta__u16_at(bytes + 4),
        .flags = ta__u16_at(bytes + 6),
        .entry = ta__u32_at(bytes + 8),
        .stored = ta__u32_at(bytes + 12),
        .raw = ta__u32_at(bytes + 16),
        .check = ta__u32_at(bytes + 24),
    };
    const char *name = ta__section_name(header->kind);
    if ((header->flags & ~TA__CHUNK_FLAGS_KNOWN) != 0)
        return ta__problem_begin(problem, name, offset, "the section has flags that this library does not know");
    if (header->raw > TA__CHUNK_RAW_MAX || header->stored > TA__CHUNK_STORED_MAX) {
        ta__problem_begin(problem, name, offset, "the section states ");
        ta__message_number(&problem->text, header->raw > TA__CHUNK_RAW_MAX ? header->raw : header->stored);
        ta__message_text(&problem->text, " bytes, more than the 16 MiB a section may have");
        return -1;
    }
    if ((header->flags & TA__CHUNK_PLAIN) != 0 && header->raw != header->stored)
        return ta__problem_begin(problem, name, offset, "a plain section states two different lengths");
    if (header->stored > input->length - offset - TA__CHUNK_HEADER_LENGTH) {
        ta__problem_begin(problem, name, offset, "the file ends within the section: ");
        ta__message_number(&problem->text, header->stored);
        ta__message_text(&problem->text, " bytes expected, ");
        ta__message_number(&problem->text, input->length - offset - TA__CHUNK_HEADER_LENGTH);
        ta__message_text(&problem->text, " there");
        return -1;
    }
    return 0;
}
