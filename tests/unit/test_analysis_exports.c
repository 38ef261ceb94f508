/* test_analysis_exports.c: the calling tree, and every format by its call: what is written, where to, and what happens
 * when it cannot be. */
#include <fcntl.h>
#include <unistd.h>

#include <tracealloc/export.h>

#include "analysis/model.h"
#include "tests/support/whole_case.h"

static struct ta_snapshot *snapshot, *older;

void setUp(void)
{
    snapshot = snapshot_of("{'size': 100, 'count': 3, 'frames': [['/s/parse.c', 10], ['/s/main.c', 1]]},"
                           "{'size': 50, 'domain': 3, 'frames': [['/s/a;b\\\"<&.c', 7], ['/s/main.c', 1]]},"
                           "{'size': 50, 'frames': [['/s/parse.c', 10], ['/s/loop.c', 2], ['/s/main.c', 1]]},"
                           "{'size': 9, 'frames': [['<unknown>', 0]]}");
    older = snapshot_of("{'size': 700, 'frames': [['/s/gone.c', 4], ['/s/main.c', 1]]},"
                        "{'size': 100, 'count': 1, 'frames': [['/s/parse.c', 10], ['/s/main.c', 1]]}");
}

void tearDown(void)
{
    ta_snapshot_free(snapshot);
    ta_snapshot_free(older);
}

static struct ta_calltree_node node_at(const struct ta_calltree *tree, size_t index)
{
    struct ta_calltree_node node = {0};
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_get(tree, index, &node, sizeof node));
    return node;
}

/* "name value old count", a line per node, indented by depth; and the links agree with the order. Freed by the next. */
static const char *tree_text(const struct ta_calltree *tree)
{
    static char text[4096];
    size_t length = 0;
    for (size_t i = 0; i < ta_calltree_count(tree); i++) {
        struct ta_calltree_node node = node_at(tree, i);
        length += (size_t)snprintf(text + length, sizeof text - length, "%*s%s %lld %lld %llu\n", (int)node.depth, "",
                                   node.name, (long long)node.value, (long long)node.old_value,
                                   (unsigned long long)node.count);
        if (i > 0)
            TEST_ASSERT_EQUAL_UINT32(node.depth, node_at(tree, node.parent).depth + 1);
        if (node.child != 0)
            TEST_ASSERT_EQUAL_UINT32(i + 1, node.child);
        if (node.sibling != 0)
            TEST_ASSERT_EQUAL_UINT32(node.parent, node_at(tree, node.sibling).parent);
    }
    return text;
}

static void test_calltree_of_one_snapshot_adds_up_with_the_largest_first(void)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    TEST_ASSERT_EQUAL_STRING("all 409 0 6\n"
                             " main.c:1 400 0 5\n"
                             "  parse.c:10 300 0 3\n"
                             "  a;b\"<&.c:7 50 0 1\n"
                             "  loop.c:2 50 0 1\n"
                             "   parse.c:10 50 0 1\n"
                             " <unknown> 9 0 1\n",
                             tree_text(tree));
    struct ta_calltree_node first = node_at(tree, 2), last = node_at(tree, 5);
    TEST_ASSERT_EQUAL_PTR(first.name, last.name); /* one text, one pointer */
    TEST_ASSERT_EQUAL_STRING("/s/parse.c", first.file);
    TEST_ASSERT_EQUAL_UINT32(10, first.line);
    ta_calltree_free(tree);
}

static void test_calltree_from_leaves_begins_with_who_asked(void)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_COUNT, TA_CALLTREE_FROM_LEAVES);
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    TEST_ASSERT_EQUAL_STRING("all 6 0 6\n"
                             " parse.c:10 4 0 4\n"
                             "  main.c:1 3 0 3\n"
                             "  loop.c:2 1 0 1\n"
                             "   main.c:1 1 0 1\n"
                             " <unknown> 1 0 1\n"
                             " a;b\"<&.c:7 1 0 1\n"
                             "  main.c:1 1 0 1\n",
                             tree_text(tree));
    ta_calltree_free(tree);
}

