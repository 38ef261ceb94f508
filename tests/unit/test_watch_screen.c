/* test_watch_screen.c: the terminal view of tracealloc watch, cell by cell, against watch_screens.txt.
 *
 * Keys come from a list instead of a keyboard: the view asks curses for each of them by wgetch, which is this file's, as
 * are the clock and poll. Before each key the screen is noted: the lines that are others than before (`|` text, `:` a
 * letter for each cell that is not plain), and how long the view would have waited.
 *
 *     test_watch_screen SCREENS.txt [--write]        --write: what is shown now is right
 */
#define _XOPEN_SOURCE_EXTENDED 1
#include <curses.h>
#include <locale.h>
#include <poll.h>
#include <time.h>
#include <wchar.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/watch.h"
#include "tests/support/written.h"

/* <term.h> has a macro for every word. */
struct term;
extern struct term *cur_term;
int setupterm(const char *, int, int *);
int del_curterm(struct term *);

enum { LINES_MOST = 50, COLUMNS_MOST = 140 };

/* Keys that are none: the terminal gets another size, milliseconds pass, the program goes on, the terminal is gone. */
enum { SIZE = 0x10000, PASS = 0x20000, GO_ON = 0x30000, GONE };
#define RESIZED(columns, lines) (SIZE + (columns)*256 + (lines))
#define AFTER(milliseconds)     (PASS + (milliseconds))

static struct {
    const int *keys;
    size_t count, at;
    int is_given, waited, is_gone;
    double now, by_call; /* seconds; by so much it is later after each look at the clock */
} script;

static FILE *noted;
static char *noted_text, before[LINES_MOST][2][COLUMNS_MOST * 4];
static size_t noted_size;
static const char *screens_path;
static int writes;

static struct written written;
static struct fake_source *const fake = &written.fake;
static struct cli_watch watch;
static struct cli_feed feed;
static uint32_t app, leaks, churns, other;

/* ---- what the view stands on ---- */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)script.now;
    time->tv_nsec = (long)((script.now - (double)time->tv_sec) * 1e9);
    script.now += script.by_call;
    return 0;
}

int poll(struct pollfd *files, nfds_t count, int timeout)
{
    script.waited = timeout;
    if (count > 0)
        files[0].revents = (short)script.is_gone;
    return 0;
}

static char look_of(attr_t attributes, short pair)
{
    return (char)(attributes & A_REVERSE     ? 'R'
                  : attributes & A_UNDERLINE ? 'U'
                  : pair != 0                ? "-rgb"[pair]
                  : attributes & A_DIM       ? 'd'
                                             : ' ');
}

static void end_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == ' ')
        text[--length] = '\0';
}

static void note_screen(void)
{
    for (int y = 0; y < LINES_MOST; y++) {
        char now[2][COLUMNS_MOST * 4] = {"", ""}, *end = now[0];
        for (int x = 0; x < COLS && y < LINES; x++) {
            cchar_t cell;
            wchar_t text[CCHARW_MAX + 1] = L"";
            attr_t attributes = 0;
            short pair = 0;
            mvin_wch(y, x, &cell);
            getcchar(&cell, text, &attributes, &pair, NULL);
            end += sprintf(end, "%lc", (wint_t)(text[0] != 0 ? text[0] : L' '));
            now[1][x] = look_of(attributes, pair);
        }
        for (int kind = 0; kind < 2; kind++) {
            end_line(now[kind]);
            if (strcmp(now[kind], before[y][kind]) != 0)
                fprintf(noted, "%2d%c%s\n", y, "|:"[kind], now[kind]);
            strcpy(before[y][kind], now[kind]);
        }
    }
    fprintf(noted, "waits %d\n", script.waited);
}

static void note_key(int key)
{
    if (key > 0x20 && key < 0x7F)
        fprintf(noted, "-- %c\n", key);
    else if (key >= SIZE && key < PASS)
        fprintf(noted, "-- %d columns, %d lines\n", (key - SIZE) / 256, key & 255);
    else if (key >= PASS && key < GO_ON)
        fprintf(noted, "-- %d ms later\n", key - PASS);
    else
        fprintf(noted, "-- %s\n", key == GO_ON ? "the program goes on" : key == GONE ? "no terminal" : keyname(key));
}

