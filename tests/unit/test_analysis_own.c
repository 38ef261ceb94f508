/* test_analysis_own.c: whose line it is — the innermost own frame, what is skipped on the way, and that sums stay whole. */
#include <tracealloc/export.h>

#include "tests/support/program_case.h"

void setUp(void)
{
}

void tearDown(void)
{
}

#define MAIN       "main|main.c:1|/bin/app"
#define STL        "std::vector<int>::push_back(int const&)|/usr/include/c++/12/bits/vector.h:9|/bin/app"
#define F(name)    name "|f.c:1|/bin/app; "
#define LIBC(name) name "||/lib/x86_64-linux-gnu/libc.so.6"

/* Every row as "SIZE FILE:LINE FUNCTION via WHAT", and that all of them add up to the whole. */
static const char *rows_of(const struct ta_snapshot *snapshot)
{
    static char text[8192];
    size_t length = 0;
    struct ta_statistics *statistics = ta_group_by_own(snapshot, 0);
    struct ta_statistic row, total;
    uint64_t size = 0, count = 0;
    TEST_ASSERT_NOT_NULL_MESSAGE(statistics, ta_error_text());
    text[0] = '\0';
    for (size_t i = 0; i < ta_statistics_count(statistics); i++) {
        struct ta_frame frame;
        struct ta_row_member via;
        TEST_ASSERT_EQUAL(0, ta_statistics_get(statistics, i, &row));
        TEST_ASSERT_EQUAL(0, ta_traceback_frame(row.traceback, -1, &frame));
        TEST_ASSERT_TRUE(ta_statistics_members(statistics, i, TA_MEMBER_VIA, &via, 1) > 0);
        length += (size_t)snprintf(text + length, sizeof text - length, "%llu %s:%u %s%s%s\n",
                                   (unsigned long long)row.size, frame.filename, frame.lineno, frame.function,
                                   *via.frame.function != '\0' ? " via " : "", via.frame.function);
        size += row.size;
        count += row.count;
    }
    ta_statistics_total(statistics, &total);
    TEST_ASSERT_EQUAL_UINT64(total.size, size);
    TEST_ASSERT_EQUAL_UINT64(total.count, count);
    ta_statistics_free(statistics);
    return text;
}

static const char *rows_of_stacks(const char *stacks)
{
    struct ta_snapshot *snapshot = program_of(stacks);
    const char *text = rows_of(snapshot);
    ta_snapshot_free(snapshot);
    return text;
}

static void test_own_frame_is_beyond_the_libraries_of_the_language(void)
{
    TEST_ASSERT_EQUAL_STRING("30 orders.cpp:8 Order::add via std::vector<int>::push_back(int const&)\n"
                             "5 main.c:1 main via strdup\n",
                             rows_of_stacks("30 1 operator new|/usr/include/c++/12/new:3|/bin/app; " STL
                                            "; Order::add|orders.cpp:8|/bin/app; " MAIN "\n"
                                            "5 1 " LIBC("strdup") "; " MAIN "\n"));
}

/* What the library does on the way to the allocator is no way of the program's: what it called in its turn is. */
static void test_own_rows_went_through_nothing_of_the_allocator(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "5 main.c:1 main via __cxa_allocate_exception\n3 main.c:2 main\n",
        rows_of_stacks("5 1 " LIBC("__cxa_allocate_exception") "; new_slow|alloc/malloc.c:31|"
                                                               "/opt/lib/libtracealloc.so.0.1.0; " MAIN "\n"
                                                               "3 1 ta__new_slow||/bin/app; main|main.c:2|/bin/app\n"));
}

static void test_own_program_is_own_wherever_it_is_installed_and_libraries_below_usr_are_not(void)
{
    /* With a line further out, a library that the loader finds by name is on the way; without any it is all there is. */
    TEST_ASSERT_EQUAL_STRING("3 main.c:1 main via make_node\n",
                             rows_of_stacks("3 1 make_node||/usr/lib/libxml.so.2; " MAIN));
    TEST_ASSERT_EQUAL_STRING("3 /usr/lib/libxml.so.2:0 make_node\n",
                             rows_of_stacks("3 1 make_node||/usr/lib/libxml.so.2; main||/bin/app"));
    /* A folder of one's own below it is a program's. */
    TEST_ASSERT_EQUAL_STRING("3 /usr/lib/app/plugin.so:0 load\n",
                             rows_of_stacks("3 1 load||/usr/lib/app/plugin.so; " MAIN));
}

