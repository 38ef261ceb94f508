/* test_unpack.c: cores that are packed: frames of lz4, byte by byte, with each thing that one may have and each way to be
 * damaged; and files packed by gzip, zstd and lz4, which become files again. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "analysis/image/lz4_frames.h"
#include "analysis/image/unpack.h"
#include "base/error.h"
#include "tests/support/random.h"

#include <unity.h>

enum { ROOM = 24 << 20 };
enum { LINKED = 0x40, INDEPENDENT = 0x60, BLOCK_CHECKS = 0x10, HAS_SIZE = 8, CONTENT_CHECK = 4, HAS_DICTIONARY = 1 };
enum { OF_64_KB = 0x40, OF_256_KB = 0x50, OF_1_MB = 0x60, OF_4_MB = 0x70 };
#define STORED UINT32_C(0x80000000)

static uint8_t *packed, *unpacked;
static size_t packed_bytes, unpacked_bytes, taken, at_once;
static int answer; /* of put, when the second piece comes */
static int put_count;

void setUp(void)
{
    packed = calloc(ROOM, 1);
    unpacked = calloc(ROOM, 1);
    TEST_ASSERT_TRUE(packed != NULL && unpacked != NULL);
    packed_bytes = 0;
    at_once = SIZE_MAX;
    answer = 0;
}

void tearDown(void)
{
    free(packed);
    free(unpacked);
}

/* ---- writing frames ---------------------------------------------------------------------------------------------- */

static void put_byte(unsigned byte)
{
    packed[packed_bytes++] = (uint8_t)byte;
}

static void put_bytes(const void *bytes, size_t length)
{
    memcpy(packed + packed_bytes, bytes, length);
    packed_bytes += length;
}

static void put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

static void put_number(uint32_t number)
{
    for (unsigned i = 0; i < 4; i++)
        put_byte(number >> 8 * i);
}

static void begin_frame(unsigned flags, unsigned sizes)
{
    put_number(0x184D2204);
    put_byte(flags);
    put_byte(sizes);
    if ((flags & HAS_SIZE) != 0)
        put_text("8 bytes.");
    if ((flags & HAS_DICTIONARY) != 0)
        put_text("dict");
    put_byte('c'); /* a checksum, which nobody looks at */
}

static void end_frame(void)
{
    put_number(0);
}

static void put_stored(const char *text)
{
    put_number((uint32_t)strlen(text) | STORED);
    put_text(text);
}

static void put_length(size_t length)
{
    for (length -= 15; length >= 255; length -= 255)
        put_byte(255);
    put_byte((unsigned)length);
}

/* Literals, then a copy of what stood `back` bytes before; copied 0: the last sequence. */
static void put_sequence(const void *literals, size_t length, size_t back, size_t copied)
{
    size_t more = copied == 0 ? 0 : copied - 4;
    put_byte((unsigned)((length < 15 ? length : 15) << 4 | (more < 15 ? more : 15)));
    if (length >= 15)
        put_length(length);
    put_bytes(literals, length);
    if (copied == 0)
        return;
    put_byte((unsigned)back & 0xFF);
    put_byte((unsigned)back >> 8);
    if (more >= 15)
        put_length(more);
}

static size_t block_at;
static void begin_block(void)
{
    block_at = packed_bytes;
    put_number(0);
}

static void end_block(void)
{
    size_t end = packed_bytes;
    packed_bytes = block_at;
    put_number((uint32_t)(end - block_at - 4));
    packed_bytes = end;
}

/* ---- reading them ------------------------------------------------------------------------------------------------ */

static size_t get(void *user, uint8_t *bytes, size_t length)
{
    size_t left = *(size_t *)user - taken;
    length = length < left ? length : left;
    length = length < at_once ? length : at_once;
    memcpy(bytes, packed + taken, length);
    taken += length;
    return length;
}

