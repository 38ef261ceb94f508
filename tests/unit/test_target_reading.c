/* test_target_reading.c: reading a process made of arrays: across mappings, where parts are missing, through the cache; which
 * mapping and object an address is in; registers and auxiliary vectors; files where the process finds them. Both sides of
 * each bound. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/made_memory.h"

#include <unity.h>

#define LOW   UINT64_C(0x10000000)
#define NEXT  (LOW + 4 * PAGE) /* right behind it */
#define FAR   UINT64_C(0x20000000)
#define LARGE UINT64_C(0x30000000)
enum { PAGE = TA__TARGET_PAGE, LARGE_PAGES = 1600 };

static uint8_t bytes[LARGE_PAGES * PAGE];

static uint8_t byte_at(uint64_t address)
{
    return (uint8_t)(address / PAGE * 7 + address % PAGE * 3 + 1) | 1;
}

static void fill(uint64_t start, uint64_t length)
{
    for (uint64_t at = 0; at < length; at++)
        bytes[at] = byte_at(start + at);
    made_put(start, bytes, length);
}

/* LOW and NEXT adjoin; of NEXT two pages are missing, of FAR nothing is there. */
void setUp(void)
{
    made_begin();
    made_map(LOW, 4 * PAGE, 4 * PAGE, 0);
    made_map(NEXT, 4 * PAGE, 2 * PAGE, 0);
    made_map(FAR, 4 * PAGE, 0, 0);
    made_map(LARGE, LARGE_PAGES * PAGE, LARGE_PAGES * PAGE, 0);
    fill(LOW, 4 * PAGE);
    fill(NEXT, 2 * PAGE);
    fill(LARGE, LARGE_PAGES * PAGE);
}

void tearDown(void)
{
    made_end();
}

static void expect_bytes(uint64_t address, size_t length, size_t there)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != (i < there ? byte_at(address + i) : 0))
            TEST_ASSERT_EQUAL_HEX8(i < there ? byte_at(address + i) : 0, bytes[i]);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void test_reading_goes_on_from_mapping_to_mapping(void)
{
    memset(bytes, 0, 8 * PAGE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(made, LOW + 5, bytes, 5 * PAGE));
    expect_bytes(LOW + 5, 5 * PAGE, 5 * PAGE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(made, LOW + 5, bytes, 0));
    TEST_ASSERT_EQUAL_INT(0, ta__target_read(made, LOW, bytes, 6 * PAGE));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(made, LOW, bytes, 6 * PAGE + 1));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(made, FAR, bytes, 1));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(made, LOW - 1, bytes, 8));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read(made, UINT64_MAX, bytes, 8));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read_sparse(made, UINT64_MAX, bytes, 8));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_peek(made, UINT64_MAX, bytes, 8));
}

static void test_sparse_reading_has_zeros_for_what_is_not_there(void)
{
    memset(bytes, 0x55, 10 * PAGE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, NEXT + PAGE + 7, bytes, 2 * PAGE));
    expect_bytes(NEXT + PAGE + 7, 2 * PAGE, PAGE - 7);
    memset(bytes, 0x55, 10 * PAGE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, FAR, bytes, 4 * PAGE));
    expect_bytes(FAR, 4 * PAGE, 0);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, LOW, bytes, 0));
    memset(bytes, 0x55, 10 * PAGE);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, LOW + 3 * PAGE + 5, bytes, 2 * PAGE));
    expect_bytes(LOW + 3 * PAGE + 5, 2 * PAGE, 2 * PAGE);
}

static void test_sparse_reading_reads_512_pages_at_a_time(void)
{
    static const size_t pages[] = {511, 512, 513, 1023, 1024, 1025, 1500};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        size_t length = pages[i] * PAGE;
        memset(bytes, 0, sizeof bytes);
        TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, LARGE + 9, bytes, length));
        expect_bytes(LARGE + 9, length, length);
        TEST_ASSERT_EQUAL_HEX8(0, bytes[length]);
    }
}