static void test_own_result_types_and_parameters_do_not_decide(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "2 build.cpp:4 std::vector<int> mine::build<int>(std::string)\n1 main.c:1 main via Node* "
        "std::construct<Node>(Node*)\n",
        rows_of_stacks("2 1 std::vector<int> mine::build<int>(std::string)|build.cpp:4|/bin/app; " MAIN "\n"
                       "1 1 Node* std::construct<Node>(Node*)|x.h:1|/bin/app; " MAIN "\n"));
}

static void test_own_rows_without_lines_are_functions(void)
{
    TEST_ASSERT_EQUAL_STRING("7 /bin/app:0 insert via zx_malloc\n2 /bin/app:0 app+0x40\n",
                             rows_of_stacks("3 1 my_malloc||/bin/app; insert||/bin/app; main||/bin/app\n"
                                            "4 1 zx_malloc||/bin/app; insert||/bin/app; other||/bin/app\n"
                                            "2 1 app+0x40||/bin/app; main||/bin/app\n"));
}

static void test_own_what_libraries_keep_for_themselves_has_a_name(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "72704 libstdc++'s emergency pool:0 \n1024 stdio's buffers:0 \n",
        rows_of_stacks("1024 1 " LIBC("_IO_file_doallocate") "; " LIBC(
            "puts") "; " MAIN "\n"
                    "72704 1 pool||/usr/lib/libstdc++.so.6; call_init||/lib64/ld-linux-x86-64.so.2"));
}

static void test_own_vendored_code_is_skipped_where_own_lines_call_it(void)
{
    TEST_ASSERT_EQUAL_STRING("5 main.c:1 main via nlohmann::basic_json<int>::parse(int)\n3 main.c:2 main via parse\n",
                             rows_of_stacks("5 1 nlohmann::basic_json<int>::parse(int)|json.hpp:5|/bin/app; " MAIN "\n"
                                            "3 1 parse|/src/third_party/x.h:4|/bin/app; main|main.c:2|/bin/app\n"));
    TEST_ASSERT_EQUAL_STRING(
        "2 /home/vendor/app/a.c:9 run\n",
        rows_of_stacks("2 1 run|/home/vendor/app/a.c:9|/bin/app; main|/home/vendor/app/m.c:1|/bin/app\n"));
}

static void test_own_emergency_pool_in_a_program_without_names_is_known(void)
{
    const char *constructor = "app+0x40||/bin/app; " LIBC("call_init") "; _start||/bin/app\n";
    char text[512];
    snprintf(text, sizeof text, "72704 1 %s", constructor);
    TEST_ASSERT_EQUAL_STRING("72704 libstdc++'s emergency pool:0 \n", rows_of_stacks(text));
    snprintf(text, sizeof text, "72705 1 %s", constructor);
    TEST_ASSERT_EQUAL_STRING("72705 /bin/app:0 app+0x40\n", rows_of_stacks(text));
    TEST_ASSERT_EQUAL_STRING("72704 /bin/app:0 app+0x40\n",
                             rows_of_stacks("72704 1 app+0x40||/bin/app; work||/bin/app\n"));
}

static void test_own_stack_without_an_own_frame_is_the_outermost_call_or_its_module(void)
{
    TEST_ASSERT_EQUAL_STRING(
        "9 /lib/x86_64-linux-gnu/libc.so.6:0 timer_helper\n4 /lib64/ld-linux-x86-64.so.2:0 \n",
        rows_of_stacks("9 1 " LIBC("make") "; " LIBC("timer_helper") "; " LIBC(
            "start_thread") "\n"
                            "4 1 x||/lib64/ld-linux-x86-64.so.2; _dl_start||/lib64/ld-linux-x86-64.so.2\n"));
}

/* `callers` functions that ask `get` for memory, and one that asks by itself. */
static char *stacks_of_wrapper(int callers, int not_innermost)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    for (int i = 0; i < callers; i++)
        fprintf(stream, "1 1 get|pool.c:5|/bin/app; user%d|u.c:%d|/bin/app; " MAIN "\n", i, 10 + i);
    for (int i = 0; i < not_innermost; i++)
        fprintf(stream, "1 1 inner|i.c:3|/bin/app; get|pool.c:7|/bin/app; user%d|u.c:%d|/bin/app; " MAIN "\n", i,
                10 + i);
    fclose(stream);
    return text;
}