static int put(void *user, const uint8_t *bytes, size_t length)
{
    (void)user;
    if (++put_count == 2 && answer != 0)
        return answer;
    TEST_ASSERT_TRUE(unpacked_bytes + length <= ROOM);
    memcpy(unpacked + unpacked_bytes, bytes, length);
    unpacked_bytes += length;
    return 0;
}

static int unpack_first(size_t bytes)
{
    taken = unpacked_bytes = 0;
    put_count = 0;
    return ta__lz4_unpack(get, put, &bytes);
}

static void expect(const void *bytes, size_t length)
{
    TEST_ASSERT_EQUAL_INT(0, unpack_first(packed_bytes));
    TEST_ASSERT_EQUAL_size_t(length, unpacked_bytes);
    if (length > 0)
        TEST_ASSERT_EQUAL_MEMORY(bytes, unpacked, length);
}

static void expect_text(const char *text)
{
    expect(text, strlen(text));
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void test_blocks_are_stored_or_made_of_copies(void)
{
    begin_frame(LINKED, OF_64_KB);
    put_stored("as it is, ");
    begin_block();
    put_sequence("abc", 3, 3, 6);
    put_sequence("x", 1, 1, 5); /* over itself */
    put_sequence("", 0, 9, 4);
    put_sequence("end", 3, 0, 0);
    end_block();
    end_frame();
    expect_text("as it is, abcabcabcxxxxxxabcxend");
}

static void test_input_comes_in_any_pieces(void)
{
    begin_frame(LINKED | BLOCK_CHECKS, OF_64_KB);
    put_stored("one, ");
    put_text("sum.");
    put_stored("two");
    put_text("sum.");
    end_frame();
    for (at_once = 1; at_once < 9; at_once++)
        expect_text("one, two");
}

static void test_each_flag_has_its_bytes(void)
{
    static const unsigned flags[] = {0,
                                     BLOCK_CHECKS,
                                     HAS_SIZE,
                                     CONTENT_CHECK,
                                     HAS_DICTIONARY,
                                     HAS_SIZE | HAS_DICTIONARY,
                                     BLOCK_CHECKS | CONTENT_CHECK};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        for (unsigned kind = LINKED; kind <= INDEPENDENT; kind += INDEPENDENT - LINKED) {
            packed_bytes = 0;
            begin_frame(kind | flags[i], OF_64_KB);
            put_stored("first ");
            if ((flags[i] & BLOCK_CHECKS) != 0)
                put_text("sum.");
            end_frame();
            if ((flags[i] & CONTENT_CHECK) != 0)
                put_text("sum.");
            begin_frame(LINKED, OF_64_KB);
            put_stored("second");
            end_frame();
            expect_text("first second");
        }
}

static void test_frame_of_another_version_is_not_read(void)
{
    for (unsigned version = 0; version < 4; version++) {
        packed_bytes = 0;
        begin_frame(version << 6, OF_64_KB);
        put_stored("text");
        end_frame();
        expect_text(version == 1 ? "text" : "");
    }
}

static void test_blocks_have_a_largest_size(void)
{
    static const size_t most[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    for (unsigned code = 0; code < 8; code++) {
        size_t size = code < 4 ? 100 : most[code - 4];
        for (size_t more = 0; more < 2; more++) {
            packed_bytes = 0;
            begin_frame(INDEPENDENT, code << 4);
            put_number((uint32_t)(size + more) | STORED);
            memset(packed + packed_bytes, 'a' + (int)code, size + more);
            packed_bytes += size + more;
            end_frame();
            TEST_ASSERT_EQUAL_INT(0, unpack_first(packed_bytes));
            TEST_ASSERT_EQUAL_size_t(code < 4 || more > 0 ? 0 : size, unpacked_bytes);
        }
    }
}

static void test_unpacked_block_is_no_larger_than_that_either(void)
{
    enum { MOST = 64 << 10 };
    for (size_t more = 0; more < 2; more++) {
        packed_bytes = 0;
        begin_frame(INDEPENDENT, OF_64_KB);
        begin_block();
        put_sequence("z", 1, 1, MOST - 1 + more);
        put_sequence("", 0, 0, 0);
        end_block();
        end_frame();
        TEST_ASSERT_EQUAL_INT(0, unpack_first(packed_bytes));
        TEST_ASSERT_EQUAL_size_t(more > 0 ? 0 : MOST, unpacked_bytes);
        packed_bytes = 0;
        begin_frame(INDEPENDENT, OF_64_KB);
        begin_block();
        put_sequence("z", 1, 1, MOST - 4);
        put_sequence("last", 3 + more, 0, 0);
        end_block();
        end_frame();
        TEST_ASSERT_EQUAL_INT(0, unpack_first(packed_bytes));
        TEST_ASSERT_EQUAL_size_t(more > 0 ? 0 : MOST, unpacked_bytes);
    }
}

static void test_long_lengths_go_on_in_bytes(void)
{
    static const size_t lengths[] = {14, 15, 16, 269, 270, 271, 524, 525, 526};
    uint8_t *text = calloc(2000, 1);
    TEST_ASSERT_NOT_NULL(text);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
            for (size_t at = 0; at < lengths[i]; at++)
                text[at] = (uint8_t)(at * 7);
            memset(text + lengths[i], text[lengths[i] - 1], lengths[k] + 4);
            packed_bytes = 0;
            begin_frame(LINKED, OF_64_KB);
            begin_block();
            put_sequence(text, lengths[i], 1, lengths[k] + 4);
            put_sequence("!", 1, 0, 0);
            end_block();
            end_frame();
            text[lengths[i] + lengths[k] + 4] = '!';
            expect(text, lengths[i] + lengths[k] + 5);
        }
    free(text);
}

/* A block that is as long as may be, and one whose length does not end. */
static void test_length_without_end_is_damage(void)
{
    begin_frame(LINKED, OF_4_MB);
    begin_block();
    put_byte(0xF0);
    memset(packed + packed_bytes, 255, (4 << 20) / 255 * 2);
    packed_bytes += (4 << 20) / 255 * 2;
    end_block();
    end_frame();
    expect_text("");
}

static void test_linked_blocks_copy_from_earlier_ones(void)
{
    for (unsigned kind = LINKED; kind <= INDEPENDENT; kind += INDEPENDENT - LINKED) {
        packed_bytes = 0;
        begin_frame(kind, OF_64_KB);
        put_stored("from here ");
        begin_block();
        put_sequence("", 0, 10, 9);
        put_sequence(".", 1, 0, 0);
        end_block();
        end_frame();
        expect_text(kind == LINKED ? "from here from here." : "from here ");
    }
}

static void test_copies_reach_as_far_as_the_beginning_and_no_further(void)
{
    for (size_t back = 0; back < 8; back++) {
        packed_bytes = 0;
        begin_frame(LINKED, OF_64_KB);
        put_stored("abc");
        begin_block();
        put_sequence("def", 3, back, 4);
        put_sequence("", 0, 0, 0);
        end_block();
        end_frame();
        TEST_ASSERT_EQUAL_INT(0, unpack_first(packed_bytes));
        TEST_ASSERT_EQUAL_size_t(back == 0 || back > 6 ? 3 : 10, unpacked_bytes);
    }
}

/* What is kept of earlier blocks is 64 KiB; distances are shorter by one. */
static void test_copies_reach_back_64_kb(void)
{
    uint64_t random = 7;
    for (size_t i = 0; i < 200000; i++)
        unpacked[i] = (uint8_t)random_next(&random);
    uint8_t *text = malloc(200100);
    TEST_ASSERT_NOT_NULL(text);
    memcpy(text, unpacked, 200000);
    begin_frame(LINKED, OF_64_KB);
    for (size_t at = 0, length; at < 200000; at += length) {
        length = 200000 - at < 60000 ? 200000 - at : 60000;
        put_number((uint32_t)length | STORED);
        put_bytes(text + at, length);
    }
    begin_block();
    put_sequence("", 0, 65535, 50);
    put_sequence("", 0, 65535, 40);
    put_sequence("0123456789", 10, 0, 0);
    end_block();
    end_frame();
    memcpy(text + 200000, text + 200000 - 65535, 90);
    memcpy(text + 200090, "0123456789", 10);
    expect(text, 200100);
    free(text);
}

static void test_frames_that_are_skipped_may_stand_between(void)
{
    for (uint32_t magic = 0x184D2A4F; magic <= 0x184D2A60; magic++) {
        packed_bytes = 0;
        put_number(magic);
        put_number(1000);
        memset(packed + packed_bytes, 'x', 1000);
        packed_bytes += 1000;
        begin_frame(LINKED, OF_64_KB);
        put_stored("text");
        end_frame();
        expect_text(magic >= 0x184D2A50 && magic <= 0x184D2A5F ? "text" : "");
    }
}

static void test_block_that_is_damaged_ends_all(void)
{
    static const struct {
        const char *bytes;
        size_t length;
    } damaged[] = {
        {"\x50"
         "abcd",
         5}, /* fewer literals than it says */
        {"\x10"
         "a",
         2}, /* sound: one literal, and the end */
        {"\x10"
         "a\x01",
         3}, /* half of a distance */
        {"\x10"
         "a\x01\x00",
         4}, /* ends with a copy */
        {"\x1F"
         "a\x01\x00",
         4},         /* a length that is not there */
        {"\xF0", 1}, /* the same, of literals */
        {"", 0},     /* nothing */
    };
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        packed_bytes = 0;
        begin_frame(LINKED, OF_64_KB);
        put_stored("before ");
        begin_block();
        put_bytes(damaged[i].bytes, damaged[i].length);
        if (damaged[i].length > 0)
            end_block();
        else
            put_number(0);
        put_stored("behind");
        end_frame();
        expect_text(i == 1 ? "before abehind" : "before ");
    }
}