static void test_calltree_of_two_snapshots_has_two_values(void)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, older, 1));
    TEST_ASSERT_EQUAL_STRING("all 409 800 6\n"
                             " main.c:1 400 800 5\n"
                             "  gone.c:4 0 700 0\n"
                             "  parse.c:10 300 100 3\n"
                             "  a;b\"<&.c:7 50 0 1\n"
                             "  loop.c:2 50 0 1\n"
                             "   parse.c:10 50 0 1\n"
                             " <unknown> 9 0 1\n",
                             tree_text(tree));
    ta_calltree_free(tree);
}

static void test_calltree_needs_its_snapshots_no_more(void)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    ta_snapshot_free(snapshot);
    snapshot = NULL;
    struct ta_buffer folded = {0};
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_export_folded(tree, ta_write_to_buffer, &folded));
    TEST_ASSERT_EQUAL_STRING("main.c:1;parse.c:10 300\n"
                             "main.c:1;a:b\"<&.c:7 50\n"
                             "main.c:1;loop.c:2;parse.c:10 50\n"
                             "<unknown> 9\n",
                             folded.bytes);
    TEST_ASSERT_EQUAL_size_t(strlen(folded.bytes), folded.length);
    free(folded.bytes);
    ta_calltree_free(tree);
}

static void test_calltree_refuses_what_it_cannot_do(void)
{
    struct ta_calltree_node node;
    TEST_ASSERT_NULL(ta_calltree_create(TA_ORDER_GROWTH, 0));
    TEST_ASSERT_NULL(ta_calltree_create(TA_ORDER_DEFAULT, 8));
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    TEST_ASSERT_EQUAL_INT(-1, ta_calltree_add(tree, NULL, 0));
    TEST_ASSERT_EQUAL_size_t(1, ta_calltree_count(tree));
    TEST_ASSERT_EQUAL_INT(-1, ta_calltree_get(tree, 1, &node, sizeof node));
    TEST_ASSERT_EQUAL_size_t(0, ta_calltree_count(NULL));
    ta_calltree_free(tree);
    ta_calltree_free(NULL);
}

static void test_calltree_of_a_deep_recursion_is_a_chain(void)
{
    enum { DEEP = 60000 };
    struct ta_frame_data *frames = calloc(DEEP, sizeof *frames);
    for (size_t i = 0; i < DEEP; i++)
        frames[i] = (struct ta_frame_data){"/s/deep.c", TA_NUL_TERMINATED, 5};
    const struct ta_trace_data trace = {.size = 1, .count = 1, .frames = frames, .nframe = DEEP};
    struct ta_snapshot *deep = ta_snapshot_from_traces(&trace, 1, DEEP);
    TEST_ASSERT_NOT_NULL_MESSAGE(deep, ta_error_text());
    struct ta_buffer svg = {0};
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export(deep, "flame", TA_ORDER_DEFAULT, ta_write_to_buffer, &svg));
    TEST_ASSERT_NOT_NULL(strstr(svg.bytes, "data-d=\"60000\""));
    free(svg.bytes);
    ta_snapshot_free(deep);
    free(frames);
}

/* ---- formats ---- */

static void test_every_format_writes_something_and_says_what_it_is(void)
{
    struct ta_export_format format;
    size_t count = 0;
    for (; ta_export_format_get(count, &format, sizeof format) == 0; count++) {
        struct ta_buffer written = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            0, ta_snapshot_export(snapshot, format.name, TA_ORDER_DEFAULT, ta_write_to_buffer, &written), format.name);
        TEST_ASSERT_TRUE_MESSAGE(written.length > 20, format.name);
        TEST_ASSERT_EQUAL_CHAR('.', format.suffix[0]);
        TEST_ASSERT_NOT_NULL(strchr(format.content_type, '/'));
        TEST_ASSERT_TRUE(strlen(format.summary) > 5);
        free(written.bytes);
    }
    TEST_ASSERT_EQUAL_size_t(9, count);
    struct ta_buffer written = {0};
    TEST_ASSERT_EQUAL_INT(-1, ta_snapshot_export(snapshot, "bogus", TA_ORDER_DEFAULT, ta_write_to_buffer, &written));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "bogus"));
    TEST_ASSERT_NULL(written.bytes);
}