static size_t row_count_of(char *stacks)
{
    struct ta_snapshot *snapshot = program_of(stacks);
    struct ta_statistics *statistics = ta_group_by_own(snapshot, 0);
    size_t count = ta_statistics_count(statistics);
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
    free(stacks);
    return count;
}

static void test_own_function_with_twelve_callers_that_is_innermost_is_an_allocator(void)
{
    TEST_ASSERT_EQUAL(1, row_count_of(stacks_of_wrapper(11, 0)));
    TEST_ASSERT_EQUAL(12, row_count_of(stacks_of_wrapper(12, 0)));
    /* Of 14 appearances 12 are innermost: less than nine tenths. */
    TEST_ASSERT_EQUAL(2, row_count_of(stacks_of_wrapper(12, 2)));
}

static void test_own_what_only_allocators_call_is_one(void)
{
    TEST_ASSERT_EQUAL_STRING("5 u.c:7 first via _obstack_newchunk\n4 u.c:9 second via _obstack_begin\n",
                             rows_of_stacks("5 1 get_chunk|o.c:3|/bin/app; _obstack_newchunk|o.c:9|/bin/app; "
                                            "first|u.c:7|/bin/app; " MAIN "\n"
                                            "4 1 get_chunk|o.c:3|/bin/app; begin|o.c:5|/bin/app; "
                                            "_obstack_begin|o.c:8|/bin/app; second|u.c:9|/bin/app; " MAIN "\n"));
    /* Somebody else calls it, too. */
    TEST_ASSERT_EQUAL_STRING("9 o.c:3 get_chunk\n",
                             rows_of_stacks("5 1 get_chunk|o.c:3|/bin/app; _obstack_newchunk|o.c:9|/bin/app; "
                                            "first|u.c:7|/bin/app; " MAIN "\n"
                                            "4 1 get_chunk|o.c:3|/bin/app; second|u.c:9|/bin/app; " MAIN "\n"));
}

static void test_own_instances_of_a_template_are_one_function(void)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    for (int i = 0; i < 12; i++)
        fprintf(stream, "1 1 T%d* create<T%d>(int)|create.hpp:5|/bin/app; user%d|u.c:%d|/bin/app; " MAIN "\n", i, i, i,
                10 + i);
    fclose(stream);
    TEST_ASSERT_EQUAL(12, row_count_of(text));
    stream = open_memstream(&text, &size);
    for (int i = 0; i < 12; i++) /* instances of one caller are one caller */
        fprintf(stream, "1 1 T%d* create<T%d>(int)|create.hpp:5|/bin/app; user<T%d>()|u.c:%d|/bin/app; " MAIN "\n", i,
                i, i, 10 + i);
    fclose(stream);
    TEST_ASSERT_EQUAL(1, row_count_of(text));
}

/* `take` with twelve callers has a helper that gets the memory, in blocks of these sizes in turn; `others` call the
 * helper by themselves. */
static size_t row_count_with_helper(const unsigned *sizes, unsigned size_count, int others)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    for (unsigned i = 0; i < 12; i++)
        fprintf(stream, "%u 1 chunk|pool.c:5|/bin/app; take|pool.c:9|/bin/app; user%u|u.c:%u|/bin/app; " MAIN "\n",
                sizes[i % size_count], i, 10 + i);
    for (int i = 0; i < others; i++)
        fprintf(stream, "1 1 chunk|pool.c:5|/bin/app; other%d|o.c:%d|/bin/app; " MAIN "\n", i, 10 + i);
    fclose(stream);
    return row_count_of(text);
}

static void test_own_helper_of_an_allocator_is_one_too(void)
{
    TEST_ASSERT_EQUAL(12, row_count_with_helper((const unsigned[]){4096}, 1, 0));
    TEST_ASSERT_EQUAL(12, row_count_with_helper((const unsigned[]){24, 32, 40}, 3, 0));
    /* Small blocks of one size: a constructor that a container calls. */
    TEST_ASSERT_EQUAL(1, row_count_with_helper((const unsigned[]){24}, 1, 0));
    /* Two others of fourteen call it. */
    TEST_ASSERT_EQUAL(1, row_count_with_helper((const unsigned[]){4096}, 1, 2));
}