static void go_on(void)
{
    fake_malloc(fake, leaks, 1, 1024);
    written_entry(&written);
    written_file(&written);
}

int wgetch(WINDOW *window)
{
    (void)window;
    script.is_given = !script.is_given;
    if (!script.is_given)
        return ERR;
    note_screen();
    int key = script.at < script.count ? script.keys[script.at++] : 'q';
    note_key(key);
    if (key == GO_ON)
        go_on();
    else if (key == GONE)
        script.is_gone = POLLHUP;
    else if (key >= PASS)
        script.now += (key - PASS) / 1000.0;
    else if (key >= SIZE)
        resizeterm(key & 255, (key - SIZE) / 256);
    return key >= SIZE ? KEY_RESIZE : key;
}

/* ---- scenes ---- */

/* Shows what the feed has, presses the keys and q, and notes what is on the screen before each of them. */
static void show(const char *title, const int *keys, size_t count)
{
    script.keys = keys;
    script.count = count;
    script.at = 0;
    script.is_given = script.is_gone = script.waited = 0;
    script.now = 0;
    memset(before, 0, sizeof before);
    fprintf(noted, "== %s\n", title);
    fflush(stdout);
    int out = dup(STDOUT_FILENO), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDOUT_FILENO);
    int status = cli_watch_show(&watch, &feed, 1);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(nothing);
    fprintf(noted, "left with %d after %zu keys of %zu\n", status, script.at, count);
}
#define SHOW(title, ...) show(title, (const int[]){__VA_ARGS__}, sizeof(int[]){__VA_ARGS__} / sizeof(int))

void setUp(void)
{
    written_open(&written);
    watch = (struct cli_watch){.order = CLI_BY_LIVE};
    script.by_call = 0;
    app = fake_module(fake, "/nonexistent/app", 0x1000, 0x2000000);
    uint32_t *const leaves[] = {&leaks, &churns, &other};
    for (uint32_t i = 0; i < 3; i++)
        *leaves[i] = fake_leaf(fake, fake_context(fake, 0, 0x1100 + 0x100 * i, app), 0, 0, 1);
}

void tearDown(void)
{
    free(feed.trouble);
    cli_watch_free(&watch);
    written_close(&written);
}

static char feed_name[64];

static void feed_from_file(void)
{
    written_entry(&written);
    strcpy(feed_name, "program");
    feed = (struct cli_feed){
        .path = (char *)(uintptr_t)written_file(&written), .channel = -1, .asked = -1, .name = feed_name};
}

/* Three samples, of which the view takes the last one itself. */
static void grow(void)
{
    fake_malloc(fake, leaks, 10, 1000);
    fake_malloc(fake, churns, 200000, 10);
    fake_free(fake, churns, 199000, 10);
    fake_malloc(fake, other, 3, 5000);
    TEST_ASSERT_EQUAL(CLI_OK, cli_watch_take(&watch, written_next(&written), 0));
    fake_malloc(fake, leaks, 30, 1000);
    TEST_ASSERT_EQUAL(CLI_OK, cli_watch_take(&watch, written_next(&written), 0));
    fake_malloc(fake, leaks, 40, 1000);
    fake_malloc(fake, churns, 5000, 10);
    fake_free(fake, churns, 5000, 10);
    fake_free(fake, other, 1, 5000);
    feed_from_file();
}

static void scene_sizes_and_orders(void)
{
    grow();
    SHOW("sizes and orders", RESIZED(132, 20), RESIZED(44, 14), RESIZED(110, 9), RESIZED(109, 9), RESIZED(100, 9),
         RESIZED(99, 9), RESIZED(60, 9), RESIZED(59, 9), RESIZED(40, 7), RESIZED(12, 6), RESIZED(9, 5), RESIZED(80, 12),
         's', 's', 's', 's');
}

