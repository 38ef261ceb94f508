/* test_rule.c: the packed unwind rule: what goes in comes out, what does not fit is UNKNOWN. */
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "trace/unwind/rule.h"
#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

static void test_rule_encoded_returns_every_field(void)
{
    static const int64_t offsets[] = {0, 8, -8, 16, 4096, TA__RULE_OFFSET_MAX, -TA__RULE_OFFSET_MAX};
    static const int64_t slots[] = {0, 8, -8, -16, TA__RULE_SLOT_MAX, -TA__RULE_SLOT_MAX};
    for (unsigned kind = TA__RULE_SP; kind <= TA__RULE_PLT; kind++) {
        for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
            for (size_t j = 0; j < sizeof slots / sizeof *slots; j++) {
                uint64_t rule = ta__rule_encode((enum ta__rule_kind)kind, TA__RULE_SAVES_FP, offsets[i], slots[j]);
                rule = ta__rule_with_salt(rule, 0xabcd);

                TEST_ASSERT_EQUAL_INT(kind, ta__rule_kind(rule));
                TEST_ASSERT_TRUE(ta__rule_saves_fp(rule));
                TEST_ASSERT_FALSE(ta__rule_slot_from_fp(rule));
                TEST_ASSERT_FALSE(ta__rule_in_loader(rule));
                TEST_ASSERT_EQUAL_INT64(offsets[i], ta__rule_offset(rule));
                TEST_ASSERT_EQUAL_INT64(slots[j], ta__rule_slot(rule));
                TEST_ASSERT_EQUAL_HEX(0xabcd, ta__rule_salt(rule));
            }
        }
    }
}

static void test_rule_flags_do_not_touch_each_other(void)
{
    uint64_t rule = ta__rule_encode(TA__RULE_FP_DEREF, TA__RULE_SLOT_FROM_FP | TA__RULE_SAVES_FP, -8, 0);

    TEST_ASSERT_TRUE(ta__rule_slot_from_fp(rule));
    TEST_ASSERT_FALSE(ta__rule_in_loader(rule));
    TEST_ASSERT_TRUE(ta__rule_in_loader(rule | TA__RULE_IN_LOADER));
    TEST_ASSERT_EQUAL_INT64(-8, ta__rule_offset(rule | TA__RULE_IN_LOADER));
}

static void test_rule_with_salt_replaces_only_the_salt(void)
{
    uint64_t rule = ta__rule_encode(TA__RULE_FP, TA__RULE_SAVES_FP, 16, -16);

    uint64_t salted = ta__rule_with_salt(ta__rule_with_salt(rule, 0xffff), 5);

    TEST_ASSERT_EQUAL_UINT(5, ta__rule_salt(salted));
    TEST_ASSERT_EQUAL_HEX64(rule, ta__rule_with_salt(salted, 0));
}

static void test_rule_offset_beyond_the_field_is_unknown(void)
{
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, 0, TA__RULE_OFFSET_MAX + 8, 0));
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, 0, -TA__RULE_OFFSET_MAX - 8, 0));
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, 0, INT64_MIN, 0));
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, 0, INT64_MAX, 0));
}

static void test_rule_slot_beyond_the_field_is_unknown(void)
{
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP, 8, TA__RULE_SLOT_MAX + 8));
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP, 8, -TA__RULE_SLOT_MAX - 8));
}

static void test_rule_distance_off_the_word_is_unknown(void)
{
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, 0, 12, 0));
    TEST_ASSERT_EQUAL_HEX64(0, ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP, 16, -4));
}

static void test_rule_of_plt_adds_a_word_from_the_threshold_on(void)
{
    uint64_t rule = ta__rule_encode(TA__RULE_PLT, 0, 11 * 8, 0);

    TEST_ASSERT_EQUAL_UINT64(1008, ta__rule_plt_cfa(rule, 0x400010, 1000));
    TEST_ASSERT_EQUAL_UINT64(1008, ta__rule_plt_cfa(rule, 0x40001a, 1000));
    TEST_ASSERT_EQUAL_UINT64(1016, ta__rule_plt_cfa(rule, 0x40001b, 1000));
    TEST_ASSERT_EQUAL_UINT64(1016, ta__rule_plt_cfa(rule, 0x40001f, 1000));
}

#if defined(__x86_64__)
static void test_rule_signal_distances_are_those_of_ucontext(void)
{
    size_t registers = offsetof(ucontext_t, uc_mcontext.gregs);

    TEST_ASSERT_EQUAL_size_t(registers + 8 * REG_RBP, TA__SIGNAL_FP);
    TEST_ASSERT_EQUAL_size_t(registers + 8 * REG_RSP, TA__SIGNAL_SP);
    TEST_ASSERT_EQUAL_size_t(registers + 8 * REG_RIP, TA__SIGNAL_IP);
}
#else
static void test_rule_signal_distances_are_those_of_ucontext(void)
{
    size_t frame = sizeof(siginfo_t);

    TEST_ASSERT_EQUAL_size_t(frame + offsetof(ucontext_t, uc_mcontext.regs) + 8 * 29, TA__SIGNAL_FP);
    TEST_ASSERT_EQUAL_size_t(frame + offsetof(ucontext_t, uc_mcontext.sp), TA__SIGNAL_SP);
    TEST_ASSERT_EQUAL_size_t(frame + offsetof(ucontext_t, uc_mcontext.pc), TA__SIGNAL_IP);
}
#endif

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_rule_encoded_returns_every_field);
    RUN_TEST(test_rule_flags_do_not_touch_each_other);
    RUN_TEST(test_rule_with_salt_replaces_only_the_salt);
    RUN_TEST(test_rule_offset_beyond_the_field_is_unknown);
    RUN_TEST(test_rule_slot_beyond_the_field_is_unknown);
    RUN_TEST(test_rule_distance_off_the_word_is_unknown);
    RUN_TEST(test_rule_of_plt_adds_a_word_from_the_threshold_on);
    RUN_TEST(test_rule_signal_distances_are_those_of_ucontext);
    return UNITY_END();
}