static void test_own_names_that_libraries_give_their_allocators(void)
{
    static const char *const names[] = {"PL_malloc_atomic", "GC_malloc_uncollectable", "agalloc", "gv_recalloc",
                                        "pool_get_from_os_noinc"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[128];
        snprintf(text, sizeof text, "8 1 %s|a.c:2|/bin/app; wants|b.c:5|/bin/app; " MAIN, names[i]);
        struct ta_snapshot *snapshot = program_of(text);
        char expected[64];
        snprintf(expected, sizeof expected, "8 b.c:5 wants via %s\n", names[i]);
        TEST_ASSERT_EQUAL_STRING(expected, rows_of(snapshot));
        ta_snapshot_free(snapshot);
    }
    struct ta_snapshot *snapshot = program_of(
        "8 1 google::protobuf::io::Next|i.cc:2|/bin/app; google::protobuf::compiler::Write|w.cc:3|/bin/app; " MAIN);
    TEST_ASSERT_EQUAL_STRING("8 w.cc:3 google::protobuf::compiler::Write via google::protobuf::io::Next\n",
                             rows_of(snapshot));
    ta_snapshot_free(snapshot);
}

static void test_own_rules_of_the_user_decide_and_the_last_one_wins(void)
{
    struct ta_snapshot *snapshot = program_of("8 1 grow|vec.c:2|/bin/app; parse|parse.c:5|/bin/app; " MAIN);
    struct ta_own_rules *rules = ta_own_rules_create();

    TEST_ASSERT_EQUAL(0, ta_own_rules_add(rules, "# ours\n\nskip file:vec.c\n"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_own_rules(snapshot, rules));
    TEST_ASSERT_EQUAL_STRING("8 parse.c:5 parse via grow\n", rows_of(snapshot));

    ta_own_rules_free(rules);
    rules = ta_own_rules_create();
    TEST_ASSERT_EQUAL(0, ta_own_rules_add(rules, "skip *\nown function:m*\nown grow\nskip gr?w"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_own_rules(snapshot, rules));
    TEST_ASSERT_EQUAL_STRING("8 main.c:1 main via parse\n", rows_of(snapshot));

    TEST_ASSERT_EQUAL(-1, ta_own_rules_add(rules, "own main\nhide x\n"));
    TEST_ASSERT_EQUAL_STRING("line 2: expected 'skip PATTERN' or 'own PATTERN', not 'hide x'", ta_error_text());
    ta_own_rules_free(rules);
    ta_snapshot_free(snapshot);
}

static void test_own_differences_agree_on_allocators_that_only_one_snapshot_shows(void)
{
    char *many = stacks_of_wrapper(12, 0), *few = stacks_of_wrapper(3, 0);
    struct ta_snapshot *new_snapshot = program_of(many), *old_snapshot = program_of(few);
    struct ta_differences *differences = ta_snapshot_compare_to(new_snapshot, old_snapshot, "own", 0);
    struct ta_statistic_diff diff;

    TEST_ASSERT_EQUAL(12, ta_differences_count(differences));
    for (size_t i = 0; i < 12; i++) {
        TEST_ASSERT_EQUAL(0, ta_differences_get(differences, i, &diff));
        TEST_ASSERT_EQUAL(i < 9 ? 1 : 0, diff.size_diff);
    }
    ta_differences_free(differences);
    ta_snapshot_free(new_snapshot);
    ta_snapshot_free(old_snapshot);
    free(many);
    free(few);
}

/* The sizes of the traces that the condition keeps. */
static const char *kept_by(const struct ta_snapshot *snapshot, const char *condition)
{
    static char text[128];
    struct ta_snapshot *filtered = ta_snapshot_filter_expression(snapshot, condition);
    struct ta_trace trace;
    size_t length = 0;
    TEST_ASSERT_NOT_NULL_MESSAGE(filtered, ta_error_text());
    text[0] = '\0';
    for (long i = 0; i < ta_snapshot_trace_count(filtered); i++) {
        TEST_ASSERT_EQUAL(0, ta_snapshot_trace(filtered, (size_t)i, &trace));
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%llu", i > 0 ? " " : "",
                                   (unsigned long long)trace.size);
    }
    ta_snapshot_free(filtered);
    return text;
}

static void test_own_is_a_condition_of_filters(void)
{
    struct ta_snapshot *snapshot = program_of(
        "1 1 operator new|/usr/include/c++/12/new:3|/bin/app; Box<int>::add(int)|/s/net/box.cpp:7|/bin/app; " MAIN
        "\n2 1 " LIBC("strdup") "; Box<long>::add(long)|/s/net/box.cpp:7|/bin/app; " MAIN
                                "\n3 1 " LIBC("strdup") "; " MAIN "\n4 1 " LIBC("_IO_file_doallocate") "; " MAIN);

    TEST_ASSERT_EQUAL_STRING("1 2", kept_by(snapshot, "own:Box::add"));
    TEST_ASSERT_EQUAL_STRING("2", kept_by(snapshot, "own:Box<long>::add"));
    TEST_ASSERT_EQUAL_STRING("1 2", kept_by(snapshot, "own:box.cpp:7"));
    TEST_ASSERT_EQUAL_STRING("1 2", kept_by(snapshot, "own:net/*"));
    TEST_ASSERT_EQUAL_STRING("", kept_by(snapshot, "own:ox.cpp:7"));
    TEST_ASSERT_EQUAL_STRING("4", kept_by(snapshot, "own:stdio*"));
    TEST_ASSERT_EQUAL_STRING("3 4", kept_by(snapshot, "not own:Box* own!=x"));
    TEST_ASSERT_EQUAL_STRING("", kept_by(snapshot, "own:*strdup"));
    TEST_ASSERT_NULL(ta_snapshot_filter_expression(snapshot, "any.own:x"));
    ta_snapshot_free(snapshot);
}

/* "NAME×TIMES/CIRCLE=VALUE" for every node but the root, depth by dots. */
static const char *tree_of(const char *stacks, unsigned flags)
{
    static char text[1024];
    struct ta_snapshot *snapshot = program_of(stacks);
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, flags);
    struct ta_calltree_node node;
    size_t length = 0;
    TEST_ASSERT_NOT_NULL_MESSAGE(tree, ta_error_text());
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, ta_calltree_add(tree, snapshot, 0), ta_error_text());
    text[0] = '\0';
    for (size_t i = 1; i < ta_calltree_count(tree); i++) {
        TEST_ASSERT_EQUAL(0, ta_calltree_get(tree, i, &node, sizeof node));
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%.*s%s", i > 1 ? " " : "",
                                   (int)node.depth - 1, "........", node.name);
        if (node.times > 1)
            length += (size_t)snprintf(text + length, sizeof text - length, "×%u/%u", node.times, node.circle);
        length += (size_t)snprintf(text + length, sizeof text - length, "=%lld", (long long)node.value);
    }
    ta_calltree_free(tree);
    ta_snapshot_free(snapshot);
    return text;
}