struct stubborn {
    int calls;
};

static int refuse(void *user, const char *text, size_t length)
{
    (void)text;
    (void)length;
    ((struct stubborn *)user)->calls++;
    return -1;
}

static void test_a_writer_that_refuses_is_asked_once_and_the_export_fails(void)
{
    struct ta_export_format format;
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++) {
        struct stubborn writer = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(-1, ta_snapshot_export(snapshot, format.name, TA_ORDER_DEFAULT, refuse, &writer),
                                      format.name);
        TEST_ASSERT_EQUAL_INT_MESSAGE(1, writer.calls, format.name);
    }
}

static void test_no_snapshot_is_refused_by_every_format(void)
{
    struct ta_export_format format;
    for (size_t i = 0; ta_export_format_get(i, &format, sizeof format) == 0; i++) {
        struct ta_buffer written = {0};
        TEST_ASSERT_EQUAL_INT_MESSAGE(
            -1, ta_snapshot_export(NULL, format.name, TA_ORDER_DEFAULT, ta_write_to_buffer, &written), format.name);
        TEST_ASSERT_NULL_MESSAGE(written.bytes, format.name);
    }
}

static void test_descriptor_stream_and_buffer_receive_the_same(void)
{
    char bytes[8192], name[] = "/tmp/test_analysis_exports.XXXXXX";
    struct ta_buffer buffer = {0};
    int descriptor = mkstemp(name);
    TEST_ASSERT_TRUE(descriptor >= 0);
    FILE *stream = tmpfile();
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export_jsonl(snapshot, ta_write_to_buffer, &buffer));
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export_jsonl(snapshot, ta_write_to_descriptor, &descriptor));
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export_jsonl(snapshot, ta_write_to_stream, stream));
    TEST_ASSERT_EQUAL_INT64(buffer.length, pread(descriptor, bytes, sizeof bytes, 0));
    TEST_ASSERT_EQUAL_MEMORY(buffer.bytes, bytes, buffer.length);
    rewind(stream);
    TEST_ASSERT_EQUAL_size_t(buffer.length, fread(bytes, 1, sizeof bytes, stream));
    TEST_ASSERT_EQUAL_MEMORY(buffer.bytes, bytes, buffer.length);
    fclose(stream);
    close(descriptor);
    unlink(name);
    free(buffer.bytes);

    descriptor = open("/dev/full", O_WRONLY);
    TEST_ASSERT_EQUAL_INT(-1, ta_snapshot_export_csv(snapshot, ta_write_to_descriptor, &descriptor));
    TEST_ASSERT_NOT_NULL(strstr(ta_error_text(), "No space left"));
    close(descriptor);
}

static void test_flame_options_may_come_from_an_older_header(void)
{
    struct ta_calltree *tree = ta_calltree_create(TA_ORDER_DEFAULT, 0);
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, snapshot, 0));
    const struct ta_flame_options options = {.title = "<mine> & \"yours\"", .minimum = 2};
    struct ta_buffer title_only = {0}, whole = {0};
    TEST_ASSERT_EQUAL_INT(
        0, ta_calltree_export_flame(tree, &options, sizeof options.title, ta_write_to_buffer, &title_only));
    TEST_ASSERT_EQUAL_INT(0, ta_calltree_export_flame(tree, &options, sizeof options, ta_write_to_buffer, &whole));
    TEST_ASSERT_NOT_NULL(strstr(whole.bytes, "<title>&#60;mine&#62; &#38; &#34;yours&#34;</title>"));
    TEST_ASSERT_NOT_NULL(strstr(title_only.bytes, ">parse.c:10</text>"));
    TEST_ASSERT_NULL(strstr(whole.bytes, ">parse.c:10</text>")); /* no frame is twice the whole */
    TEST_ASSERT_NOT_NULL(strstr(title_only.bytes, "a;b&#34;&#60;&#38;.c:7"));
    TEST_ASSERT_NOT_NULL(strstr(title_only.bytes, " live blocks\n/s/parse.c:10")); /* where the pointer rests */
    free(title_only.bytes);
    free(whole.bytes);
    ta_calltree_free(tree);
}

