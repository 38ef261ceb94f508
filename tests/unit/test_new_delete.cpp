/* test_new_delete.cpp: every form of C++ operator new and delete, the new handler, and what they share with malloc.
 *
 * Linked with the C++ library alone it proves itself; linked with ours it proves that our definitions replace all
 * forms, so that no block of one allocator reaches the other's free. */
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "unity.h"
#include "tracealloc.h"

#pragma weak ta_version
#pragma weak ta_get_health

static const std::size_t absurd_sizes[] = {SIZE_MAX, SIZE_MAX - 16, static_cast<std::size_t>(PTRDIFF_MAX),
                                           static_cast<std::size_t>(1) << 62};

static std::size_t opaque(std::size_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

static void *opaque_pointer(void *value)
{
    __asm__ volatile("" : "+r"(value) : : "memory");
    return value;
}

static int handler_calls;

void setUp(void)
{
    std::set_new_handler(nullptr);
    handler_calls = 0;
}

void tearDown(void)
{
    std::set_new_handler(nullptr);
}

static void check_block(void *block, std::size_t size, std::size_t alignment)
{
    TEST_ASSERT_NOT_NULL(block);
    TEST_ASSERT_EQUAL_UINT64(0, reinterpret_cast<std::uintptr_t>(block) & (alignment - 1));
    TEST_ASSERT_GREATER_OR_EQUAL_size_t(size, malloc_usable_size(block));
    std::memset(opaque_pointer(block), 0xA5, size);
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static void test_plain_forms_pair_with_plain_and_sized_delete(void)
{
    for (std::size_t size = 0; size < 100000; size = size * 3 + 1) {
        void *one = ::operator new(opaque(size));
        check_block(one, size, 16);
        ::operator delete(one);
        one = ::operator new(opaque(size));
        check_block(one, size, 16);
        ::operator delete(one, size);
        void *many = ::operator new[](opaque(size));
        check_block(many, size, 16);
        ::operator delete[](many);
        many = ::operator new[](opaque(size));
        check_block(many, size, 16);
        ::operator delete[](many, size);
    }
}

static void test_nothrow_forms_pair_with_nothrow_delete(void)
{
    for (std::size_t size = 0; size < 100000; size = size * 3 + 1) {
        void *one = ::operator new(opaque(size), std::nothrow);
        check_block(one, size, 16);
        ::operator delete(one, std::nothrow);
        void *many = ::operator new[](opaque(size), std::nothrow);
        check_block(many, size, 16);
        ::operator delete[](many, std::nothrow);
    }
}

static void test_aligned_forms_give_every_power_of_two(void)
{
    for (std::size_t alignment = 1; alignment <= (1u << 20); alignment *= 2) {
        auto tag = static_cast<std::align_val_t>(alignment);
        for (std::size_t size = 0; size < 100000; size = size * 5 + 3) {
            void *block = ::operator new(opaque(size), tag);
            check_block(block, size, alignment);
            ::operator delete(block, tag);
            block = ::operator new(opaque(size), tag);
            check_block(block, size, alignment);
            ::operator delete(block, size, tag);
            block = ::operator new[](opaque(size), tag);
            check_block(block, size, alignment);
            ::operator delete[](block, tag);
            block = ::operator new[](opaque(size), tag);
            check_block(block, size, alignment);
            ::operator delete[](block, size, tag);
            block = ::operator new(opaque(size), tag, std::nothrow);
            check_block(block, size, alignment);
            ::operator delete(block, tag, std::nothrow);
            block = ::operator new[](opaque(size), tag, std::nothrow);
            check_block(block, size, alignment);
            ::operator delete[](block, tag, std::nothrow);
        }
    }
}

static void test_delete_of_null_does_nothing_in_every_form(void)
{
    errno = 4242;
    auto tag = static_cast<std::align_val_t>(64);
    auto null = [] { return opaque_pointer(nullptr); };
    ::operator delete(null());
    ::operator delete[](null());
    ::operator delete(null(), opaque(8));
    ::operator delete[](null(), opaque(8));
    ::operator delete(null(), std::nothrow);
    ::operator delete[](null(), std::nothrow);
    ::operator delete(null(), tag);
    ::operator delete[](null(), tag);
    ::operator delete(null(), opaque(8), tag);
    ::operator delete[](null(), opaque(8), tag);
    ::operator delete(null(), tag, std::nothrow);
    ::operator delete[](null(), tag, std::nothrow);
    TEST_ASSERT_EQUAL_INT(4242, errno);
}

static void test_new_of_zero_returns_unique_pointers(void)
{
    void *first = ::operator new(opaque(0));
    void *second = ::operator new(opaque(0));
    TEST_ASSERT_TRUE(first != second);
    ::operator delete(first);
    ::operator delete(second);
}

/* ---- failure ------------------------------------------------------------------------------------------------------
 */

template <typename Action> static bool throws_bad_alloc(Action action)
{
    try {
        opaque_pointer(action());
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

/* The C++ library's own aligned forms round sizes near the end of the address space up to zero; ours must not. */
static bool rounding_overflows_in_libstdcxx(std::size_t size)
{
    return ta_version == nullptr && size > SIZE_MAX - 64;
}

static void test_throwing_forms_throw_bad_alloc_for_absurd_sizes(void)
{
    auto tag = static_cast<std::align_val_t>(64);
    for (std::size_t absurd : absurd_sizes) {
        std::size_t size = opaque(absurd);
        TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new(size); }));
        TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new[](size); }));
        if (rounding_overflows_in_libstdcxx(size))
            continue;
        TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new(size, tag); }));
        TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new[](size, tag); }));
    }
}