static void test_sparse_reading_fails_where_what_is_there_cannot_be_read(void)
{
    made_break(LARGE + 600 * PAGE, LARGE + 600 * PAGE + 1);
    TEST_ASSERT_EQUAL_INT(0, ta__target_read_sparse(made, LARGE, bytes, 600 * PAGE));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_read_sparse(made, LARGE, bytes, 600 * PAGE + 1));
}

static void test_words_are_read_across_pages(void)
{
    uint64_t word, expected;
    uint32_t half;
    for (uint64_t at = NEXT - 12; at <= NEXT + 12; at++) {
        for (size_t i = 0; i < 8; i++)
            ((uint8_t *)&expected)[i] = byte_at(at + i);
        TEST_ASSERT_EQUAL_INT(0, ta__target_word(made, at, &word));
        TEST_ASSERT_EQUAL_HEX64(expected, word);
        TEST_ASSERT_EQUAL_INT(0, ta__target_half(made, at, &half));
        TEST_ASSERT_EQUAL_HEX32((uint32_t)expected, half);
    }
    TEST_ASSERT_EQUAL_INT(0, ta__target_word(made, NEXT + 2 * PAGE - 8, &word));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_word(made, NEXT + 2 * PAGE - 7, &word));
    TEST_ASSERT_EQUAL_INT(0, ta__target_half(made, NEXT + 2 * PAGE - 4, &half));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_half(made, NEXT + 2 * PAGE - 3, &half));
    TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LOW + 100, bytes, 3 * PAGE + 50));
    expect_bytes(LOW + 100, 3 * PAGE + 50, 3 * PAGE + 50);
}

/* Places of the cache are shared by pages that are 256 apart. */
static void test_cache_tells_pages_apart_and_forgets(void)
{
    uint8_t first, second;
    for (int i = 0; i < 2; i++) {
        TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LARGE + PAGE, &first, 1));
        TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LARGE + 257 * PAGE, &second, 1));
        TEST_ASSERT_EQUAL_HEX8(byte_at(LARGE + PAGE), first);
        TEST_ASSERT_EQUAL_HEX8(byte_at(LARGE + 257 * PAGE), second);
    }
    made_contents[3][257 * PAGE] = 99; /* it changes behind the reader's back */
    TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LARGE + 257 * PAGE, &second, 1));
    TEST_ASSERT_EQUAL_HEX8(byte_at(LARGE + 257 * PAGE), second);
    ta__target_forget(made);
    TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LARGE + 257 * PAGE, &second, 1));
    TEST_ASSERT_EQUAL_HEX8(99, second);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_peek(made, FAR, &first, 1));
    TEST_ASSERT_EQUAL_INT(-1, ta__target_peek(made, FAR, &first, 1));
    made_break(LARGE + PAGE, LARGE + 2 * PAGE);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_peek(made, LARGE + PAGE, &first, 1));
    made_broken = made_broken_end = 0; /* what could not be read is not remembered */
    TEST_ASSERT_EQUAL_INT(0, ta__target_peek(made, LARGE + PAGE, &first, 1));
}

static void test_text_ends_at_its_nul_or_where_there_is_no_room(void)
{
    char text[8];
    made_text(LOW + PAGE - 3, "abcdef");
    memset(text, 'x', sizeof text);
    TEST_ASSERT_EQUAL_INT(0, ta__target_text(made, LOW + PAGE - 3, text, sizeof text));
    TEST_ASSERT_EQUAL_STRING("abcdef", text);
    TEST_ASSERT_EQUAL_INT(0, ta__target_text(made, LOW + PAGE - 3, text, 7));
    TEST_ASSERT_EQUAL_STRING("abcdef", text);
    memset(text, 'x', sizeof text);
    TEST_ASSERT_EQUAL_INT(0, ta__target_text(made, LOW + PAGE - 3, text, 6));
    TEST_ASSERT_EQUAL_STRING("abcde", text);
    TEST_ASSERT_EQUAL_INT('x', text[6]);
    TEST_ASSERT_EQUAL_INT(0, ta__target_text(made, LOW, text, 1));
    TEST_ASSERT_EQUAL_STRING("", text);
    TEST_ASSERT_EQUAL_INT(-1, ta__target_text(made, NEXT + 2 * PAGE - 3, text, 5));
    TEST_ASSERT_EQUAL_INT(0, ta__target_text(made, NEXT + 2 * PAGE - 3, text, 4));
    TEST_ASSERT_EQUAL_INT(3, (int)strlen(text));
}