static void test_report_has_totals_and_the_largest_rows(void)
{
    struct ta_buffer text = {0};
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export_text(snapshot, 2, ta_write_to_buffer, &text));
    TEST_ASSERT_NOT_NULL(strstr(text.bytes, "409 B live in 6 blocks"));
    TEST_ASSERT_NOT_NULL(strstr(text.bytes, "      350 B  85.6%         4  /s/parse.c:10\n"));
    TEST_ASSERT_NOT_NULL(strstr(text.bytes, "… and 1 more\n"));
    free(text.bytes);
}

/* ---- a snapshot that has everything, in every format (tests/support/whole_case.h) --------------------------------- */

static const char whole_csv[] =
    "domain,thread,size,count,allocated_size,allocated_count,peak_size,own,stack\n"
    "0,100,60,3,100,4,60,\"main.c:3\",\"take (take.c:4);main (main.c:3)\"\n"
    "5,101,40,2,40,2,0,\"parse.c:7\",\"take (take.c:4);parse (parse.c:7);main (main.c:5)\"\n"
    "6,0,7,1,7,1,0,\"main.c:9\",\"main (main.c:9)\"\n"
    "0,100,0,0,500,5,300,\"gone.c:2\",\"gone (gone.c:2);main (main.c:3)\"\n";

static const char whole_jsonl[] =
    "{\"domain\": 0, \"thread\": 100, \"size\": 60, \"count\": 3, \"allocated_size\": 100, \"allocated_count\": 4, "
    "\"peak_size\": 60, \"total_nframe\": null, \"own\": \"main.c:3\", \"frames\": [{\"file\": \"take.c\", \"line\": "
    "4, \"function\": \"take\", \"module\": \"/usr/lib/libtake.so\", \"address\": 4112, \"inlined\": false}, "
    "{\"file\": \"main.c\", \"line\": 3, \"function\": \"main\", \"module\": \"/bin/app\", \"address\": 4096, "
    "\"inlined\": false}]}\n"
    "{\"domain\": 5, \"thread\": 101, \"size\": 40, \"count\": 2, \"allocated_size\": 40, \"allocated_count\": 2, "
    "\"peak_size\": 0, \"total_nframe\": null, \"own\": \"parse.c:7\", \"frames\": [{\"file\": \"take.c\", \"line\": "
    "4, \"function\": \"take\", \"module\": \"/usr/lib/libtake.so\", \"address\": 4160, \"inlined\": false}, "
    "{\"file\": \"parse.c\", \"line\": 7, \"function\": \"parse\", \"module\": \"/bin/app\", \"address\": 4144, "
    "\"inlined\": false}, {\"file\": \"main.c\", \"line\": 5, \"function\": \"main\", \"module\": \"/bin/app\", "
    "\"address\": 4128, \"inlined\": false}]}\n"
    "{\"domain\": 6, \"thread\": 0, \"size\": 7, \"count\": 1, \"allocated_size\": 7, \"allocated_count\": 1, "
    "\"peak_size\": 0, \"total_nframe\": null, \"own\": \"main.c:9\", \"frames\": [{\"file\": \"main.c\", \"line\": 9, "
    "\"function\": \"main\", \"module\": \"/bin/app\", \"address\": 4176, \"inlined\": false}]}\n"
    "{\"domain\": 0, \"thread\": 100, \"size\": 0, \"count\": 0, \"allocated_size\": 500, \"allocated_count\": 5, "
    "\"peak_size\": 300, \"total_nframe\": null, \"own\": \"gone.c:2\", \"frames\": [{\"file\": \"gone.c\", \"line\": "
    "2, \"function\": \"gone\", \"module\": \"/bin/app\", \"address\": 4208, \"inlined\": false}, {\"file\": "
    "\"main.c\", \"line\": 3, \"function\": \"main\", \"module\": \"/bin/app\", \"address\": 4192, \"inlined\": "
    "false}]}\n";

