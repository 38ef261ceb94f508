/* fuzz_lines.c: line tables as any bytes, in the reader that runs inside of traced processes (trace/unwind/line_numbers.c).
 * libFuzzer's entry; fuzz_replay.c runs the corpus without libFuzzer. tests/fuzz/make_lines.sh makes the seeds.
 *
 * The first byte chooses what the rest is:
 *
 *     e  an address (8 bytes), and the file of a program
 *     l  an address, the lengths of two sections (2 bytes each), .debug_line, .debug_line_str, .debug_str
 *     z  the same, the sections marked as compressed
 *     i  a length (3 bytes), and a stream of zlib that becomes so many bytes; zlib itself must agree */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "trace/unwind/inflate.h"
#include "trace/unwind/line_numbers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

enum { ASKED = 24, STEP = 7 };

static struct ta__line_number found[ASKED], *asked[ASKED];

static void put(int file, const void *bytes, size_t size)
{
    MUST(write(file, bytes, size) == (ssize_t)size);
}

static void expect_texts(size_t count)
{
    for (size_t i = 0; i < count; i++)
        MUST(memchr(found[i].file, '\0', sizeof found[i].file) != NULL);
}

/* Many at once, and then some of them alone: what is said of one does not depend on the others. */
static void ask(int file, uint64_t address)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    for (size_t i = 0; i < ASKED; i++) {
        found[i] = (struct ta__line_number){.address = address + i * STEP};
        asked[i] = &found[i];
    }
    errno = 1234;
    ta__lines_read(path, NULL, 0, asked, ASKED);
    MUST(errno == 1234);
    expect_texts(ASKED);
    for (size_t i = 0; i < ASKED; i += ASKED / 3) {
        struct ta__line_number alone = {.address = found[i].address}, *pointer = &alone;
        ta__lines_read(path, NULL, 0, &pointer, 1);
        MUST(alone.line == found[i].line && strcmp(alone.file, found[i].file) == 0);
    }
}

static void ask_sections(struct ta__cursor *input, uint64_t flags, uint64_t address)
{
    static const char names[] = "\0.debug_line\0.debug_line_str\0.debug_str";
    enum { SECTIONS = 5 };
    uint64_t first = ta__get_fixed(input, 2), second = ta__get_fixed(input, 2),
             rest = (uint64_t)(input->end - input->at);
    first = first < rest ? first : rest;
    second = second < rest - first ? second : rest - first;
    uint64_t at = sizeof(Elf64_Ehdr) + SECTIONS * sizeof(Elf64_Shdr), content = at + sizeof names;
    Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                         .e_shoff = sizeof header,
                         .e_shentsize = sizeof(Elf64_Shdr),
                         .e_shnum = SECTIONS,
                         .e_shstrndx = 1};
    const Elf64_Shdr sections[SECTIONS] = {
        {.sh_name = 0},
        {.sh_type = SHT_STRTAB, .sh_offset = at, .sh_size = sizeof names},
        {.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = flags, .sh_offset = content, .sh_size = first},
        {.sh_name = 13, .sh_type = SHT_PROGBITS, .sh_flags = flags, .sh_offset = content + first, .sh_size = second},
        {.sh_name = 29,
         .sh_type = SHT_PROGBITS,
         .sh_flags = flags,
         .sh_offset = content + first + second,
         .sh_size = rest - first - second},
    };
    int file = memfd_create("lines", 0);
    MUST(file >= 0);
    put(file, &header, sizeof header);
    put(file, sections, sizeof sections);
    put(file, names, sizeof names);
    put(file, input->at, rest);
    ask(file, address);
    close(file);
}

static void ask_file(const struct ta__cursor *input, uint64_t address)
{
    int file = memfd_create("lines", 0);
    MUST(file >= 0);
    put(file, input->at, (size_t)(input->end - input->at));
    ask(file, address);
    close(file);
}

/* What zlib makes of the whole of it, and nothing behind it. */
static int inflate_by_zlib(uint8_t *to, size_t room, const uint8_t *from, size_t length)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)from, .avail_in = (unsigned)length};
    uint8_t none;
    MUST(inflateInit(&stream) == Z_OK);
    stream.next_out = room > 0 ? to : &none;
    stream.avail_out = (unsigned)room;
    int result = inflate(&stream, Z_FINISH);
    int done = result == Z_STREAM_END && stream.total_out == room;
    inflateEnd(&stream);
    return done;
}

static void unpack(struct ta__cursor *input)
{
    size_t room = (size_t)ta__get_fixed(input, 3) % (1 << 20), length = (size_t)(input->end - input->at);
    uint8_t *ours = malloc(room + 1), *theirs = malloc(room + 1);
    MUST(ours != NULL && theirs != NULL);
    int is_done = ta__inflate(ours, room, input->at, length);
    MUST(is_done == inflate_by_zlib(theirs, room, input->at, length));
    MUST(!is_done || memcmp(ours, theirs, room) == 0);
    free(ours);
    free(theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ta__cursor input = {data, data + size, 0};
    char mode = (char)ta__get_fixed(&input, 1);
    if (mode == 'i') {
        unpack(&input);
        return 0;
    }
    uint64_t address = ta__get_fixed(&input, 8);
    if (mode == 'e')
        ask_file(&input, address);
    else if (mode == 'l' || mode == 'z')
        ask_sections(&input, mode == 'z' ? SHF_COMPRESSED : 0, address);
    return 0;
}