/* ---- what is where ----------------------------------------------------------------------------------------------- */

static void test_mapping_of_an_address(void)
{
    TEST_ASSERT_EQUAL_size_t(0, ta__target_region_from(made, 0));
    TEST_ASSERT_NULL(ta__target_region(made, LOW - 1));
    TEST_ASSERT_EQUAL_PTR(&made->regions[0], ta__target_region(made, LOW));
    TEST_ASSERT_EQUAL_PTR(&made->regions[0], ta__target_region(made, NEXT - 1));
    TEST_ASSERT_EQUAL_PTR(&made->regions[1], ta__target_region(made, NEXT));
    TEST_ASSERT_NULL(ta__target_region(made, NEXT + 4 * PAGE));
    TEST_ASSERT_EQUAL_size_t(2, ta__target_region_from(made, NEXT + 4 * PAGE));
    TEST_ASSERT_EQUAL_PTR(&made->regions[3], ta__target_region(made, LARGE + LARGE_PAGES * PAGE - 1));
    TEST_ASSERT_NULL(ta__target_region(made, LARGE + LARGE_PAGES * PAGE));
    TEST_ASSERT_EQUAL_size_t(4, ta__target_region_from(made, UINT64_MAX));
}

static void test_extent_goes_as_far_as_the_contents(void)
{
    TEST_ASSERT_EQUAL_UINT64(6 * PAGE, ta__target_extent(made, LOW));
    TEST_ASSERT_EQUAL_UINT64(6 * PAGE - 5, ta__target_extent(made, LOW + 5));
    TEST_ASSERT_EQUAL_UINT64(1, ta__target_extent(made, NEXT + 2 * PAGE - 1));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_extent(made, NEXT + 2 * PAGE));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_extent(made, LOW - 1));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_extent(made, FAR));
    TEST_ASSERT_EQUAL_UINT64(LARGE_PAGES * PAGE, ta__target_extent(made, LARGE));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_extent(made, UINT64_MAX));
    made->is_core = 0;
    TEST_ASSERT_EQUAL_UINT64(8 * PAGE, ta__target_extent(made, LOW));
    TEST_ASSERT_EQUAL_UINT64(4 * PAGE, ta__target_extent(made, FAR));
}

static void test_mapped_is_what_mappings_have_without_a_gap(void)
{
    TEST_ASSERT_EQUAL_INT(1, ta__target_is_mapped(made, LOW, NEXT + 4 * PAGE));
    TEST_ASSERT_EQUAL_INT(0, ta__target_is_mapped(made, LOW, NEXT + 4 * PAGE + 1));
    TEST_ASSERT_EQUAL_INT(0, ta__target_is_mapped(made, LOW - 1, LOW + 1));
    TEST_ASSERT_EQUAL_INT(1, ta__target_is_mapped(made, FAR, FAR + 1));
    TEST_ASSERT_EQUAL_INT(0, ta__target_is_mapped(made, NEXT, FAR + 1));
    TEST_ASSERT_EQUAL_INT(1, ta__target_is_mapped(made, 7, 7));
    TEST_ASSERT_EQUAL_INT(0, ta__target_is_mapped(made, LARGE, LARGE + LARGE_PAGES * PAGE + 1));
}

static void test_stored_are_the_bytes_that_a_core_has(void)
{
    TEST_ASSERT_EQUAL_UINT64(6 * PAGE, ta__target_stored(made, LOW, FAR));
    TEST_ASSERT_EQUAL_UINT64(6 * PAGE + 3, ta__target_stored(made, LOW, LARGE + 3));
    TEST_ASSERT_EQUAL_UINT64(10, ta__target_stored(made, LOW + 5, LOW + 15));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_stored(made, NEXT + 2 * PAGE, FAR + PAGE));
    TEST_ASSERT_EQUAL_UINT64(1, ta__target_stored(made, NEXT + 2 * PAGE - 1, FAR));
    TEST_ASSERT_EQUAL_UINT64(0, ta__target_stored(made, LOW - 100, LOW));
    TEST_ASSERT_EQUAL_UINT64(1, ta__target_stored(made, LOW - 100, LOW + 1));
    made->is_core = 0;
    TEST_ASSERT_EQUAL_UINT64(100, ta__target_stored(made, LOW - 100, LOW));
}