static const char whole_text[] = "/bin/app (process 0)\n"
                                 "107 B live in 6 blocks, peak 400 B\n"
                                 "\n"
                                 "       LIVE  SHARE    BLOCKS  WHERE\n"
                                 "       60 B  56.1%         3  main.c:3  main\n"
                                 "       40 B  37.4%         2  parse.c:7  parse\n"
                                 "        7 B   6.5%         1  main.c:9  main\n"
                                 "\n"
                                 "       LIVE       PEAK      LIMIT    BLOCKS  DOMAIN\n"
                                 "       60 B        0 B          -         3  0 \n"
                                 "       40 B        0 B          -         2  5 cache\n"
                                 "        7 B        0 B          -         1  6 pool\n";

static const char whole_json[] =
    "{\"traceback_limit\": 100, \"frame_order\": \"most_recent_first\", \"traces\": [\n"
    "{\"domain\":0,\"size\":8,\"total_nframe\":null,\"count\":1,\"frames\":[[\"take.c\",4],[\"main.c\",3]]},\n"
    "{\"domain\":0,\"size\":20,\"total_nframe\":null,\"count\":1,\"frames\":[[\"take.c\",4],[\"main.c\",3]]},\n"
    "{\"domain\":0,\"size\":32,\"total_nframe\":null,\"count\":1,\"frames\":[[\"take.c\",4],[\"main.c\",3]]},\n"
    "{\"domain\":5,\"size\":20,\"total_nframe\":null,\"count\":2,\"frames\":[[\"take.c\",4],[\"parse.c\",7],[\"main."
    "c\",5]]},\n"
    "{\"domain\":6,\"size\":7,\"total_nframe\":null,\"count\":1,\"frames\":[[\"main.c\",9]]}\n"
    "]}\n";

static const char whole_folded[] = "main 7\n"
                                   "main;take 60\n"
                                   "main;parse;take 40\n";

static const char whole_speedscope[] = "\"shared\": {\"frames\": [\n"
                                       "{\"name\": \"main\", \"file\": \"main.c\", \"line\": 3},\n"
                                       "{\"name\": \"take\", \"file\": \"take.c\", \"line\": 4},\n"
                                       "{\"name\": \"parse\", \"file\": \"parse.c\", \"line\": 7},\n"
                                       "{\"name\": \"take\", \"file\": \"take.c\", \"line\": 4}]},\n"
                                       "\"profiles\": [{\"type\": \"sampled\", \"name\": \"live bytes\", \"unit\": "
                                       "\"bytes\", \"startValue\": 0, \"endValue\": 107,\n"
                                       "\"samples\": [[0],\n"
                                       "[0,1],\n"
                                       "[0,2,3]],\n"
                                       "\"weights\": [7,60,40]}]}\n";

static const char churn_thread[] =
    "[\n"
    "{\"frames\":[[\"thread 100 main thread\",0]],\"size\":60,\"count\":3,\"str\":\"thread 100 main thread: size=60 B, "
    "count=3, average=20 B\"},\n"
    "{\"frames\":[[\"thread 101 worker\",0]],\"size\":40,\"count\":2,\"str\":\"thread 101 worker: size=40 B, count=2, "
    "average=20 B\"},\n"
    "{\"frames\":[[\"<unknown>\",0]],\"size\":7,\"count\":1,\"str\":\"<unknown>: size=7 B, count=1, average=7 B\"}\n"
    "]\n";

static const char churn_domain[] =
    "[\n"
    "{\"frames\":[[\"domain 0\",0]],\"size\":60,\"count\":3,\"str\":\"domain 0: size=60 B, count=3, average=20 B\"},\n"
    "{\"frames\":[[\"domain 5 cache\",0]],\"size\":40,\"count\":2,\"str\":\"domain 5 cache: size=40 B, count=2, "
    "average=20 B\"},\n"
    "{\"frames\":[[\"domain 6 pool\",0]],\"size\":7,\"count\":1,\"str\":\"domain 6 pool: size=7 B, count=1, average=7 "
    "B\"}\n"
    "]\n";

