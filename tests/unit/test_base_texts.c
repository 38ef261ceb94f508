/* test_base_texts.c: the text of the last error, small files as texts, readable names, and work on a stack of its own. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/own_stack.h"
#include "base/readable_name.h"
#include "base/small_file.h"

#include <unity.h>

static char path[] = "/tmp/ta_texts.XXXXXX";

/* A file may give less than it is asked for; not more than so many bytes, when this is not 0. */
static size_t piece;
static int reads;

ssize_t read(int descriptor, void *bytes, size_t count)
{
    reads++;
    return syscall(SYS_read, descriptor, bytes, piece != 0 && count > piece ? piece : count);
}

void setUp(void)
{
    errno = 77;
}

void tearDown(void)
{
    ta__memory_inject_failure(0, 0);
}

/* ---- the last error ---------------------------------------------------------------------------------------------- */

static void test_error_is_all_its_texts_and_the_words_of_a_number(void)
{
    TEST_ASSERT_EQUAL_INT(-1, ta__error_set("one", NULL));
    TEST_ASSERT_EQUAL_STRING("one", ta__error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta__error_set("cannot ", "", "read ", "x", NULL));
    TEST_ASSERT_EQUAL_STRING("cannot read x", ta__error_text());
    TEST_ASSERT_EQUAL_INT(-1, ta__error_add_errno(ENOENT));
    TEST_ASSERT_EQUAL_STRING("cannot read x: No such file or directory", ta__error_text());
    ta__error_set("a", NULL);
    ta__error_add_errno(987654);
    TEST_ASSERT_EQUAL_STRING("a: error 987654", ta__error_text());
    ta__error_set("a", NULL);
    ta__error_add_errno(-5);
    TEST_ASSERT_EQUAL_STRING("a: error -5", ta__error_text());
    ta__error_clear();
    TEST_ASSERT_EQUAL_STRING("", ta__error_text());
}

static void test_error_that_is_too_long_is_cut(void)
{
    char *large = malloc(10000);
    memset(large, 'x', 9999);
    large[9999] = '\0';
    for (int i = 0; i < 2; i++) {
        ta__error_set("begins ", large, NULL);
        size_t length = strlen(ta__error_text());
        TEST_ASSERT_TRUE(length > 100 && length < TA__MESSAGE_MAX);
        TEST_ASSERT_EQUAL_INT(0, strncmp(ta__error_text(), "begins xxx", 10));
        ta__error_add_errno(ENOENT);
        TEST_ASSERT_TRUE(strlen(ta__error_text()) < TA__MESSAGE_MAX);
        large[9000] = '\0';
    }
    free(large);
    ta__error_set("short", NULL);
    TEST_ASSERT_EQUAL_STRING("short", ta__error_text());
}

static void *fail_elsewhere(void *unused)
{
    (void)unused;
    static char seen[64];
    snprintf(seen, sizeof seen, "%s", ta__error_text());
    ta__error_set("theirs", NULL);
    return seen;
}

static void test_error_is_the_threads_own(void)
{
    pthread_t thread;
    void *seen;
    ta__error_set("mine", NULL);
    TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, fail_elsewhere, NULL));
    TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &seen));
    TEST_ASSERT_EQUAL_STRING("", seen);
    TEST_ASSERT_EQUAL_STRING("mine", ta__error_text());
}

/* ---- small files ------------------------------------------------------------------------------------------------- */

static void write_path(const char *text)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
    errno = 77;
}

