/* test_base_mappings.c: who mapped what is known of thousands of mappings, also when they are cut or move. */
#include "base/mappings.h"

#include <pthread.h>
#include <stdlib.h>
#include <unity.h>

#include "base/memory.h"

enum { PAGE = 4096, MOST = 40000, PROGRAM = TA__MAPPED_BY_PROGRAM + 7 };

static struct ta__mapping list[MOST];
static size_t count;

void setUp(void)
{
}

void tearDown(void)
{
}

static const struct ta__mapping *find(const void *address)
{
    count = ta__mappings_list(list, MOST);
    for (size_t i = 0; i < count; i++)
        if (list[i].start == (uintptr_t)address)
            return &list[i];
    return NULL;
}

static void assert_known(const void *address, size_t length, uint32_t who)
{
    const struct ta__mapping *found = find(address);
    TEST_ASSERT_NOT_NULL(found);
    TEST_ASSERT_EQUAL(length, found->length);
    TEST_ASSERT_EQUAL(who, found->who);
}

static char *make(size_t pages)
{
    char *made =
        ta__mapping_make(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, PROGRAM);
    TEST_ASSERT_NOT_EQUAL(MAP_FAILED, made);
    return made;
}

static void test_what_is_made_is_known_until_it_is_dropped(void)
{
    char *made = make(3);
    assert_known(made, 3 * PAGE, PROGRAM);
    TEST_ASSERT_EQUAL(0, ta__mapping_drop(made, 3 * PAGE));
    TEST_ASSERT_NULL(find(made));
}

static void test_tables_are_known_as_such_also_when_they_grow(void)
{
    void *table = ta__memory_map(2 * PAGE);
    assert_known(table, 2 * PAGE, TA__MAPPED_FOR_TABLES);
    void *grown = ta__memory_grow(table, 2 * PAGE, 5000 * PAGE);
    TEST_ASSERT_NOT_NULL(grown);
    assert_known(grown, 5000 * PAGE, TA__MAPPED_FOR_TABLES);
    ta__memory_unmap(grown, 5000 * PAGE);
    TEST_ASSERT_NULL(find(grown));
}

static void test_the_rest_of_what_is_cut_in_front_stays_known(void)
{
    char *made = make(10);
    TEST_ASSERT_EQUAL(0, ta__mapping_drop(made, 4 * PAGE));
    TEST_ASSERT_NULL(find(made));
    assert_known(made + 4 * PAGE, 6 * PAGE, PROGRAM);
    TEST_ASSERT_EQUAL(0, ta__mapping_drop(made + 4 * PAGE, 6 * PAGE));
}

static void test_thousands_are_known_and_come_by_address(void)
{
    enum { MANY = 20000 };
    static char *made[MANY];
    for (int i = 0; i < MANY; i++)
        ta__mapping_note(made[i] = (char *)((uintptr_t)(i * 7919 % MANY + 1) * 16 * PAGE), PAGE, PROGRAM);
    count = ta__mappings_list(list, MOST);
    TEST_ASSERT_GREATER_OR_EQUAL(MANY * 99 / 100, count);
    for (size_t i = 1; i < count; i++)
        TEST_ASSERT_TRUE(list[i - 1].start < list[i].start);
    for (int i = 0; i < MANY; i++)
        ta__mapping_forget(made[i], PAGE);
    TEST_ASSERT_LESS_THAN(100, ta__mappings_list(list, MOST));
    TEST_ASSERT_EQUAL(0, ta__mappings_list(list, 0));
    for (int i = 0; i < 5; i++)
        ta__mapping_note(made[i], PAGE, PROGRAM);
    list[3].start = 77;
    TEST_ASSERT_EQUAL(3, ta__mappings_list(list, 3));
    TEST_ASSERT_EQUAL(77, list[3].start);
    for (int i = 0; i < 5; i++)
        ta__mapping_forget(made[i], PAGE);
}

static void *note_and_forget(void *own)
{
    for (int i = 0; i < 20000; i++) {
        ta__mapping_note((char *)own + (size_t)(i % 50) * PAGE, PAGE, PROGRAM);
        ta__mapping_forget((char *)own + (size_t)(i % 50) * PAGE, PAGE);
    }
    return NULL;
}

static void test_threads_do_not_disturb_each_other(void)
{
    pthread_t threads[4];
    char *kept = make(1);
    for (size_t i = 0; i < 4; i++)
        TEST_ASSERT_EQUAL(0, pthread_create(&threads[i], NULL, note_and_forget, (char *)((i + 1) << 32)));
    for (int i = 0; i < 200; i++)
        TEST_ASSERT_NOT_NULL(find(kept));
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_known(kept, PAGE, PROGRAM);
    TEST_ASSERT_EQUAL(0, ta__mapping_drop(kept, PAGE));
    TEST_ASSERT_LESS_THAN(100, ta__mappings_list(list, MOST));
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_what_is_made_is_known_until_it_is_dropped);
    RUN_TEST(test_tables_are_known_as_such_also_when_they_grow);
    RUN_TEST(test_the_rest_of_what_is_cut_in_front_stays_known);
    RUN_TEST(test_thousands_are_known_and_come_by_address);
    RUN_TEST(test_threads_do_not_disturb_each_other);
    return UNITY_END();
}
