/* test_stack_step.c: one step up a stack (snapshot/triggers/stack_step.h) for every kind of rule; rules, modules and the stack's
 * words are made up here. */
#include <string.h>
#include <unity.h>

#include "snapshot/triggers/stack_step.h"
#include "trace/unwind/modules.h"
#include "trace/unwind/rule_cache.h"

/* ---- what is asked ---- */

static struct ta__rule_set no_rules;
static const struct ta__rule_table table = {0, &no_rules};
const struct ta__rule_table *ta__rule_table = &table;
struct ta__rule_tag ta__rules_tag = {1};

enum { RETURNED = 0x1001, INTERRUPTED = 0x1000 };
static uint64_t rule_returned, rule_interrupted;

uint64_t ta__rule_missed(uintptr_t return_address)
{
    TEST_ASSERT_EQUAL_HEX64(RETURNED, return_address);
    return rule_returned;
}

uint64_t ta__rule_interrupted(uintptr_t ip)
{
    TEST_ASSERT_EQUAL_HEX64(INTERRUPTED, ip);
    return rule_interrupted;
}

static struct ta__module module;
static const struct ta__module *described;

const struct ta__module *ta__module_describe(uintptr_t address, struct ta__module *scratch)
{
    (void)address, (void)scratch;
    return described;
}

/* ---- a stack ---- */

static struct {
    uint64_t address, word;
} words[16];
static unsigned word_count;

static void put(uint64_t address, uint64_t word)
{
    words[word_count].address = address;
    words[word_count++].word = word;
}

static int read_word(uint64_t address, uint64_t *word)
{
    for (unsigned i = 0; i < word_count; i++)
        if (words[i].address == address)
            return *word = words[i].word, 1;
    return 0;
}

/* Where the return address is: docs of trace/unwind/rule.h. */
static void put_return(uint64_t cfa, int64_t slot, uint64_t ip)
{
    put(ta__rule_return_slot(cfa, cfa + (uint64_t)slot), ip);
}

static struct ta__place place;

void setUp(void)
{
    word_count = 0;
    place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
    rule_returned = rule_interrupted = TA__RULE_UNKNOWN;
    described = NULL;
}

void tearDown(void)
{
}

static void assert_place(uint64_t ip, uint64_t sp, uint64_t fp, int is_interrupted)
{
    TEST_ASSERT_EQUAL_HEX64(ip, place.ip);
    TEST_ASSERT_EQUAL_HEX64(sp, place.sp);
    TEST_ASSERT_EQUAL_HEX64(fp, place.fp);
    TEST_ASSERT_EQUAL(is_interrupted, place.is_interrupted);
}

/* ---- tests ---- */

static void test_a_frame_is_counted_from_either_register(void)
{
    rule_returned = ta__rule_encode(TA__RULE_SP, 0, 32, -16);
    put_return(0x8020, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x8020, 0x9000, 0);
    setUp();
    rule_returned = ta__rule_encode(TA__RULE_FP, 0, 16, -16);
    put_return(0x9010, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x9010, 0x9000, 0);
    setUp();
    rule_returned = ta__rule_encode(TA__RULE_FP_DEREF, 0, -24, -16);
    put(0x9000 - 24, 0xa000);
    put_return(0xa000, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0xa000, 0x9000, 0);
}

static void test_a_saved_frame_pointer_comes_back(void)
{
    rule_returned = ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP, 32, -16);
    put(0x8010, 0x9900);
    put_return(0x8020, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x8020, 0x9900, 0);
    setUp();
    rule_returned = ta__rule_encode(TA__RULE_SP, TA__RULE_SAVES_FP | TA__RULE_SLOT_FROM_FP, 32, -16);
    put(0x9000 - 16, 0x9900);
    put_return(0x8020, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x8020, 0x9900, 0);
}

static void test_an_interrupted_place_has_its_own_rule(void)
{
    place.ip = INTERRUPTED;
    place.is_interrupted = 1;
    rule_interrupted = ta__rule_encode(TA__RULE_SP, 0, 8, -16);
    put_return(0x8008, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x8008, 0x9000, 0); /* what it returns to has called */
}