static void test_small_file_is_read_as_far_as_there_is_room(void)
{
    char text[16];
    write_path("123456789012345");
    for (size_t room = 1; room <= sizeof text; room++) {
        memset(text, 'z', sizeof text);
        TEST_ASSERT_EQUAL_size_t(room - 1, ta__small_file(path, text, room));
        TEST_ASSERT_EQUAL_size_t(room - 1, strlen(text));
        TEST_ASSERT_EQUAL_INT(0, memcmp(text, "123456789012345", room - 1));
        if (room < sizeof text)
            TEST_ASSERT_EQUAL_HEX8('z', text[room]);
    }
    write_path("");
    TEST_ASSERT_EQUAL_size_t(0, ta__small_file(path, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("", text);
    int next = open("/dev/null", O_RDONLY);
    close(next);
    for (int i = 0; i < 3; i++) {
        strcpy(text, "before");
        TEST_ASSERT_EQUAL_size_t(0, ta__small_file(i == 0   ? "/nowhere/x"
                                                   : i == 1 ? "/tmp"
                                                            : "/proc/self/mem",
                                                   text, sizeof text));
        TEST_ASSERT_EQUAL_STRING("", text);
        TEST_ASSERT_EQUAL_INT(77, errno);
    }
    int after = open("/dev/null", O_RDONLY);
    close(after);
    TEST_ASSERT_EQUAL_INT(next, after);
}

/* Daemons have often closed it: the next file gets that number. */
static void test_small_file_is_read_where_descriptor_0_is_free(void)
{
    char text[16];
    write_path("some text");
    int kept = dup(0);
    close(0);
    size_t length = ta__small_file(path, text, sizeof text);
    TEST_ASSERT_EQUAL_INT(0, open("/dev/null", O_RDONLY)); /* it is free again */
    if (kept >= 0) {
        dup2(kept, 0);
        close(kept);
    }
    TEST_ASSERT_EQUAL_size_t(9, length);
    TEST_ASSERT_EQUAL_STRING("some text", text);
}

static void test_files_of_a_process_are_found_by_its_number(void)
{
    char ours[256], mine[256];
    TEST_ASSERT_TRUE(ta__small_file("/proc/self/comm", ours, sizeof ours) > 0);
    TEST_ASSERT_EQUAL_size_t(strlen(ours), ta__small_file_of(getpid(), "comm", mine, sizeof mine));
    TEST_ASSERT_EQUAL_STRING(ours, mine);
    TEST_ASSERT_TRUE(ta__small_file_of(1, "comm", mine, sizeof mine) > 0);
    TEST_ASSERT_EQUAL_size_t(0, ta__small_file_of(INT64_C(9000000000), "comm", mine, sizeof mine));
    char longer[200];
    memset(longer, 'n', sizeof longer);
    longer[199] = '\0';
    TEST_ASSERT_EQUAL_size_t(0, ta__small_file_of(getpid(), longer, mine, sizeof mine));
}

static void test_small_file_that_comes_in_pieces_is_whole(void)
{
    char text[16];
    write_path("123456789012345");
    for (piece = 1; piece < 6; piece++)
        for (size_t room = 1; room <= sizeof text; room++) {
            memset(text, 'z', sizeof text);
            reads = 0;
            TEST_ASSERT_EQUAL_size_t(room - 1, ta__small_file(path, text, room));
            TEST_ASSERT_EQUAL_INT((room - 1 + piece - 1) / piece, reads); /* none when it is full */
            TEST_ASSERT_EQUAL_INT(0, memcmp(text, "123456789012345", room - 1));
            TEST_ASSERT_EQUAL_HEX8('\0', text[room - 1]);
        }
    piece = 0;
}

static void test_links_say_as_much_as_there_is_room_for(void)
{
    char link[64], text[16];
    snprintf(link, sizeof link, "%s.link", path);
    TEST_ASSERT_EQUAL_INT(0, symlink("0123456789", link));
    errno = 77;
    TEST_ASSERT_EQUAL_size_t(10, ta__link_text(link, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("0123456789", text);
    memset(text, 'z', sizeof text);
    TEST_ASSERT_EQUAL_size_t(4, ta__link_text(link, text, 5));
    TEST_ASSERT_EQUAL_STRING("0123", text);
    TEST_ASSERT_EQUAL_HEX8('z', text[5]);
    unlink(link);
    errno = 77;
    TEST_ASSERT_EQUAL_size_t(0, ta__link_text(link, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("", text);
    TEST_ASSERT_EQUAL_INT(77, errno);
}

static void test_numbers_and_labels_are_found_in_texts(void)
{
    static const struct {
        const char *text;
        uint64_t number;
    } numbers[] = {{"", 0},        {"x", 0},      {"-1", 0},
                   {"0", 0},       {"7", 7},      {" \t 42kB", 42},
                   {"1009", 1009}, {"12 34", 12}, {"18446744073709551615", UINT64_MAX}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        TEST_ASSERT_EQUAL_UINT64(numbers[i].number, ta__decimal_at(numbers[i].text));
    const char *text = "VmSize:  12 kB\nVmData: 5 kB\n";
    TEST_ASSERT_EQUAL_PTR(text + 7, ta__behind(text, "VmSize:"));
    TEST_ASSERT_EQUAL_UINT64(5, ta__decimal_at(ta__behind(text, "VmData:")));
    TEST_ASSERT_EQUAL_PTR(text, ta__behind(text, ""));
    TEST_ASSERT_NULL(ta__behind(text, "VmPeak:"));
}

/* ---- readable names ---------------------------------------------------------------------------------------------- */

static void test_names_are_readable_when_they_fit_and_are_mangled(void)
{
    char text[64];
    TEST_ASSERT_EQUAL_size_t(10, ta__readable_name("_ZN4shop4takeEi", 0, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("shop::take", text);
    TEST_ASSERT_EQUAL_size_t(15, ta__readable_name("_ZN4shop4takeEi", 1, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("shop::take(int)", text);
    for (size_t room = 0; room <= 16; room++) { /* whole, or not at all */
        memset(text, 'z', sizeof text);
        TEST_ASSERT_EQUAL_size_t(room >= 16 ? 15 : 0, ta__readable_name("_ZN4shop4takeEi", 1, text, room));
        for (size_t at = room; at < sizeof text; at++)
            TEST_ASSERT_EQUAL_HEX8('z', text[at]);
    }
    static const char *const plain[] = {
        "", "_", "Z", "main", "_Z", "_Zx", "_main", "ZN4shop4takeEi", "__ZN4shop4takeEi", "aZ1fv"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        TEST_ASSERT_EQUAL_size_t_MESSAGE(0, ta__readable_name(plain[i], 1, text, sizeof text), plain[i]);
}

/* ---- a stack of its own ------------------------------------------------------------------------------------------ */

struct work {
    uintptr_t outside, inside;
    size_t mapped;
    int calls;
};

static __attribute__((noinline)) void note_stack(void *argument)
{
    struct work *work = argument;
    volatile char deep[40000];
    for (size_t i = 0; i < sizeof deep; i += 100)
        deep[i] = (char)i;
    work->inside = (uintptr_t)deep;
    work->mapped = ta__memory_mapped();
    work->calls++;
}

static void test_work_is_done_once_on_a_stack_that_is_gone_afterwards(void)
{
    struct work work = {.outside = (uintptr_t)&work};
    size_t before = ta__memory_mapped();
    TEST_ASSERT_EQUAL_INT(1, ta__on_own_stack(256 << 10, note_stack, &work));
    TEST_ASSERT_EQUAL_INT(1, work.calls);
    TEST_ASSERT_EQUAL_size_t(before, ta__memory_mapped());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    TEST_ASSERT_EQUAL_size_t(before + (256 << 10), work.mapped);
    uintptr_t apart = work.inside > work.outside ? work.inside - work.outside : work.outside - work.inside;
    TEST_ASSERT_TRUE(apart > 60000);
    ta__memory_inject_failure(1, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__on_own_stack(256 << 10, note_stack, &work));
    TEST_ASSERT_EQUAL_INT(1, work.calls);
#endif
}

int main(void)
{
    close(mkstemp(path));
    UNITY_BEGIN();
    RUN_TEST(test_error_is_all_its_texts_and_the_words_of_a_number);
    RUN_TEST(test_error_that_is_too_long_is_cut);
    RUN_TEST(test_error_is_the_threads_own);
    RUN_TEST(test_small_file_is_read_as_far_as_there_is_room);
    RUN_TEST(test_small_file_is_read_where_descriptor_0_is_free);
    RUN_TEST(test_files_of_a_process_are_found_by_its_number);
    RUN_TEST(test_small_file_that_comes_in_pieces_is_whole);
    RUN_TEST(test_links_say_as_much_as_there_is_room_for);
    RUN_TEST(test_numbers_and_labels_are_found_in_texts);
    RUN_TEST(test_names_are_readable_when_they_fit_and_are_mangled);
    RUN_TEST(test_work_is_done_once_on_a_stack_that_is_gone_afterwards);
    unlink(path);
    return UNITY_END();
}