static void test_pages_of_a_core_are_those_that_it_has(void)
{
    uint8_t states[12];
    memset(states, 0x55, sizeof states);
    ta__target_pages(made, LOW - PAGE, 11, states);
    const uint8_t expected[] = {0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0x55};
    TEST_ASSERT_EQUAL_HEX8_ARRAY(expected, states, 12);
    memset(states, 0x55, sizeof states);
    ta__target_pages(made, LOW + 3 * PAGE, 3, states);
    TEST_ASSERT_EQUAL_HEX8(1, states[0]);
    TEST_ASSERT_EQUAL_HEX8(1, states[2]);
    TEST_ASSERT_EQUAL_HEX8(0x55, states[3]);
}

static void test_object_of_an_address(void)
{
    struct ta__object_file objects[2] = {{.start = 0x1000, .end = 0x3000}, {.start = 0x3000, .end = 0x4000}};
    made->objects = objects;
    made->object_count = 2;
    TEST_ASSERT_NULL(ta__target_object(made, 0xFFF));
    TEST_ASSERT_EQUAL_PTR(&objects[0], ta__target_object(made, 0x1000));
    TEST_ASSERT_EQUAL_PTR(&objects[0], ta__target_object(made, 0x2FFF));
    TEST_ASSERT_EQUAL_PTR(&objects[1], ta__target_object(made, 0x3000));
    TEST_ASSERT_NULL(ta__target_object(made, 0x4000));
    made->objects = NULL;
    made->object_count = 0;
}