static void test_end_before_its_time_leaves_what_came_before(void)
{
    begin_frame(LINKED | BLOCK_CHECKS | CONTENT_CHECK, OF_64_KB);
    put_stored("one, ");
    put_text("sum.");
    begin_block();
    put_sequence("two, ", 5, 5, 5);
    put_sequence("", 0, 0, 0);
    end_block();
    put_text("sum.");
    end_frame();
    put_text("sum.");
    const size_t first = 4 + 3 + 4 + 5, second = packed_bytes - 12;
    for (size_t bytes = 0; bytes <= packed_bytes; bytes++) {
        TEST_ASSERT_EQUAL_INT(0, unpack_first(bytes));
        TEST_ASSERT_EQUAL_size_t(bytes < first ? 0 : bytes < second ? 5 : 15, unpacked_bytes);
        TEST_ASSERT_EQUAL_INT(0, memcmp("one, two, two, ", unpacked, unpacked_bytes));
    }
}

static void test_answer_of_who_takes_the_bytes_ends_all(void)
{
    begin_frame(LINKED, OF_64_KB);
    for (int i = 0; i < 3; i++)
        put_stored("x");
    end_frame();
    begin_frame(LINKED, OF_64_KB);
    put_stored("y");
    end_frame();
    answer = -7;
    TEST_ASSERT_EQUAL_INT(-7, unpack_first(packed_bytes));
    TEST_ASSERT_EQUAL_INT(2, put_count);
    TEST_ASSERT_EQUAL_size_t(1, unpacked_bytes);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int file_of(const void *bytes, size_t length)
{
    int file = memfd_create("packed", MFD_CLOEXEC);
    TEST_ASSERT_TRUE(file >= 0);
    TEST_ASSERT_EQUAL_INT((int)length, (int)write(file, bytes, length));
    TEST_ASSERT_EQUAL_INT(0, (int)lseek(file, 0, SEEK_SET));
    return file;
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    TEST_ASSERT_NOT_NULL(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Noise, zeros and noise: more than is read at once. */
enum { TEXT = 3 * (1 << 20) + 4096 + 17 };
static uint8_t *make_text(void)
{
    uint64_t random = 11;
    uint8_t *text = calloc(TEXT, 1);
    TEST_ASSERT_NOT_NULL(text);
    for (size_t i = 0; i < TEXT; i++)
        if (i / 5000 % 3 != 1)
            text[i] = (uint8_t)random_next(&random);
    memset(text + (1 << 20) + 8192, 0, 1 << 20);
    memset(text + TEXT - 9000, 0, 9000); /* also at the end */
    return text;
}

static void expect_file(const uint8_t *text, size_t length)
{
    int file = file_of(packed, packed_bytes);
    unsigned before = open_files();
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__unpack(&file, "packed"), ta__error_text());
    TEST_ASSERT_EQUAL_UINT(before, open_files());
    TEST_ASSERT_EQUAL_INT((int)length, (int)lseek(file, 0, SEEK_END));
    for (size_t at = 0, part; at < length; at += part) {
        part = length - at < ROOM ? length - at : ROOM;
        TEST_ASSERT_EQUAL_INT((int)part, (int)pread(file, unpacked, part, (off_t)at));
        TEST_ASSERT_EQUAL_INT(0, memcmp(text + at, unpacked, part));
    }
    close(file);
}

static size_t gzip(uint8_t *to, const uint8_t *text, size_t length)
{
    z_stream stream = {
        .next_in = (uint8_t *)(uintptr_t)text, .avail_in = (uInt)length, .next_out = to, .avail_out = ROOM};
    TEST_ASSERT_EQUAL_INT(Z_OK, deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY));
    TEST_ASSERT_EQUAL_INT(Z_STREAM_END, deflate(&stream, Z_FINISH));
    size_t bytes = stream.total_out;
    deflateEnd(&stream);
    return bytes;
}

static void test_gzip_becomes_a_file(void)
{
    uint8_t *text = make_text();
    packed_bytes = gzip(packed, text, TEXT);
    expect_file(text, TEXT);
    packed_bytes = gzip(packed, text, 1 << 21); /* of several members */
    packed_bytes += gzip(packed + packed_bytes, text + (1 << 21), 0);
    packed_bytes += gzip(packed + packed_bytes, text + (1 << 21), TEXT - (1 << 21));
    expect_file(text, TEXT);
    packed_bytes = gzip(packed, text, 1 << 20);
    put_text("garbage");
    expect_file(text, 1 << 20);
    free(text);
}

static void test_gzip_of_much_from_little_becomes_a_file(void)
{
    uint8_t *text = calloc(ROOM / 2, 1);
    TEST_ASSERT_NOT_NULL(text);
    memset(text, 'm', ROOM / 2 - 4096); /* the output is full many times for one input */
    packed_bytes = gzip(packed, text, ROOM / 2);
    TEST_ASSERT_TRUE(packed_bytes < 1 << 16);
    expect_file(text, ROOM / 2);
    free(text);
}

static void test_zstd_becomes_a_file(void)
{
    uint8_t *text = make_text();
    packed_bytes = ZSTD_compress(packed, ROOM, text, TEXT, 1);
    expect_file(text, TEXT);
    packed_bytes = ZSTD_compress(packed, ROOM, text, 1 << 20, 1);
    packed_bytes += ZSTD_compress(packed + packed_bytes, ROOM - packed_bytes, text + (1 << 20), TEXT - (1 << 20), 1);
    expect_file(text, TEXT);
    memset(text, 'm', TEXT);
    packed_bytes = ZSTD_compress(packed, ROOM, text, TEXT, 1);
    expect_file(text, TEXT);
    packed_bytes = ZSTD_compress(packed, ROOM, text, 5000, 1);
    put_text("garbage");
    expect_file(text, 5000);
    free(text);
}

static void test_lz4_becomes_a_file(void)
{
    uint8_t *text = make_text();
    begin_frame(LINKED, OF_4_MB);
    put_number(TEXT | STORED);
    put_bytes(text, TEXT);
    end_frame();
    expect_file(text, TEXT);
    free(text);
}

static void test_packed_file_that_ends_too_early_becomes_what_there_is(void)
{
    uint8_t *text = make_text();
    packed_bytes = gzip(packed, text, TEXT) / 2;
    int file = file_of(packed, packed_bytes);
    TEST_ASSERT_EQUAL_INT(0, ta__unpack(&file, "packed"));
    off_t bytes = lseek(file, 0, SEEK_END);
    TEST_ASSERT_TRUE(bytes > TEXT / 4 && bytes < TEXT);
    TEST_ASSERT_EQUAL_INT((int)bytes, (int)pread(file, unpacked, ROOM, 0));
    TEST_ASSERT_EQUAL_INT(0, memcmp(text, unpacked, (size_t)bytes));
    close(file);
    free(text);
}

static void test_file_that_is_not_packed_stays_as_it_is(void)
{
    static const char *const texts[] = {"abcd", "\x1F\x8C..", "\x1E\x8B..", "\x28\xB5\x2F\xFC", "\x04\x22\x4D\x17"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int file = file_of(texts[i], 4), before = file;
        TEST_ASSERT_EQUAL_INT(0, ta__unpack(&file, "plain"));
        TEST_ASSERT_EQUAL_INT(before, file);
        close(file);
    }
}

static void test_file_of_three_bytes_is_no_core(void)
{
    int file = file_of("abc", 3);
    TEST_ASSERT_EQUAL_INT(-1, ta__unpack(&file, "short"));
    TEST_ASSERT_EQUAL_STRING("short: is no core file", ta__error_text());
    close(file);
}

static void expect_refusal(const char *text)
{
    int file = file_of(packed, packed_bytes), before = file;
    unsigned count = open_files();
    TEST_ASSERT_EQUAL_INT(-1, ta__unpack(&file, "packed"));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(before, file);
    TEST_ASSERT_EQUAL_UINT(count, open_files());
    close(file);
}

static void test_disk_that_is_full_is_an_error(void)
{
    struct rlimit before, small;
    uint8_t *text = make_text();
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 1 << 22;
    memset(text, 'm', TEXT);
    packed_bytes = ZSTD_compress(packed, ROOM, text, TEXT, 1);
    packed_bytes += ZSTD_compress(packed + packed_bytes, ROOM - packed_bytes, text, TEXT, 1);
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &small));
    expect_refusal("cannot unpack the core: File too large (TMPDIR says where to)");
    packed_bytes = gzip(packed, text, TEXT);
    packed_bytes += gzip(packed + packed_bytes, text, TEXT);
    expect_refusal("cannot unpack the core: File too large (TMPDIR says where to)");
    memset(text, 0, TEXT); /* nothing is written of zeros, but the file has its length */
    packed_bytes = ZSTD_compress(packed, ROOM, text, TEXT, 1);
    packed_bytes += ZSTD_compress(packed + packed_bytes, ROOM - packed_bytes, text, TEXT, 1);
    expect_refusal("cannot unpack the core: File too large");
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_FSIZE, &before));
    signal(SIGXFSZ, SIG_DFL);
    free(text);
}