static void scene_keys(void)
{
    grow();
    SHOW("keys", RESIZED(80, 18), 'k', 'j', KEY_DOWN, 'j', KEY_UP, '\t', '\t', '\t', 'h', 'h', '?', '\t', '2', '3', '1',
         'm', ' ', ' ', '/', 'x', 'y', KEY_BACKSPACE, 127, 8, 0x1F, 0x100, '2', '\n', 27, '/', 'z', 27, '/', '3',
         KEY_ENTER, 'x', 't');
}

static void scene_many_rows(void)
{
    for (uint32_t i = 0; i < 30; i++)
        fake_malloc(fake, fake_leaf(fake, fake_context(fake, 0, 0x10000 + 0x100 * i, app), 0, 0, 1), 1, 3000 - i);
    feed_from_file();
    SHOW("many rows", RESIZED(60, 12), KEY_NPAGE, KEY_NPAGE, KEY_PPAGE, KEY_END, 'j', KEY_UP, KEY_HOME, 'k', KEY_NPAGE,
         'j', 'j', '2', KEY_END, '1', KEY_END, '/', '9', '0', '0', '\n');
}

static void scene_tree(void)
{
    uint32_t at = 0;
    fake_malloc(fake, leaks, 10, 90);
    for (uint32_t i = 0; i < 25; i++)
        at = fake_context(fake, at, 0x20000 + 0x100 * i, app);
    fake_malloc(fake, fake_leaf(fake, at, 0, 0, 25), 1, 950);
    uint32_t small = fake_context(fake, fake_context(fake, 0, 0x30000, app), 0x30100, app);
    fake_malloc(fake, fake_leaf(fake, small, 0, 0, 2), 1, 97);
    uint32_t border = fake_context(fake, fake_context(fake, 0, 0x40000, app), 0x40100, app);
    fake_malloc(fake, fake_leaf(fake, border, 0, 0, 2), 1, 103);
    feed_from_file();
    SHOW("tree", RESIZED(60, 40), '2', 'j', '\n', '\n', KEY_END, KEY_RIGHT, 'k', KEY_LEFT, KEY_HOME, KEY_ENTER,
         KEY_ENTER, RESIZED(60, 10), KEY_END, '1', '\n', '2', '3', '\n');
}

static void scene_domains(void)
{
    uint32_t cache = fake_domain(fake, 9, "cache"), twin = fake_domain(fake, 123456789, "");
    fake->domains[cache].peak_bytes = 40000;
    fake->domains[cache].limit_bytes = 90000;
    fake_malloc(fake, leaks, 99950, 10);
    fake_malloc(fake, fake_leaf(fake, fake->leaves[leaks].context, cache, 0, 1), 9999, 1);
    fake_malloc(fake, fake_leaf(fake, fake->leaves[churns].context, twin, 0, 1), 10000, 1);
    uint32_t last = fake_leaf(fake, fake->leaves[other].context, twin, 0, 1);
    fake_malloc(fake, last, 12000000, 1);
    fake_free(fake, last, 12000000, 1);
    feed_from_file();
    SHOW("domains", RESIZED(80, 12), '3', 'j', 'j', 'j', RESIZED(56, 9));
}

static void scene_nothing_yet(void)
{
    feed_from_file();
    feed.path = (char *)(uintptr_t) "/nonexistent/recording.ta";
    feed.rests = 1;
    feed.trouble = strdup("why there is nothing");
    SHOW("nothing yet", RESIZED(80, 9), 'm', 'k', '2', '3', '\n', 'w');
}

static void scene_nothing_lives(void)
{
    fake_malloc(fake, leaks, 1, 10);
    fake_free(fake, leaks, 1, 10);
    fake->source.sample_bytes = 4096;
    feed_from_file();
    feed.is_over = 1;
    feed.process = 1;
    strcpy(feed_name, "a\x01"
                      "b\x7f\xc3\xa9\xe2\x82\xac c");
    SHOW("nothing lives", RESIZED(80, 9), 's', 's', RESIZED(17, 9), RESIZED(16, 9), RESIZED(15, 9));
}