static void test_nothrow_forms_return_null_for_absurd_sizes(void)
{
    auto tag = static_cast<std::align_val_t>(64);
    for (std::size_t absurd : absurd_sizes) {
        std::size_t size = opaque(absurd);
        TEST_ASSERT_NULL(::operator new(size, std::nothrow));
        TEST_ASSERT_NULL(::operator new[](size, std::nothrow));
        if (rounding_overflows_in_libstdcxx(size))
            continue;
        TEST_ASSERT_NULL(::operator new(size, tag, std::nothrow));
        TEST_ASSERT_NULL(::operator new[](size, tag, std::nothrow));
    }
}

static void count_then_retire()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

static void test_new_handler_is_called_until_it_gives_up(void)
{
    auto tag = static_cast<std::align_val_t>(128);
    std::size_t size = opaque(absurd_sizes[2]);

    std::set_new_handler(count_then_retire);
    TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new(size); }));
    TEST_ASSERT_EQUAL_INT(3, handler_calls);

    handler_calls = 0;
    std::set_new_handler(count_then_retire);
    TEST_ASSERT_NULL(::operator new[](size, std::nothrow));
    TEST_ASSERT_EQUAL_INT(3, handler_calls);

    handler_calls = 0;
    std::set_new_handler(count_then_retire);
    TEST_ASSERT_TRUE(throws_bad_alloc([&] { return ::operator new(size, tag); }));
    TEST_ASSERT_EQUAL_INT(3, handler_calls);

    handler_calls = 0;
    std::set_new_handler(count_then_retire);
    TEST_ASSERT_NULL(::operator new[](size, tag, std::nothrow));
    TEST_ASSERT_EQUAL_INT(3, handler_calls);
}

struct own_error : std::bad_alloc {
};

static void throw_own_error()
{
    throw own_error();
}

static void test_exception_of_a_new_handler_passes_through(void)
{
    std::set_new_handler(throw_own_error);
    bool caught = false;
    try {
        opaque_pointer(::operator new(opaque(SIZE_MAX)));
    } catch (const own_error &) {
        caught = true;
    }
    TEST_ASSERT_TRUE(caught);
    TEST_ASSERT_NULL(::operator new(opaque(SIZE_MAX), std::nothrow));
}

static void test_malloc_does_not_call_the_new_handler(void)
{
    std::set_new_handler(count_then_retire);

    TEST_ASSERT_NULL(opaque_pointer(std::malloc(opaque(SIZE_MAX))));

    TEST_ASSERT_EQUAL_INT(0, handler_calls);
}