static void test_texts_are_kept_by_their_places(void)
{
    TEST_ASSERT_EQUAL_STRING("", ta__target_string(made, 0));
    TEST_ASSERT_EQUAL_UINT32(0, ta__target_keep(made, "nothing", 0));
    uint32_t first = ta__target_keep(made, "first and more", 5), second = ta__target_keep(made, "second", 6);
    TEST_ASSERT_EQUAL_UINT32(1, first);
    TEST_ASSERT_EQUAL_UINT32(7, second);
    TEST_ASSERT_EQUAL_STRING("first", ta__target_string(made, first));
    TEST_ASSERT_EQUAL_STRING("second", ta__target_string(made, second));
    TEST_ASSERT_EQUAL_STRING("", ta__target_string(made, 0));
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static void test_registers_are_those_that_could_hold_pointers(void)
{
    enum { WORDS = sizeof(struct user_regs_struct) / 8 };
    uint64_t words[40];
    struct ta__target_thread thread;
    for (size_t i = 0; i < 40; i++)
        words[i] = 100 + i;
    memset(&thread, 0, sizeof thread);
    ta__target_set_registers(&thread, words, WORDS * 8);
    TEST_ASSERT_EQUAL_UINT64(119, thread.sp);
    TEST_ASSERT_EQUAL_UINT64(116, thread.ip);
    TEST_ASSERT_EQUAL_UINT64(121, thread.tls);
    TEST_ASSERT_EQUAL_UINT32(16, thread.register_count);
    for (uint32_t i = 0; i < 16; i++)
        TEST_ASSERT_EQUAL_UINT64(100 + i, thread.registers[i]);
    TEST_ASSERT_EQUAL_UINT64(0, thread.registers[16]);
    memset(&thread, 0, sizeof thread);
    ta__target_set_registers(&thread, words, WORDS * 8 - 1);
    TEST_ASSERT_EQUAL_UINT64(0, thread.sp);
    TEST_ASSERT_EQUAL_UINT32(0, thread.register_count);
    ta__target_set_registers(&thread, words, sizeof words);
    TEST_ASSERT_EQUAL_UINT64(121, thread.tls);
}
#endif

static void test_auxiliary_vector_tells_of_the_program(void)
{
    const uint64_t words[] = {AT_PAGESZ, 1, AT_PHDR, 2, AT_PHNUM, 3, AT_RANDOM, 4, AT_NULL, 0, AT_PHDR, 9};
    ta__target_set_auxiliary(made, words, 12);
    TEST_ASSERT_EQUAL_UINT64(2, made->entry_phdr);
    TEST_ASSERT_EQUAL_UINT64(3, made->entry_phdr_count);
    TEST_ASSERT_EQUAL_UINT64(4, made->on_first_stack);
    made->entry_phdr_count = made->on_first_stack = 0;
    ta__target_set_auxiliary(made, words, 7); /* it ends too early */
    TEST_ASSERT_EQUAL_UINT64(3, made->entry_phdr_count);
    TEST_ASSERT_EQUAL_UINT64(0, made->on_first_stack);
    ta__target_set_auxiliary(made, words, 8);
    TEST_ASSERT_EQUAL_UINT64(4, made->on_first_stack);
}

static void test_registers_that_are_given(void)
{
    TEST_ASSERT_EQUAL_INT(0, ta__target_give_registers(made, "12=a0,b1,c2;13=1,2,3,4,Ff;"));
    TEST_ASSERT_EQUAL_size_t(2, made->thread_count);
    const struct ta__target_thread *first = &made->threads[0], *second = &made->threads[1];
    TEST_ASSERT_EQUAL_UINT32(12, first->tid);
    TEST_ASSERT_EQUAL_HEX64(0xA0, first->sp);
    TEST_ASSERT_EQUAL_HEX64(0xB1, first->ip);
    TEST_ASSERT_EQUAL_HEX64(0xC2, first->tls);
    TEST_ASSERT_EQUAL_UINT32(0, first->register_count);
    TEST_ASSERT_EQUAL_UINT32(13, second->tid);
    TEST_ASSERT_EQUAL_UINT32(2, second->register_count);
    TEST_ASSERT_EQUAL_HEX64(4, second->registers[0]);
    TEST_ASSERT_EQUAL_HEX64(0xFF, second->registers[1]);
    TEST_ASSERT_EQUAL_INT(0, ta__target_give_registers(made, "7=1,2,3")); /* instead of the others */
    TEST_ASSERT_EQUAL_size_t(1, made->thread_count);
    TEST_ASSERT_EQUAL_INT(0, ta__target_give_registers(made, ""));
    TEST_ASSERT_EQUAL_size_t(0, made->thread_count);
}

static void test_registers_that_are_given_wrongly_are_refused(void)
{
    static const char *const texts[] = {"x",
                                        "12",
                                        "12:1,2,3",
                                        "12=",
                                        "12=1,2",
                                        "12=1,,3",
                                        "12=1,2,3,",
                                        "12=1,2,3 ",
                                        "12=1,2,3;x",
                                        "-12=1,2,3",
                                        "12=-1,2,3",
                                        "12=1,2,-3",
                                        "=1,2,3",
                                        "12=1,2,3;;13=1,2,3",
                                        "12=10000000000000000,2,3",
                                        "99999999999999999999=1,2,3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char expected[200];
        snprintf(expected, sizeof expected, "--registers: expected TID=SP,IP,TLS,REGISTER,…;… in hexadecimal, not '%s'",
                 texts[i]);
        ta__error_clear();
        TEST_ASSERT_EQUAL_INT_MESSAGE(-1, ta__target_give_registers(made, texts[i]), texts[i]);
        TEST_ASSERT_EQUAL_STRING(expected, ta__error_text());
    }
}

static void test_as_many_registers_as_there_is_room_for_are_given(void)
{
    char text[300] = "5=1,2,3";
    for (int i = 0; i < TA__REGISTERS; i++)
        strcat(text, ",9");
    TEST_ASSERT_EQUAL_INT(0, ta__target_give_registers(made, text));
    TEST_ASSERT_EQUAL_UINT32(TA__REGISTERS, made->threads[0].register_count);
    TEST_ASSERT_EQUAL_UINT64(9, made->threads[0].registers[TA__REGISTERS - 1]);
    strcat(text, ",9");
    TEST_ASSERT_EQUAL_INT(-1, ta__target_give_registers(made, text));
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static char first_byte(const char *path)
{
    char byte = 0;
    int file = ta__target_open_file(made, path);
    if (file < 0)
        return '-';
    TEST_ASSERT_EQUAL_INT(1, (int)read(file, &byte, 1));
    close(file);
    return byte;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    TEST_ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

static void test_file_is_looked_for_where_the_process_would_find_it(void)
{
    char folder[] = "/tmp/ta_root.XXXXXX", inside[200], both[200];
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    snprintf(both, sizeof both, "%s%s", folder, folder);
    write_file((snprintf(inside, sizeof inside, "%s/outer", folder), inside), "o");
    TEST_ASSERT_EQUAL_INT('o', first_byte(inside));
    TEST_ASSERT_EQUAL_INT('-', first_byte("relative"));
    TEST_ASSERT_EQUAL_INT('-', first_byte(""));
    snprintf(made->root, sizeof made->root, "%s", folder);
    TEST_ASSERT_EQUAL_INT('o', first_byte("/outer"));
    TEST_ASSERT_EQUAL_INT('o', first_byte(inside)); /* not below its root: the reader's own */
    TEST_ASSERT_EQUAL_INT('-', first_byte("/none"));
    made->root[0] = '\0';
    TEST_ASSERT_EQUAL_INT('-', first_byte("/outer"));
    unlink(inside);
    rmdir(folder);
}

static void expect_refusal(const char *what, const char *text)
{
    struct ta__target target;
    TEST_ASSERT_EQUAL_INT(-1, ta__target_open(&target, what));
    TEST_ASSERT_EQUAL_STRING(text, ta__error_text());
    TEST_ASSERT_EQUAL_INT(-1, target.memory_descriptor);
}

static void test_number_is_a_process_and_all_else_a_file(void)
{
    char number[16], text[100];
    snprintf(number, sizeof number, "%d", (int)getpid());
    snprintf(text, sizeof text, "process %d is this program itself", (int)getpid());
    expect_refusal(number, text);
    expect_refusal("999999999", "process 999999999: there is no such process");
    expect_refusal("9999999999", "9999999999: No such file or directory");
    expect_refusal("12x", "12x: No such file or directory");
    expect_refusal("x12", "x12: No such file or directory");
    expect_refusal("", ": No such file or directory");
    expect_refusal("/tmp", "/tmp: is neither a core file nor the number of a process");
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_reading_goes_on_from_mapping_to_mapping);
    RUN_TEST(test_sparse_reading_has_zeros_for_what_is_not_there);
    RUN_TEST(test_sparse_reading_reads_512_pages_at_a_time);
    RUN_TEST(test_sparse_reading_fails_where_what_is_there_cannot_be_read);
    RUN_TEST(test_words_are_read_across_pages);
    RUN_TEST(test_cache_tells_pages_apart_and_forgets);
    RUN_TEST(test_text_ends_at_its_nul_or_where_there_is_no_room);
    RUN_TEST(test_mapping_of_an_address);
    RUN_TEST(test_extent_goes_as_far_as_the_contents);
    RUN_TEST(test_mapped_is_what_mappings_have_without_a_gap);
    RUN_TEST(test_stored_are_the_bytes_that_a_core_has);
    RUN_TEST(test_pages_of_a_core_are_those_that_it_has);
    RUN_TEST(test_object_of_an_address);
    RUN_TEST(test_texts_are_kept_by_their_places);
#if defined(__x86_64__)
    RUN_TEST(test_registers_are_those_that_could_hold_pointers);
#endif
    RUN_TEST(test_auxiliary_vector_tells_of_the_program);
    RUN_TEST(test_registers_that_are_given);
    RUN_TEST(test_registers_that_are_given_wrongly_are_refused);
    RUN_TEST(test_as_many_registers_as_there_is_room_for_are_given);
    RUN_TEST(test_file_is_looked_for_where_the_process_would_find_it);
    RUN_TEST(test_number_is_a_process_and_all_else_a_file);
    return UNITY_END();
}