static const char churn_module[] =
    "[\n"
    "{\"frames\":[[\"/usr/lib/libtake.so\",0]],\"size\":100,\"count\":5,\"str\":\"/usr/lib/libtake.so: size=100 B, "
    "count=5, average=20 B\"},\n"
    "{\"frames\":[[\"/bin/app\",0]],\"size\":7,\"count\":1,\"str\":\"/bin/app: size=7 B, count=1, average=7 B\"}\n"
    "]\n";

static const char churn_own[] =
    "[\n"
    "{\"frames\":[[\"main.c\",3]],\"size\":60,\"count\":3,\"str\":\"main.c:3: size=60 B, count=3, average=20 "
    "B\",\"key\":\"main.c\",\"line\":3,\"function\":\"main\",\"via\":\"take\",\"members\":[{\"function\":\"main\","
    "\"size\":60,\"count\":3}]},\n"
    "{\"frames\":[[\"parse.c\",7]],\"size\":40,\"count\":2,\"str\":\"parse.c:7: size=40 B, count=2, average=20 "
    "B\",\"key\":\"parse.c\",\"line\":7,\"function\":\"parse\",\"via\":\"take\",\"members\":[{\"function\":\"parse\","
    "\"size\":40,\"count\":2}]},\n"
    "{\"frames\":[[\"main.c\",9]],\"size\":7,\"count\":1,\"str\":\"main.c:9: size=7 B, count=1, average=7 "
    "B\",\"key\":\"main.c\",\"line\":9,\"function\":\"main\",\"via\":\"\",\"members\":[{\"function\":\"main\",\"size\":"
    "7,\"count\":1}]},\n"
    "{\"frames\":[[\"gone.c\",2]],\"size\":0,\"count\":0,\"str\":\"gone.c:2: size=0 B, "
    "count=0\",\"key\":\"gone.c\",\"line\":2,\"function\":\"gone\",\"via\":\"\",\"members\":[{\"function\":\"gone\","
    "\"size\":0,\"count\":0}]}\n"
    "]\n";

static const char churn_line[] =
    "[\n"
    "{\"frames\":[[\"take.c\",4]],\"size\":100,\"count\":5,\"str\":\"take.c:4: size=100 B, count=5, average=20 "
    "B\",\"key\":\"take.c\",\"line\":4,\"function\":\"take\",\"via\":\"\",\"members\":[{\"function\":\"take\",\"size\":"
    "100,\"count\":5}]},\n"
    "{\"frames\":[[\"main.c\",9]],\"size\":7,\"count\":1,\"str\":\"main.c:9: size=7 B, count=1, average=7 "
    "B\",\"key\":\"main.c\",\"line\":9,\"function\":\"main\",\"via\":\"\",\"members\":[{\"function\":\"main\",\"size\":"
    "7,\"count\":1}]},\n"
    "{\"frames\":[[\"gone.c\",2]],\"size\":0,\"count\":0,\"str\":\"gone.c:2: size=0 B, "
    "count=0\",\"key\":\"gone.c\",\"line\":2,\"function\":\"gone\",\"via\":\"\",\"members\":[{\"function\":\"gone\","
    "\"size\":0,\"count\":0}]}\n"
    "]\n";