/* ---- the language and its library on top ------------------------------------------------------------------------- */

struct alignas(256) wide {
    unsigned char bytes[512];
};

static void test_overaligned_types_are_aligned_alone_and_in_arrays(void)
{
    for (int i = 0; i < 100; i++) {
        auto one = std::make_unique<wide>();
        auto many = std::make_unique<wide[]>(7);
        TEST_ASSERT_EQUAL_UINT64(0, reinterpret_cast<std::uintptr_t>(one.get()) % 256);
        TEST_ASSERT_EQUAL_UINT64(0, reinterpret_cast<std::uintptr_t>(many.get()) % 256);
        std::vector<wide> grown;
        for (int k = 0; k < 9; k++)
            grown.emplace_back();
        TEST_ASSERT_EQUAL_UINT64(0, reinterpret_cast<std::uintptr_t>(grown.data()) % 256);
    }
}

struct refuses_to_be_made {
    char bytes[1000];
    refuses_to_be_made()
    {
        throw 7;
    }
};

static void test_constructor_that_throws_returns_its_memory(void)
{
    for (int i = 0; i < 10000; i++) {
        try {
            opaque_pointer(new refuses_to_be_made);
            TEST_FAIL_MESSAGE("the constructor did not throw");
        } catch (int seven) {
            TEST_ASSERT_EQUAL_INT(7, seven);
        }
    }
}

static void fill_containers()
{
    std::map<std::string, std::vector<std::string>> table;
    for (int i = 0; i < 3000; i++)
        for (int k = 0; k < 4; k++)
            table["key number " + std::to_string(i)].push_back(std::string(static_cast<std::size_t>(k * 10 + 20), 'x'));
    TEST_ASSERT_EQUAL_size_t(3000, table.size());
    TEST_ASSERT_EQUAL_size_t(50, table["key number 77"][3].size());
}

static void test_containers_and_threads_work(void)
{
    fill_containers();
    std::vector<std::thread> threads;
    auto shared = std::make_shared<std::vector<std::string>>(1000, "some text that is not short");
    for (int i = 0; i < 8; i++)
        threads.emplace_back([shared] {
            std::vector<std::string> copy = *shared;
            copy.resize(2000, "more");
        });
    for (auto &thread : threads)
        thread.join();
    TEST_ASSERT_EQUAL_INT(1, static_cast<int>(shared.use_count()));
}

static void test_nothing_was_foreign_or_damaged_after_all_this(void)
{
    if (ta_version == nullptr)
        TEST_IGNORE_MESSAGE("the C++ library alone does not count");
    struct ta_health health;
    ta_get_health(&health, sizeof health);
    TEST_ASSERT_EQUAL_UINT64(0, health.foreign_frees);
    TEST_ASSERT_EQUAL_UINT64(0, health.invalid_frees);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_plain_forms_pair_with_plain_and_sized_delete);
    RUN_TEST(test_nothrow_forms_pair_with_nothrow_delete);
    RUN_TEST(test_aligned_forms_give_every_power_of_two);
    RUN_TEST(test_delete_of_null_does_nothing_in_every_form);
    RUN_TEST(test_new_of_zero_returns_unique_pointers);
    RUN_TEST(test_throwing_forms_throw_bad_alloc_for_absurd_sizes);
    RUN_TEST(test_nothrow_forms_return_null_for_absurd_sizes);
    RUN_TEST(test_new_handler_is_called_until_it_gives_up);
    RUN_TEST(test_exception_of_a_new_handler_passes_through);
    RUN_TEST(test_malloc_does_not_call_the_new_handler);
    RUN_TEST(test_overaligned_types_are_aligned_alone_and_in_arrays);
    RUN_TEST(test_constructor_that_throws_returns_its_memory);
    RUN_TEST(test_containers_and_threads_work);
    RUN_TEST(test_nothing_was_foreign_or_damaged_after_all_this);
    return UNITY_END();
}