#define START LIBC("__libc_start_call_main") "; _start||/bin/app"

static void test_tree_folds_recursion_and_what_starts_programs(void)
{
    const char *const stacks = "1 1 " F("leaf") F("deep") F("deep") F("deep") MAIN "; " START "\n"
                                                                                   "2 1 " F("leaf") F("deep") MAIN
        "; " START "\n4 1 " F("deep") F("deep") MAIN "; " START;
    TEST_ASSERT_EQUAL_STRING("main=7 .deep×3/1=7 ..leaf=3", tree_of(stacks, TA_CALLTREE_FOLD));
    TEST_ASSERT_EQUAL_STRING("deep×2/1=4 .main=4 leaf=3 .deep×3/1=3 ..main=3",
                             tree_of(stacks, TA_CALLTREE_FOLD | TA_CALLTREE_FROM_LEAVES));
    TEST_ASSERT_EQUAL_STRING(
        "_start=7 .__libc_start_call_main=7 ..main=7 ...deep=7 ....deep=5 .....deep=1 ......leaf=1 "
        "....leaf=2",
        tree_of(stacks, 0));
    /* A circle, entered in its middle, left in its middle. */
    TEST_ASSERT_EQUAL_STRING("main=3 .even=3 ..odd×2/2=3 ...even=2 ....leaf=2 ...leaf=1",
                             tree_of("1 1 " F("leaf") F("odd") F("even") F("odd") F("even") MAIN "\n2 1 " F("leaf")
                                         F("even") F("odd") F("even") F("odd") F("even") MAIN,
                                     TA_CALLTREE_FOLD));
    /* Nothing but what starts programs is shown as it ends. */
    TEST_ASSERT_EQUAL_STRING("_dl_start=5", tree_of("5 1 _dl_start||/lib64/ld-linux-x86-64.so.2", TA_CALLTREE_FOLD));
    /* In a stripped program the outermost frame has no name. */
    TEST_ASSERT_EQUAL_STRING(
        "work=1", tree_of("1 1 work||/bin/app; " LIBC("__libc_start_main") "; app+0x40||/bin/app", TA_CALLTREE_FOLD));
}

