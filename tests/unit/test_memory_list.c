/* test_memory_list.c: whose memory is what, from a list of mappings as the kernel writes it. Sizes are in KiB. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <unity.h>

#include "snapshot/triggers/memory_kinds.h"

static char path[] = "/tmp/test-list-XXXXXX";
static struct ta__memory_sums sums;

void setUp(void)
{
    strcpy(strrchr(path, '-') + 1, "XXXXXX");
    close(mkstemp(path));
}

void tearDown(void)
{
    unlink(path);
}

/* "resident/size" of each kind that has any, in KiB. */
static const char *sums_of(const char *list, const struct ta__mapping *owners, size_t count)
{
    static const char *const names[] = {"blocks", "tracing", "mapped", "stacks", "libraries", "files", "shared"};
    static char text[400];
    FILE *file = fopen(path, "w");
    fputs(list, file);
    fclose(file);
    TEST_ASSERT_EQUAL_INT(1, ta__memory_sums_of(path, owners, count, &sums));
    text[0] = '\0';
    for (int i = 0; i < TA__MEMORY_KINDS; i++)
        if (sums.size[i] != 0 || sums.resident[i] != 0)
            sprintf(text + strlen(text), "%s%s %llu/%llu", text[0] != '\0' ? ", " : "", names[i],
                    (unsigned long long)sums.resident[i] / 1024, (unsigned long long)sums.size[i] / 1024);
    return text;
}

#define AREA(range, rights, name, rss)                                                                                 \
    range " " rights " 00000000 fe:00 332835                     " name "\nSize:  999 kB\nRss:    " rss                \
          " kB\nPss: 1 kB\n"                                                                                           \
          "VmFlags: rd mr mw me\n"

static void test_files_with_code_are_libraries_with_all_they_have(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "libraries 44/72, files 5/16",
        sums_of(AREA("1000-5000", "r--p", "/lib/a.so", "4") AREA("5000-9000", "r-xp", "/lib/a.so", "16")
                    AREA("9000-b000", "rw-p", "/lib/a.so", "8") AREA("b000-d000", "rw-p", "", "6")
                        AREA("20000-24000", "r--p", "/data/x", "5") AREA("30000-36000", "r-xp", "/lib/b.so", "10"),
                NULL, 0));
}

static void test_what_stands_beside_a_library_but_not_behind_it_is_no_part_of_it(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "mapped 6/8, libraries 16/16",
        sums_of(AREA("5000-9000", "r-xp", "/lib/a.so", "16") AREA("a000-c000", "rw-p", "", "6"), NULL, 0));
    TEST_ASSERT_EQUAL_STRING(
        "mapped 6/8, files 16/16",
        sums_of(AREA("5000-9000", "rw-p", "/data/a", "16") AREA("9000-b000", "rw-p", "", "6"), NULL, 0));
}

static void test_stacks_are_named_or_stand_behind_a_guard(void)
{
    TEST_ASSERT_EQUAL_STRING("mapped 9/16, stacks 32/8224",
                             sums_of(AREA("10000-11000", "---p", "", "0") AREA("11000-811000", "rw-p", "", "20")
                                         AREA("900000-914000", "---p", "", "0") AREA("914000-918000", "rw-p", "", "9")
                                             AREA("7ff000-807000", "rw-p", "[stack]", "12"),
                                     NULL, 0));
    TEST_ASSERT_EQUAL_STRING(
        "mapped 9/16", sums_of(AREA("10000-11000", "---p", "", "0") AREA("12000-16000", "rw-p", "", "9"), NULL, 0));
    TEST_ASSERT_EQUAL_STRING(
        "stacks 9/16", /* 64 KiB are a guard */
        sums_of(AREA("10000-20000", "---p", "", "0") AREA("20000-24000", "rw-p", "", "9"), NULL, 0));
}

static void test_shared_memory_has_its_names_and_the_kernels_pages_are_nobodys(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "files 1/4, shared 31/24",
        sums_of(AREA("1000-2000", "rw-s", "/dev/zero (deleted)", "1") AREA("2000-3000", "rw-s", "/dev/shm/x", "2")
                    AREA("3000-4000", "rw-s", "/memfd:y (deleted)", "4") AREA("4000-5000", "rw-s", "/SYSV00000000", "8")
                        AREA("5000-6000", "rw-p", "[anon_shmem:z]", "15")
                            AREA("6000-7000", "rw-s", "/anon_hugepage", "1") AREA("7000-8000", "rw-s", "/dev/shn", "1")
                                AREA("8000-9000", "r-xp", "[vdso]", "7") AREA("9000-a000", "r--p", "[vvar]", "7"),
                NULL, 0));
}