static const char difference_own[] = "[\n"
                                     "{\"frames\":[[\"main.c\",3]],\"size\":60,\"size_diff\":50,\"count\":3,\"count_"
                                     "diff\":2,\"str\":\"main.c:3: size=60 B (+50 B), count=3 (+2), average=20 "
                                     "B\",\"key\":\"main.c\",\"line\":3,\"function\":\"main\",\"via\":\"take\","
                                     "\"members\":[{\"function\":\"main\",\"size\":60,\"count\":3}]},\n"
                                     "{\"frames\":[[\"parse.c\",7]],\"size\":40,\"size_diff\":40,\"count\":2,\"count_"
                                     "diff\":2,\"str\":\"parse.c:7: size=40 B (+40 B), count=2 (+2), average=20 "
                                     "B\",\"key\":\"parse.c\",\"line\":7,\"function\":\"parse\",\"via\":\"take\","
                                     "\"members\":[{\"function\":\"parse\",\"size\":40,\"count\":2}]},\n"
                                     "{\"frames\":[[\"l.c\",1]],\"size\":0,\"size_diff\":-9,\"count\":0,\"count_diff\":"
                                     "-9,\"str\":\"l.c:1: size=0 B (-9 B), count=0 "
                                     "(-9)\",\"key\":\"l.c\",\"line\":1,\"function\":\"lost\",\"via\":\"\",\"members\":"
                                     "[{\"function\":\"lost\",\"size\":9,\"count\":9}]},\n"
                                     "{\"frames\":[[\"main.c\",9]],\"size\":7,\"size_diff\":7,\"count\":1,\"count_"
                                     "diff\":1,\"str\":\"main.c:9: size=7 B (+7 B), count=1 (+1), average=7 "
                                     "B\",\"key\":\"main.c\",\"line\":9,\"function\":\"main\",\"via\":\"\",\"members\":"
                                     "[{\"function\":\"main\",\"size\":7,\"count\":1}]}\n"
                                     "]\n";

static void assert_written(int status, struct ta_buffer *buffer, const char *expected)
{
    TEST_ASSERT_EQUAL_INT_MESSAGE(0, status, ta_error_text());
    TEST_ASSERT_EQUAL_size_t(strlen(buffer->bytes), buffer->length);
    const char *from = strstr(buffer->bytes, "\"shared\""); /* speedscope: the version stands before it */
    TEST_ASSERT_EQUAL_STRING(expected, from != NULL ? from : buffer->bytes);
    free(buffer->bytes);
    *buffer = (struct ta_buffer){0};
}

static void test_every_format_says_all_that_the_snapshot_has(void)
{
    static const struct {
        const char *name, *text;
    } formats[] = {{"csv", whole_csv},   {"jsonl", whole_jsonl},   {"text", whole_text},
                   {"json", whole_json}, {"folded", whole_folded}, {"speedscope", whole_speedscope}};
    struct ta_snapshot *whole = whole_snapshot();
    struct ta_buffer buffer = {0};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        int status = ta_snapshot_export(whole, formats[i].name, TA_ORDER_DEFAULT, ta_write_to_buffer, &buffer);
        assert_written(status, &buffer, formats[i].text);
    }
    ta_snapshot_free(whole);
}

static void test_one_thing_is_not_said_as_many(void)
{
    struct ta_snapshot *one = snapshot_of("{'size': 9, 'frames': [['/s/main.c', 1]]}");
    struct ta__view *view = (struct ta__view *)(uintptr_t)ta__model_of(one)->view;
    struct ta_buffer buffer = {0};
    view->cut_short = view->invalid_frees = 1;
    view->lost = 2;
    TEST_ASSERT_EQUAL_INT(0, ta_snapshot_export(one, "text", TA_ORDER_DEFAULT, ta_write_to_buffer, &buffer));
    TEST_ASSERT_NOT_NULL(strstr(buffer.bytes, "\n9 B live in 1 block, peak 9 B\n"));
    TEST_ASSERT_NOT_NULL(strstr(buffer.bytes, "note: 2 allocations could not be traced"));
    TEST_ASSERT_NOT_NULL(strstr(buffer.bytes, "note: 1 stack ended before its outermost call\n"));
    TEST_ASSERT_NOT_NULL(strstr(buffer.bytes, "note: 1 double free or damaged block\n"));
    free(buffer.bytes);
    ta_snapshot_free(one);
}