static void test_tree_of_own_functions_ends_with_what_they_called(void)
{
    const char *const stacks =
        "1 1 operator new|/usr/include/c++/12/new:3|/bin/app; " STL "; Order::add|orders.cpp:8|/bin/app; "
        "std::for_each|/usr/include/c++/12/algo.h:5|/bin/app; " MAIN "; " START "\n"
        "2 1 make||/usr/lib/libxml.so.2; " MAIN "; " START "\n4 1 " LIBC("_IO_file_doallocate") "; " LIBC(
            "puts") "; " MAIN "\n8 1 x||/lib64/ld-linux-x86-64.so.2; _dl_init||/lib64/ld-linux-x86-64.so.2";
    TEST_ASSERT_EQUAL_STRING("ld-linux-x86-64.so.2=8 main=7 .stdio's buffers=4 .make=2 .Order::add=1 "
                             "..std::vector<int>::push_back(int const&)=1",
                             tree_of(stacks, TA_CALLTREE_OWN | TA_CALLTREE_FOLD));
}

static void test_line_rows_are_innermost_lines_or_functions_whatever_the_rules(void)
{
    struct ta_snapshot *snapshot =
        program_of("9 1 operator new|/usr/include/c++/12/new:3|/bin/app; " MAIN "\n"
                   "5 1 f||/bin/app; " MAIN "\n4 1 f||/bin/app; g||/bin/app; " MAIN "\n3 1 g||/bin/app; " MAIN);
    struct ta_own_rules *rules = ta_own_rules_create();
    TEST_ASSERT_EQUAL(0, ta_own_rules_add(rules, "skip *"));
    TEST_ASSERT_EQUAL(0, ta_snapshot_set_own_rules(snapshot, rules));

    TEST_ASSERT_EQUAL_STRING(
        "/bin/app f: size=9 B, count=2, average=4 B\n"
        "/usr/include/c++/12/new:3: size=9 B, count=1, average=9 B\n/bin/app g: size=3 B, count=1, average=3 B\n",
        statistics_text(snapshot, "line", 0));
    ta_own_rules_free(rules);
    ta_snapshot_free(snapshot);
}

/* The items of a stack of functions, innermost first as in program_of: "NAME×TIMES". */
static const char *folded(const char *stack)
{
    static char text[512];
    struct ta_fold items[32];
    struct ta_frame frame;
    struct ta_snapshot *snapshot = program_of(stack);
    struct ta_traceback traceback = ta_snapshot_trace_traceback(snapshot, 0);
    size_t count = ta_traceback_fold(traceback, items, 32), length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        for (size_t f = 0; f < items[i].length; f++) {
            TEST_ASSERT_EQUAL(0, ta_traceback_frame(traceback, (int64_t)(items[i].first + f), &frame));
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s",
                                       f > 0   ? ">"
                                       : i > 0 ? " "
                                               : "",
                                       frame.function);
        }
        if (items[i].times > 1)
            length += (size_t)snprintf(text + length, sizeof text - length, "×%zu", items[i].times);
    }
    ta_snapshot_free(snapshot);
    return text;
}

static void test_fold_recursion_is_one_item_and_what_starts_programs_is_in_none(void)
{
    TEST_ASSERT_EQUAL_STRING("main deep×3 leaf", folded("1 1 " F("leaf") F("deep") F("deep") F("deep") MAIN));
    /* Functions that call each other; a rest of the circle stays. */
    TEST_ASSERT_EQUAL_STRING("main even>odd×2 even leaf",
                             folded("1 1 " F("leaf") F("even") F("odd") F("even") F("odd") F("even") MAIN));
    TEST_ASSERT_EQUAL_STRING("main a b a", folded("1 1 " F("a") F("b") F("a") MAIN));
    TEST_ASSERT_EQUAL_STRING("main leaf", folded("1 1 " F("leaf") MAIN "; " LIBC("__libc_start_call_main") "; " LIBC(
                                              "__libc_start_main_impl") "; _start||/bin/app"));
    /* In a stripped program nobody knows the name of _start. */
    TEST_ASSERT_EQUAL_STRING("main", folded("1 1 " MAIN "; " LIBC("__libc_start_call_main") "; app+0x40||/bin/app"));
    TEST_ASSERT_EQUAL_STRING("work", folded("1 1 " F("work") LIBC("start_thread") "; " LIBC("clone3")));
    TEST_ASSERT_EQUAL_STRING("_start", folded("1 1 _start||/bin/app"));
    TEST_ASSERT_EQUAL_STRING("clone_tree clone_tree_in", folded("1 1 " F("clone_tree_in") "clone_tree|f.c:1|/bin/app"));
}