static void scene_written(void)
{
    char folder[] = "/tmp/test-watch-XXXXXX", path[100];
    TEST_ASSERT_NOT_NULL(mkdtemp(folder));
    TEST_ASSERT_EQUAL(0, chdir(folder));
    grow();
    strcpy(feed_name, "program of two words");
    SHOW("written", RESIZED(80, 9), 'w', 'k');
    struct ta_snapshot *snapshot = ta_snapshot_load("program.000021.ta");
    sprintf(path, "%s/program.000021.ta", folder);
    unlink(path);
    TEST_ASSERT_EQUAL(0, chdir("/"));
    rmdir(folder);
    TEST_ASSERT_NOT_NULL(snapshot);
    ta_snapshot_free(snapshot);
}

static void scene_time(void)
{
    fake_malloc(fake, leaks, 1, 1024);
    feed_from_file();
    SHOW("time", RESIZED(80, 9), GO_ON, AFTER(999), AFTER(1), GO_ON, ' ', AFTER(1500), AFTER(1500), ' ', AFTER(1500),
         AFTER(250), GO_ON, AFTER(750));
}

/* A look takes as long as there is between two looks at the clock. */
static void scene_slow_look(void)
{
    fake_malloc(fake, leaks, 1, 1024);
    feed_from_file();
    script.by_call = 0.5;
    SHOW("a look that takes half of its time", RESIZED(80, 9), 'k');
    script.by_call = 0.75;
    SHOW("a look that takes longer", 'k', 'k', 'k', 'k');
}

static void scene_no_terminal(void)
{
    fake_malloc(fake, leaks, 1, 1024);
    feed_from_file();
    SHOW("the terminal goes", RESIZED(80, 9), GONE, 'k', 'k', 'k');
}

static void test_screens_are_what_they_were(void)
{
    noted = open_memstream(&noted_text, &noted_size);
    void (*const scenes[])(void) = {
        scene_sizes_and_orders, scene_keys,    scene_many_rows, scene_tree,      scene_domains,    scene_nothing_yet,
        scene_nothing_lives,    scene_written, scene_time,      scene_slow_look, scene_no_terminal};
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (i > 0)
            setUp();
        scenes[i]();
        if (i + 1 < sizeof scenes / sizeof *scenes)
            tearDown();
    }
    fclose(noted);
    FILE *file = fopen(screens_path, writes ? "w" : "r");
    TEST_ASSERT_NOT_NULL_MESSAGE(file, screens_path);
    char line[COLUMNS_MOST * 4 + 100];
    size_t number = 0;
    if (writes)
        fputs(noted_text, file);
    for (char *at = noted_text, *end; !writes && (end = strchr(at, '\n')) != NULL; at = end + 1) {
        *end = '\0';
        number++;
        TEST_ASSERT_NOT_NULL_MESSAGE(fgets(line, sizeof line, file), at);
        line[strcspn(line, "\n")] = '\0';
        char where[32];
        sprintf(where, "line %zu", number);
        TEST_ASSERT_EQUAL_STRING_MESSAGE(line, at, where);
    }
    TEST_ASSERT_TRUE_MESSAGE(writes || fgets(line, sizeof line, file) == NULL, line);
    fclose(file);
    free(noted_text);
}

int main(int argc, char **argv)
{
    setenv("HOME", "/nonexistent", 1); /* nobody's own rules */
    setenv("TZ", "UTC", 1);
    setenv("TERM", "xterm", 1);
    setenv("LINES", "24", 1);
    setenv("COLUMNS", "80", 1);
    unsetenv("TERMINFO");
    screens_path = argc > 1 ? argv[1] : "watch_screens.txt";
    writes = argc > 2;
    int known;
    if (setlocale(LC_ALL, "C.UTF-8") == NULL || setupterm(NULL, STDOUT_FILENO, &known) != 0) {
        puts("no such locale, or no description of that terminal here");
        return 77;
    }
    del_curterm(cur_term); /* the view makes its own */
    setenv("LC_ALL", "C.UTF-8", 1);
    if (chdir("/") != 0)
        return 1;
    UNITY_BEGIN();
    RUN_TEST(test_screens_are_what_they_were);
    return UNITY_END();
}