static void test_rows_of_every_kind_say_what_they_are_made_of(void)
{
    static const struct {
        const char *name, *text;
    } keys[] = {{"thread", churn_thread},
                {"domain", churn_domain},
                {"module", churn_module},
                {"own", churn_own},
                {"line", churn_line}};
    struct ta_snapshot *whole = whole_snapshot();
    struct ta_snapshot *before = program_of("10 1 take|take.c:4|/usr/lib/libtake.so; main|main.c:3|/bin/app\n"
                                            "9 9 lost|l.c:1|/bin/app");
    struct ta_buffer buffer = {0};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct ta_statistics *rows = ta_snapshot_churn(whole, keys[i].name, 0);
        assert_written(ta_statistics_export_json(rows, SIZE_MAX, ta_write_to_buffer, &buffer), &buffer, keys[i].text);
        ta_statistics_free(rows);
    }
    struct ta_differences *rows = ta_snapshot_compare_to(whole, before, "own", 0);
    assert_written(ta_differences_export_json(rows, SIZE_MAX, ta_write_to_buffer, &buffer), &buffer, difference_own);
    ta_differences_free(rows);
    ta_snapshot_free(before);
    ta_snapshot_free(whole);
}

static void test_trees_by_other_values_and_from_the_leaves(void)
{
    static const struct {
        enum ta_order order;
        unsigned flags;
        const char *text;
    } trees[] = {{TA_ORDER_COUNT, 0, "all 6 0 6\n main 6 0 6\n  take 3 0 3\n  parse 2 0 2\n   take 2 0 2\n"},
                 {TA_ORDER_ALLOCATED_SIZE, 0,
                  "all 647 0 6\n main 647 0 6\n  gone 500 0 0\n  take 100 0 3\n  parse 40 0 2\n   take 40 0 2\n"},
                 {TA_ORDER_ALLOCATED_COUNT, 0,
                  "all 12 0 6\n main 12 0 6\n  gone 5 0 0\n  take 4 0 3\n  parse 2 0 2\n   take 2 0 2\n"},
                 {TA_ORDER_TEMPORARY, 0, "all 6 0 3\n main 6 0 3\n  gone 5 0 0\n  take 1 0 3\n"},
                 {TA_ORDER_PEAK, 0, "all 360 0 3\n main 360 0 3\n  gone 300 0 0\n  take 60 0 3\n"},
                 {TA_ORDER_DEFAULT, TA_CALLTREE_FROM_LEAVES,
                  "all 107 0 6\n take 100 0 5\n  main 60 0 3\n  parse 40 0 2\n   main 40 0 2\n main 7 0 1\n"}};
    struct ta_snapshot *whole = whole_snapshot();
    for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
        struct ta_calltree *tree = ta_calltree_create(trees[i].order, trees[i].flags);
        TEST_ASSERT_EQUAL_INT(0, ta_calltree_add(tree, whole, 0));
        TEST_ASSERT_EQUAL_STRING(trees[i].text, tree_text(tree));
        ta_calltree_free(tree);
    }
    ta_snapshot_free(whole);
}

int main(void)
{
    UNITY_BEGIN();
    RUN_TEST(test_calltree_of_one_snapshot_adds_up_with_the_largest_first);
    RUN_TEST(test_calltree_from_leaves_begins_with_who_asked);
    RUN_TEST(test_calltree_of_two_snapshots_has_two_values);
    RUN_TEST(test_calltree_needs_its_snapshots_no_more);
    RUN_TEST(test_calltree_refuses_what_it_cannot_do);
    RUN_TEST(test_calltree_of_a_deep_recursion_is_a_chain);
    RUN_TEST(test_every_format_writes_something_and_says_what_it_is);
    RUN_TEST(test_a_writer_that_refuses_is_asked_once_and_the_export_fails);
    RUN_TEST(test_no_snapshot_is_refused_by_every_format);
    RUN_TEST(test_descriptor_stream_and_buffer_receive_the_same);
    RUN_TEST(test_flame_options_may_come_from_an_older_header);
    RUN_TEST(test_report_has_totals_and_the_largest_rows);
    RUN_TEST(test_every_format_says_all_that_the_snapshot_has);
    RUN_TEST(test_one_thing_is_not_said_as_many);
    RUN_TEST(test_rows_of_every_kind_say_what_they_are_made_of);
    RUN_TEST(test_trees_by_other_values_and_from_the_leaves);
    return UNITY_END();
}