static void test_members_are_merged_and_the_largest_is_first(void)
{
    struct ta_snapshot *snapshot = program_of("5 1 f<int>|t.h:3|/bin/app; a|a.c:1|/bin/app; " MAIN "\n"
                                              "4 1 f<long>|t.h:3|/bin/app; b|b.c:1|/bin/app; " MAIN "\n"
                                              "2 1 f<long>|t.h:3|/bin/app; a|a.c:1|/bin/app; " MAIN "\n");
    struct ta_statistics *statistics = ta_group_by_own(snapshot, 0);
    struct ta_row_member members[4];

    TEST_ASSERT_EQUAL(1, ta_statistics_count(statistics));
    TEST_ASSERT_EQUAL(2, ta_statistics_members(statistics, 0, TA_MEMBER_FUNCTION, members, 4));
    TEST_ASSERT_EQUAL_STRING("f<long>", members[0].frame.function);
    TEST_ASSERT_EQUAL_UINT64(6, members[0].size);
    TEST_ASSERT_EQUAL(2, ta_statistics_members(statistics, 0, TA_MEMBER_CALLER, members, 1));
    TEST_ASSERT_EQUAL_STRING("a", members[0].frame.function);
    TEST_ASSERT_EQUAL_UINT64(7, members[0].size);
    TEST_ASSERT_EQUAL(3, ta_traceback_length(ta_statistics_largest(statistics, 0)));
    TEST_ASSERT_EQUAL(0, ta_statistics_members(statistics, 1, TA_MEMBER_VIA, members, 4));
    ta_statistics_free(statistics);
    ta_snapshot_free(snapshot);
}

static void test_cumulative_once_counts_a_block_once_per_group_however_deep(void)
{
    struct ta_snapshot *snapshot = snapshot_of("{'size': 10, 'frames': [['a', 1], ['b', 2], ['a', 1], ['a', 1]]},"
                                               "{'size': 3, 'frames': [['b', 2], ['a', 1]]}");

    TEST_ASSERT_EQUAL_STRING("b:2: size=13 B, count=2, average=6 B\na:1: size=13 B, count=2, average=6 B\n",
                             statistics_text(snapshot, "lineno", TA_CUMULATIVE_ONCE));
    TEST_ASSERT_EQUAL_STRING("a:1: size=33 B, count=4, average=8 B\nb:2: size=13 B, count=2, average=6 B\n",
                             statistics_text(snapshot, "lineno", 1));
    ta_snapshot_free(snapshot);
}

static const struct {
    const char *name, *text;
} short_names[] = {
    {"main", "main"},
    {"copy.isra.0", "copy"},
    {"std::vector<Order, std::allocator<Order> >::push_back(Order const&)", "std::vector<Order>::push_back"},
    {"std::map<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::vector<int, "
     "std::allocator<int> >, std::less<int>, std::allocator<int> >::operator[](int&&)",
     "std::map<string, vector<…>>::operator[]"},
    {"std::shared_ptr<Order> std::make_shared<Order, int&>(int&)", "std::make_shared"},
    {"main::{lambda(int)#1}::operator()(int) const", "main::<lambda(int)>"},
    {"(anonymous namespace)::Cache::put(int)", "Cache::put"},
    {"std::ostream& operator<< <char>(std::ostream&, char)", "operator<<"},
    {"std::__cxx11::basic_string<char> std::operator+<char, std::char_traits<char> >(char const*, int)",
     "std::operator+"},
    {"bool operator< <int>(A<int>, A<int>)", "operator<"},
    {"Big::operator<=>(Big const&) const", "Big::operator<=>"},
    {"F<int>::operator->() const", "F<int>::operator->"},
    {"__GI___strdup", "__strdup"},
    {"Foo::operator std::string() const", "Foo::operator std::string"},
    {"bool scan<(Kind)1>(int) [clone .constprop.0]", "scan"},
    {"<alloc::vec::Vec<T> as core::clone::Clone>::clone", "<alloc::vec::Vec<T> as core::clone::Clone>::clone"},
    {"libsqlite3.so.0+0x1c480", "libsqlite3.so.0+0x1c480"},
    {"nlohmann::json_abi_v3_11_2::basic_json<std::map, std::vector, bool>::parse(int)", "nlohmann::json::parse"},
    {"std::__cxx11::list<int, std::allocator<int> >::push_back(int)", "std::list<int>::push_back"},
    {"fmt::v9::detail::vformat_to<char>(int)", "fmt::detail::vformat_to"},
    {"absl::lts_20220623::Cord::Append(int)", "absl::Cord::Append"},
    {"app::v2::load(int)", "app::v2::load"},
    {"Grid<int, 2, 3, 4, 5, 6>::at(int)", "Grid<int, 2, 3, 4, …>::at"},
    {"", ""},
    {"<", "<"},
    {"(", "("},
};