static void test_no_place_for_a_file_is_an_error(void)
{
    struct rlimit before, none;
    packed_bytes = ZSTD_compress(packed, ROOM, "text", 4, 1);
    int file = file_of(packed, packed_bytes);
    TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    none = before;
    none.rlim_cur = 0;
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
    int result = ta__unpack(&file, "packed");
    TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &before));
    TEST_ASSERT_EQUAL_INT(-1, result);
    TEST_ASSERT_EQUAL_STRING("cannot unpack the core: no folder for a temporary file (TMPDIR)", ta__error_text());
    close(file);
}

static char *path_of(int file)
{
    static char path[256];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    TEST_ASSERT_TRUE(length > 0);
    path[length] = '\0';
    return path;
}

static void test_file_is_made_where_tmpdir_says_and_has_no_name_there(void)
{
    char folder[] = "/tmp/ta_unpack.XXXXXX", *long_name = malloc(5000);
    char *old = getenv("TMPDIR"), *saved = old != NULL ? strdup(old) : NULL;
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    TEST_ASSERT_NOT_NULL(long_name);
    packed_bytes = ZSTD_compress(packed, ROOM, "text", 4, 1);
    int file = file_of(packed, packed_bytes);
    setenv("TMPDIR", folder, 1);
    TEST_ASSERT_EQUAL_INT(0, ta__unpack(&file, "packed"));
    TEST_ASSERT_EQUAL_INT(0, strncmp(path_of(file), folder, strlen(folder)));
    close(file);
    TEST_ASSERT_EQUAL_INT(0, rmdir(folder));
    memset(long_name, '/', 4999);
    long_name[4999] = '\0';
    const char *const others[] = {NULL, folder, long_name};
    for (size_t i = 0; i < 3; i++) { /* no folder, none that is there, none that can be */
        if (others[i] == NULL)
            unsetenv("TMPDIR");
        else
            setenv("TMPDIR", others[i], 1);
        file = file_of(packed, packed_bytes);
        TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta__unpack(&file, "packed"), ta__error_text());
        TEST_ASSERT_TRUE(strncmp(path_of(file), "/var/tmp/", 9) == 0 || strncmp(path_of(file), "/tmp/", 5) == 0);
        close(file);
    }
    if (saved != NULL)
        setenv("TMPDIR", saved, 1);
    else
        unsetenv("TMPDIR");
    free(saved);
    free(long_name);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_blocks_are_stored_or_made_of_copies);
    RUN_TEST(test_input_comes_in_any_pieces);
    RUN_TEST(test_each_flag_has_its_bytes);
    RUN_TEST(test_frame_of_another_version_is_not_read);
    RUN_TEST(test_blocks_have_a_largest_size);
    RUN_TEST(test_unpacked_block_is_no_larger_than_that_either);
    RUN_TEST(test_long_lengths_go_on_in_bytes);
    RUN_TEST(test_length_without_end_is_damage);
    RUN_TEST(test_linked_blocks_copy_from_earlier_ones);
    RUN_TEST(test_copies_reach_as_far_as_the_beginning_and_no_further);
    RUN_TEST(test_copies_reach_back_64_kb);
    RUN_TEST(test_frames_that_are_skipped_may_stand_between);
    RUN_TEST(test_block_that_is_damaged_ends_all);
    RUN_TEST(test_end_before_its_time_leaves_what_came_before);
    RUN_TEST(test_answer_of_who_takes_the_bytes_ends_all);
    RUN_TEST(test_gzip_becomes_a_file);
    RUN_TEST(test_gzip_of_much_from_little_becomes_a_file);
    RUN_TEST(test_zstd_becomes_a_file);
    RUN_TEST(test_lz4_becomes_a_file);
    RUN_TEST(test_packed_file_that_ends_too_early_becomes_what_there_is);
    RUN_TEST(test_file_that_is_not_packed_stays_as_it_is);
    RUN_TEST(test_file_of_three_bytes_is_no_core);
    RUN_TEST(test_disk_that_is_full_is_an_error);
    RUN_TEST(test_no_place_for_a_file_is_an_error);
    RUN_TEST(test_file_is_made_where_tmpdir_says_and_has_no_name_there);
    return UNITY_END();
}