static void test_a_stub_of_the_linkage_table_is_left(void)
{
    rule_interrupted = ta__rule_encode(TA__RULE_PLT, 0, 11 * 8, -16);
    place.ip = INTERRUPTED;
    place.is_interrupted = 1;
    put_return(0x8008, -16, 0x2000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x2000, 0x8008, 0x9000, 0);
}

static void test_a_signal_frame_leads_to_what_was_interrupted(void)
{
    rule_returned = ta__rule_encode(TA__RULE_SIGNAL, 0, 0, 0);
    put(0x8000 + TA__SIGNAL_IP, 0x3000);
    put(0x8000 + TA__SIGNAL_FP, 0x9300);
    put(0x8000 + TA__SIGNAL_SP, 0xb000);
    TEST_ASSERT_EQUAL(1, ta__place_step(&place, read_word));
    assert_place(0x3000, 0xb000, 0x9300, 1);
    for (unsigned missing = 0; missing < 3; missing++) {
        place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
        words[missing].address++;
        TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word));
        words[missing].address--;
    }
    words[0].word = 0;
    place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
    TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word));
}

static void test_a_stack_ends_where_nothing_more_is_known(void)
{
    static const struct {
        enum ta__rule_kind kind;
        unsigned flags;
        int64_t offset;
    } ends[] = {{TA__RULE_UNKNOWN, 0, 0},
                {TA__RULE_END, 0, 0},
                {TA__RULE_SP, 0, 0},                   /* the caller would have the same stack */
                {TA__RULE_SP, 0, -8},                  /* or one further in */
                {TA__RULE_FP_DEREF, 0, 8},             /* which cannot be read */
                {TA__RULE_SP, TA__RULE_SAVES_FP, 32}}; /* its frame pointer cannot be read */
    put_return(0x8000, -16, 0x2000);
    put_return(0x7ff8, -16, 0x2000);
    put_return(0x8020, -16, 0x2000);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
        rule_returned = ta__rule_encode(ends[i].kind, ends[i].flags, ends[i].offset, -16);
        TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word));
    }
    place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9004}; /* no address of a frame */
    put_return(0x9014, -16, 0x2000);
    rule_returned = ta__rule_encode(TA__RULE_FP, 0, 16, -16);
    TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word));
    place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
    TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word)); /* the return address cannot be read */
    put_return(0x9010, -16, 0);
    place = (struct ta__place){.ip = RETURNED, .sp = 0x8000, .fp = 0x9000};
    TEST_ASSERT_EQUAL(0, ta__place_step(&place, read_word)); /* the outermost frame returns to nothing */
}

static void test_a_place_has_its_module_and_where_in_it(void)
{
    static char path[700];
    struct ta__message message;
    memset(&message, '#', sizeof message);
    ta__place_text(&message, 0x1234);
    TEST_ASSERT_EQUAL_STRING("0x1234", message.text);
    described = &module;
    module = (struct ta__module){.bias = 0x1000};
    ta__place_text(&message, 0x1234);
    TEST_ASSERT_EQUAL_STRING("0x1234", message.text); /* it has no name */
    module.path = "/lib/x.so";
    ta__place_text(&message, 0x1234);
    TEST_ASSERT_EQUAL_STRING("/lib/x.so+0x234", message.text);
    memset(path, 'p', sizeof path - 1);
    module.path = path;
    ta__place_text(&message, 0x1234);
    TEST_ASSERT_EQUAL(TA__MESSAGE_MAX - 1, strlen(message.text));
    module.path = path + sizeof path - TA__MESSAGE_MAX + 6;
    ta__place_text(&message, 0x1234);
    TEST_ASSERT_EQUAL_STRING("+0x234", message.text + TA__MESSAGE_MAX - 7);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_a_frame_is_counted_from_either_register);
    RUN_TEST(test_a_saved_frame_pointer_comes_back);
    RUN_TEST(test_an_interrupted_place_has_its_own_rule);
    RUN_TEST(test_a_stub_of_the_linkage_table_is_left);
    RUN_TEST(test_a_signal_frame_leads_to_what_was_interrupted);
    RUN_TEST(test_a_stack_ends_where_nothing_more_is_known);
    RUN_TEST(test_a_place_has_its_module_and_where_in_it);
    return UNITY_END();
}