static void test_function_text_leaves_out_what_only_compilers_need(void)
{
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++) {
        char text[256];
        ta_function_text(short_names[i].name, text, sizeof text);
        TEST_ASSERT_EQUAL_STRING(short_names[i].text, text);
    }
}

/* A node of the calling tree stands for all lines of its function that went on. */
static void test_own_node_of_a_tree_tells_that_it_has_several_lines(void)
{
    struct ta_snapshot *snapshot =
        program_of("7 1 " F("two") MAIN "\n5 1 two|f.c:2|/bin/app; " MAIN "\n"
                                        "3 1 " F("one") MAIN "\n2 1 other||/bin/app; " F("one") MAIN "\n");
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    struct ta_calltree_node node;
    size_t met = 0;
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    for (size_t i = 1; ta_calltree_get(tree, i, &node, sizeof node) == 0; i++, met++)
        TEST_ASSERT_EQUAL_INT_MESSAGE(strcmp(node.name, "two") == 0, node.has_other_lines, node.name);
    TEST_ASSERT_EQUAL_size_t(4, met);
    ta_calltree_free(tree);
    ta_snapshot_free(snapshot);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_own_frame_is_beyond_the_libraries_of_the_language);
    RUN_TEST(test_own_rows_went_through_nothing_of_the_allocator);
    RUN_TEST(test_own_program_is_own_wherever_it_is_installed_and_libraries_below_usr_are_not);
    RUN_TEST(test_own_result_types_and_parameters_do_not_decide);
    RUN_TEST(test_own_rows_without_lines_are_functions);
    RUN_TEST(test_own_what_libraries_keep_for_themselves_has_a_name);
    RUN_TEST(test_own_what_only_allocators_call_is_one);
    RUN_TEST(test_own_instances_of_a_template_are_one_function);
    RUN_TEST(test_own_vendored_code_is_skipped_where_own_lines_call_it);
    RUN_TEST(test_own_emergency_pool_in_a_program_without_names_is_known);
    RUN_TEST(test_own_stack_without_an_own_frame_is_the_outermost_call_or_its_module);
    RUN_TEST(test_own_function_with_twelve_callers_that_is_innermost_is_an_allocator);
    RUN_TEST(test_own_helper_of_an_allocator_is_one_too);
    RUN_TEST(test_own_names_that_libraries_give_their_allocators);
    RUN_TEST(test_own_rules_of_the_user_decide_and_the_last_one_wins);
    RUN_TEST(test_own_differences_agree_on_allocators_that_only_one_snapshot_shows);
    RUN_TEST(test_own_is_a_condition_of_filters);
    RUN_TEST(test_tree_folds_recursion_and_what_starts_programs);
    RUN_TEST(test_tree_of_own_functions_ends_with_what_they_called);
    RUN_TEST(test_line_rows_are_innermost_lines_or_functions_whatever_the_rules);
    RUN_TEST(test_fold_recursion_is_one_item_and_what_starts_programs_is_in_none);
    RUN_TEST(test_members_are_merged_and_the_largest_is_first);
    RUN_TEST(test_cumulative_once_counts_a_block_once_per_group_however_deep);
    RUN_TEST(test_function_text_leaves_out_what_only_compilers_need);
    RUN_TEST(test_own_node_of_a_tree_tells_that_it_has_several_lines);
    return UNITY_END();
}