static void test_owners_have_their_shares_of_one_area(void)
{
    const struct ta__mapping owners[] = {{0x1000, 0x1000, TA__MAPPED_FOR_TABLES}, /* ends before */
                                         {0x8000, 0x4000, TA__MAPPED_FOR_TABLES}, /* half of it in front of the area */
                                         {0xc000, 0x4000, TA__MAPPED_FOR_BLOCKS},
                                         {0x12000, 0x2000, TA__MAPPED_BY_PROGRAM + 7},
                                         {0x14000, 0x1000, TA__MAPPED_BY_PROGRAM + TA__SITES_MOST},
                                         {0x16000, 0x8000, TA__MAPPED_FOR_BLOCKS}, /* half of it behind */
                                         {0x90000, 0x1000, TA__MAPPED_FOR_BLOCKS}};
    TEST_ASSERT_EQUAL_STRING("blocks 16/32, tracing 4/8, mapped 12/24",
                             sums_of(AREA("a000-1a000", "rw-p", "", "32"), owners, 7));
    TEST_ASSERT_EQUAL_UINT64(4 * 1024, sums.sites[7]);
    TEST_ASSERT_EQUAL_UINT64(8 * 1024, sums.sites[0]); /* too many sites, and what nobody knows */
}

static void test_the_list_without_resident_sizes_has_sizes(void)
{
    const struct ta__mapping owners[] = {{0x5000, 0x4000, TA__MAPPED_BY_PROGRAM + 1}};
    TEST_ASSERT_EQUAL_STRING(
        "mapped 0/16, libraries 0/16",
        sums_of("1000-5000 r-xp 00000000 fe:00 3 /lib/a.so\n5000-9000 rw-p 00000000 00:00 0 \n", owners, 1));
}

static void test_lines_that_are_no_areas_are_passed_over(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "mapped 0/4",
        sums_of("-5000 rw-p 00000000 00:00 0 \n1000-2000\n3000-4000 rw-\n6000 rw-p 0 0 0\n\n8000-9000 rw-p \n", NULL,
                0));
}

/* A path may be as long as the kernel lets it, and each of its line ends is written as four bytes. */
static void test_lines_longer_than_the_room_for_them_do_no_harm(void)
{
    static char list[60000];
    for (size_t length = 8100; length < 8300; length++) {
        strcpy(list, "1000-5000 r-xp 00000000 fe:00 3 /");
        size_t at = strlen(list);
        memset(list + at, 'x', length);
        strcpy(list + at + length, "\nRss: 12 kB\n" AREA("9000-b000", "rw-p", "/d", "8"));
        TEST_ASSERT_EQUAL_STRING("libraries 12/16, files 8/8", sums_of(list, NULL, 0));
    }
    memset(list, 'y', 30000);
    strcpy(list + 30000, "\n" AREA("9000-b000", "rw-p", "/d", "8"));
    TEST_ASSERT_EQUAL_STRING("files 8/8", sums_of(list, NULL, 0));
}

static void test_many_areas_are_read_whatever_piece_they_end_in(void)
{
    static char list[400000];
    size_t at = 0;
    for (unsigned i = 1; i <= 3000; i++)
        at += (size_t)sprintf(list + at, "%x000-%x000 rw-p 00000000 00:00 0 %*s/f%u\nRss: 4 kB\n", 2 * i, 2 * i + 1,
                              (int)(i % 17), "", i);
    TEST_ASSERT_EQUAL_STRING("files 12000/12000", sums_of(list, NULL, 0));
    TEST_ASSERT_EQUAL_STRING("", sums_of("", NULL, 0));
    unlink(path);
    TEST_ASSERT_EQUAL_INT(0, ta__memory_sums_of(path, NULL, 0, &sums));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_files_with_code_are_libraries_with_all_they_have);
    RUN_TEST(test_what_stands_beside_a_library_but_not_behind_it_is_no_part_of_it);
    RUN_TEST(test_stacks_are_named_or_stand_behind_a_guard);
    RUN_TEST(test_shared_memory_has_its_names_and_the_kernels_pages_are_nobodys);
    RUN_TEST(test_owners_have_their_shares_of_one_area);
    RUN_TEST(test_the_list_without_resident_sizes_has_sizes);
    RUN_TEST(test_lines_that_are_no_areas_are_passed_over);
    RUN_TEST(test_lines_longer_than_the_room_for_them_do_no_harm);
    RUN_TEST(test_many_areas_are_read_whatever_piece_they_end_in);
    return UNITY_END();
}
