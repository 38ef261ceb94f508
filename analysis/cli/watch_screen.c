/* watch_screen.c: the terminal view of tracealloc watch: totals, the table of one's own code, the tree, the domains, and
 * the keys. Needs no more than 80 columns and 24 lines; makes do with less. See watch.h. */
#include <curses.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/places.h"
#include "analysis/cli/terminal.h"
#include "analysis/cli/watch.h"

enum view { TABLE, TREE, DOMAINS, HELP, VIEWS };
enum { RED = 1, GREEN, BLUE };
enum { SPREAD = 20 }; /* branches of the tree with a twentieth of the whole are open */

struct screen {
    struct cli_watch *watch;
    struct cli_feed *feed;
    enum view view;
    size_t chosen, first, count; /* of the rows of the view; the first one on the screen */
    uint64_t *turned;            /* branches that were opened or closed by hand: hashes of their paths */
    size_t turned_count;
    uint64_t *branch_hashes; /* of the tree's nodes in view */
    uint32_t *branch_nodes;
    int is_frozen, is_typing, is_done;
    char message[200];
};

/* ---- text ---- */

/* At most `columns` wide, control characters as '?'. */
static void put(int y, int x, int columns, const char *text)
{
    char piece[1024];
    size_t length = strlen(text);
    snprintf(piece, sizeof piece, "%s", text);
    for (char *at = piece; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = '?';
    while (columns >= 0 && length > 0 && cli_text_width(piece) > (size_t)columns) {
        length = strlen(piece);
        while (length > 0 && ((unsigned char)piece[length - 1] & 0xC0) == 0x80)
            length--;
        piece[length > 0 ? length - 1 : 0] = '\0';
    }
    mvaddstr(y, x, piece);
}

static const char *size_of(double size, int sign, char text[32])
{
    ta_size_text(size, sign, text, 32);
    return text;
}

static const char *count_of(double count, char text[32])
{
    static const char *const units[] = {"", "k", "M", "G"};
    int unit = 0;
    for (; count >= 9999.5 && unit < 3; count /= 1000)
        unit++;
    snprintf(text, 32, unit > 0 && count < 99.95 ? "%.1f%s" : "%.0f%s", count, units[unit]);
    return text;
}

static void put_size(int y, int x, int columns, double size, int sign)
{
    char text[32];
    ta_size_text(size, sign, text, sizeof text);
    mvprintw(y, x, "%*s", columns, text);
}

/* Growth is red, release is green; none is nothing. */
static void put_change(int y, int x, int columns, double change)
{
    int pair = change > 0 ? RED : GREEN;
    if (change == 0) {
        mvprintw(y, x, "%*s", columns, "");
        return;
    }
    attron(COLOR_PAIR(pair));
    put_size(y, x, columns, change, 1);
    attroff(COLOR_PAIR(pair));
}

/* The newest values at the right. */
static void put_course(int y, int x, int columns, const struct cli_course *course)
{
    double values[CLI_COURSE] = {0};
    char graph[CLI_COURSE * 4 + 1];
    size_t cells = (size_t)columns < CLI_COURSE ? (size_t)columns : CLI_COURSE, count = course->count;
    size_t used = count < cells ? count : cells;
    memcpy(values + cells - used, course->values + count - used, used * sizeof *values);
    cli_graph_text(values, cells, graph, sizeof graph);
    attron(COLOR_PAIR(BLUE));
    mvaddstr(y, x, graph);
    attroff(COLOR_PAIR(BLUE));
}

/* ---- the head ---- */

static void clock_of(uint64_t time_ns, char text[16])
{
    time_t seconds = (time_t)(time_ns / 1000000000);
    struct tm parts;
    *text = '\0';
    if (time_ns != 0 && localtime_r(&seconds, &parts) != NULL)
        strftime(text, 16, "%H:%M:%S", &parts);
}

static void draw_totals(const struct screen *screen)
{
    const struct cli_watch *watch = screen->watch;
    char live[32], peak[32], resident[32], growth[32], calls[32], bytes[32];
    char *line = cli_text(" live %s  peak %s  rss %s  %s/s  %s calls/s  %s/s asked for",
                          size_of((double)watch->size, 0, live), size_of((double)watch->peak, 0, peak),
                          watch->resident > 0 ? size_of((double)watch->resident, 0, resident) : "?",
                          size_of(watch->growth_per_second, 1, growth), count_of(watch->calls_per_second, calls),
                          size_of(watch->bytes_per_second, 0, bytes));
    if (cli_text_width(line) > (size_t)COLS) /* the last one is the first to go */
        *(strstr(line, " calls/s") + 8) = '\0';
    put(1, 0, COLS, line);
    free(line);
}

static void draw_head(const struct screen *screen)
{
    const struct cli_watch *watch = screen->watch;
    const struct cli_feed *feed = screen->feed;
    char now[16], mark[16], grown[32], process[32] = "";
    clock_of(watch->time, now);
    clock_of(watch->mark_time, mark);
    if (feed->process > 0)
        snprintf(process, sizeof process, " (%d)", (int)feed->process);
    char *title = cli_text(" %s%s%s%s", feed->name, process, watch->sampled > 1 ? "  estimates" : "",
                           screen->is_frozen ? "  FROZEN"
                           : feed->is_over   ? "  ENDED"
                           : feed->rests     ? "  NOT TRACED: t starts"
                                             : "");
    attron(A_REVERSE | A_BOLD);
    mvprintw(0, 0, "%*s", COLS, "");
    put(0, 0, COLS - 10, title);
    put(0, COLS > 10 ? COLS - 9 : 0, 9, now);
    attroff(A_REVERSE | A_BOLD);
    free(title);
    draw_totals(screen);
    char *line =
        cli_text(" %s since the mark at %s%s%s", size_of((double)watch->size - (double)watch->mark_size, 1, grown),
                 mark, watch->filter[0] != '\0' || screen->is_typing ? "  only: " : "", watch->filter);
    put(2, 0, COLS, line);
    free(line);
    if (COLS >= 100)
        put_course(2, COLS - 42, 40, &watch->live);
}

/* ---- the table ---- */

static const char *const order_names[CLI_ORDERS] = {"LIVE", "GROWTH", "CALLS/S", "CALLS"};

/* Where the columns of the table are; -1 = there is no room for it. */
struct columns {
    int calls, course, cells, where;
};

static struct columns columns_of(void)
{
    if (COLS >= 110)
        return (struct columns){.calls = 31, .course = 42, .cells = 22, .where = 66};
    return COLS >= 60 ? (struct columns){.calls = -1, .course = 33, .cells = 10, .where = 44}
                      : (struct columns){.calls = -1, .course = -1, .cells = 0, .where = 24};
}

static void draw_heading(const struct screen *screen)
{
    static const char *const names[CLI_ORDERS] = {"LIVE", "SINCE MARK", "CALLS/S", "CALLS"};
    struct columns columns = columns_of();
    const int ends[CLI_ORDERS] = {10, 22, columns.course < 0 ? -1 : 31, columns.calls < 0 ? -1 : 40};
    attron(A_DIM);
    for (int i = 0; i < CLI_ORDERS; i++) {
        int is_order = screen->watch->order == (enum cli_watch_order)i;
        attron(is_order ? A_BOLD | A_UNDERLINE : A_DIM);
        if (ends[i] >= 0)
            mvaddstr(3, ends[i] - (int)strlen(names[i]), names[i]);
        attroff(A_BOLD | A_UNDERLINE);
    }
    if (columns.course >= 0)
        mvaddstr(3, columns.course, "COURSE");
    mvaddstr(3, columns.where, "WHERE");
    attroff(A_DIM);
}

/* "FILE:LINE  FUNCTION", what there is of it; for free(). */
static char *place_of(const struct cli_watch_row *row)
{
    char place[PATH_MAX + 16];
    cli_place_text(&row->frame, place, sizeof place);
    char *name = cli_frame_name(&row->frame), *both = cli_text("%s%s%s", place, *name != '\0' ? "  " : "", name);
    free(name);
    return both;
}

static void draw_row(int y, const struct cli_watch_row *row)
{
    struct columns columns = columns_of();
    char text[32];
    put_size(y, 0, 10, (double)row->size, 0);
    put_change(y, 10, 12, (double)row->size - (double)row->mark_size);
    if (columns.course >= 0) {
        mvprintw(y, 22, "%9s", row->calls_per_second > 0 ? count_of(row->calls_per_second, text) : "");
        put_course(y, columns.course, columns.cells, &row->course);
    }
    if (columns.calls >= 0)
        mvprintw(y, columns.calls, "%9s", count_of((double)row->calls, text));
    char *place = place_of(row);
    mvaddstr(y, columns.where - 1, " ");
    put(y, columns.where, COLS - columns.where, place);
    free(place);
}

static void draw_table(struct screen *screen, int top, int lines)
{
    const struct cli_watch *watch = screen->watch;
    screen->count = watch->shown_count;
    draw_heading(screen);
    for (int i = 0; i < lines && screen->first + (size_t)i < watch->shown_count; i++) {
        size_t index = screen->first + (size_t)i;
        if (index == screen->chosen)
            attron(A_REVERSE);
        draw_row(top + i, &watch->rows[watch->shown[index]]);
        attroff(A_REVERSE);
    }
    if (watch->shown_count == 0)
        put(top, 2, COLS - 2,
            watch->generation == 0     ? "waiting for the first snapshot …"
            : watch->filter[0] != '\0' ? "nothing has such a name"
                                       : "nothing lives");
}

/* ---- the tree ---- */

static int is_turned(const struct screen *screen, uint64_t hash)
{
    for (size_t i = 0; i < screen->turned_count; i++)
        if (screen->turned[i] == hash)
            return 1;
    return 0;
}

static uint64_t hash_of(uint64_t above, const char *name)
{
    for (above = above * 31 + 7; *name != '\0'; name++)
        above = (above ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
    return above;
}

static int is_open(const struct screen *screen, const struct ta_calltree_node *node, int64_t whole, uint64_t hash)
{
    return (node->value * SPREAD >= whole) != is_turned(screen, hash);
}

/* The nodes that are not in a closed branch, in the order of the drawing. */
static void collect_branches(struct screen *screen)
{
    struct ta_calltree *tree = screen->watch->tree;
    size_t nodes = ta_calltree_count(tree), capacity = 0;
    uint64_t *hashes = cli_allocate(nodes, sizeof *hashes);
    char *is_shown = cli_allocate(nodes, 1);
    int64_t whole = 0;
    screen->count = 0;
    for (size_t i = 0; i < nodes; i++) {
        struct ta_calltree_node node, above;
        if (ta_calltree_get(tree, i, &node, sizeof node) != 0)
            continue;
        whole = i == 0 ? node.value : whole;
        hashes[i] = hash_of(i == 0 ? 0 : hashes[node.parent], node.name);
        is_shown[i] =
            i == 0 || (is_shown[node.parent] && ta_calltree_get(tree, node.parent, &above, sizeof above) == 0 &&
                       is_open(screen, &above, whole, hashes[node.parent]));
        if (!is_shown[i])
            continue;
        if (screen->count == capacity) {
            capacity = capacity * 2 + 256;
            screen->branch_nodes = cli_enlarge(screen->branch_nodes, capacity, sizeof *screen->branch_nodes);
            screen->branch_hashes = cli_enlarge(screen->branch_hashes, capacity, sizeof *screen->branch_hashes);
        }
        screen->branch_nodes[screen->count] = (uint32_t)i;
        screen->branch_hashes[screen->count++] = hashes[i];
    }
    free(hashes);
    free(is_shown);
}

static void draw_branch(const struct screen *screen, int y, size_t index, int64_t whole)
{
    struct ta_calltree_node node;
    char name[256], share[16];
    ta_calltree_get(screen->watch->tree, screen->branch_nodes[index], &node, sizeof node);
    int indent = (int)(node.depth < (unsigned)COLS / 3 ? node.depth : (unsigned)COLS / 3);
    const char *sign = node.child == 0 ? " " : is_open(screen, &node, whole, screen->branch_hashes[index]) ? "-" : "+";
    ta_function_text(node.name, name, sizeof name);
    snprintf(share, sizeof share, "%.1f%%", whole > 0 ? 100 * (double)node.value / (double)whole : 0.0);
    put_size(y, 0, 10, (double)node.value, 0);
    mvprintw(y, 10, "%8s", share);
    char *line = cli_text("%*s%s %s", indent, "", sign, name);
    put(y, 20, COLS - 20, line);
    free(line);
}

static void draw_tree(struct screen *screen, int top, int lines)
{
    struct ta_calltree_node root = {.value = 0};
    attron(A_DIM);
    mvprintw(3, 0, "%10s%8s  CALLED BY main, inwards", "LIVE", "SHARE");
    attroff(A_DIM);
    if (ta_calltree_get(screen->watch->tree, 0, &root, sizeof root) != 0)
        return;
    for (int i = 0; i < lines && screen->first + (size_t)i < screen->count; i++) {
        size_t index = screen->first + (size_t)i;
        if (index == screen->chosen)
            attron(A_REVERSE);
        draw_branch(screen, top + i, index, root.value);
        attroff(A_REVERSE);
    }
}

static void turn_branch(struct screen *screen)
{
    if (screen->view != TREE || screen->chosen >= screen->count)
        return;
    uint64_t hash = screen->branch_hashes[screen->chosen];
    for (size_t i = 0; i < screen->turned_count; i++)
        if (screen->turned[i] == hash) {
            screen->turned[i] = screen->turned[--screen->turned_count];
            return;
        }
    screen->turned = cli_enlarge(screen->turned, screen->turned_count + 1, sizeof *screen->turned);
    screen->turned[screen->turned_count++] = hash;
}

/* ---- domains, help ---- */

static void draw_domains(struct screen *screen, int top, int lines)
{
    const struct cli_watch *watch = screen->watch;
    char calls[32];
    screen->count = watch->domain_count;
    attron(A_DIM);
    mvprintw(3, 0, "%10s %10s %10s %8s %8s  DOMAIN", "LIVE", "PEAK", "LIMIT", "BLOCKS", "CALLS");
    attroff(A_DIM);
    for (int i = 0; i < lines && screen->first + (size_t)i < watch->domain_count; i++) {
        const struct cli_watch_domain *domain = &watch->domains[screen->first + (size_t)i];
        const char *known = *domain->name == '\0' && domain->number == 0 ? "default" : domain->name;
        char *name = cli_text("%" PRIu32 " %s", domain->number, known), blocks[32];
        if (screen->first + (size_t)i == screen->chosen)
            attron(A_REVERSE);
        put_size(top + i, 0, 10, (double)domain->size, 0);
        if (domain->peak > 0)
            put_size(top + i, 11, 10, (double)domain->peak, 0);
        if (domain->limit > 0)
            put_size(top + i, 22, 10, (double)domain->limit, 0);
        mvprintw(top + i, 33, "%8s %8s  ", count_of((double)domain->count, blocks),
                 count_of((double)domain->calls, calls));
        put(top + i, 52, COLS - 52, name);
        attroff(A_REVERSE);
        free(name);
    }
}

static void draw_help(int top)
{
    static const char *const lines[] = {
        "Tab, 1 2 3   own code, tree of calls, domains",
        "s            another order: live, growth since the mark, calls a second, calls",
        "/            only what has a word in its name; Esc takes it away",
        "m            mark: growth counts from here",
        "space        freeze, and go on",
        "w            write what is shown to a recording in this folder",
        "t            stop tracing in the process, or start it",
        "Enter        in the tree: open, close",
        "arrows, j k  move; PgUp PgDn Home End",
        "q            leave; the program goes on as it is",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        put(top + (int)i, 2, COLS - 2, lines[i]);
}

/* ---- the whole ---- */

/* The last line: a message, or the row that is chosen, in full. */
static void draw_foot(const struct screen *screen)
{
    const struct cli_watch *watch = screen->watch;
    char *text = NULL;
    if (screen->is_typing)
        text = cli_text("/%s_", watch->filter);
    else if (screen->message[0] != '\0' || screen->feed->trouble != NULL)
        text = cli_text("%s", screen->message[0] != '\0' ? screen->message : screen->feed->trouble);
    else if (screen->view == TABLE && screen->chosen < watch->shown_count) {
        const struct cli_watch_row *row = &watch->rows[watch->shown[screen->chosen]];
        char *place = place_of(row);
        char *source = row->frame.lineno > 0 ? cli_source_line(&row->frame) : NULL;
        text =
            cli_text("%s  %" PRIu64 " block%s  %s", place, row->count, cli_s(row->count), source != NULL ? source : "");
        free(source);
        free(place);
    }
    if (text != NULL)
        put(LINES - 2, 1, COLS - 2, text);
    free(text);
    attron(A_DIM);
    char *keys =
        cli_text(" q quit  Tab view  s %s  / filter  m mark  space freeze  w write  ? keys", order_names[watch->order]);
    put(LINES - 1, 0, COLS - 1, keys);
    attroff(A_DIM);
    free(keys);
}

static void draw(struct screen *screen)
{
    int top = 4, lines = LINES - 6 > 0 ? LINES - 6 : 0;
    erase();
    if (screen->view == TREE)
        collect_branches(screen);
    else
        screen->count = screen->view == TABLE ? screen->watch->shown_count : screen->watch->domain_count;
    if (screen->chosen >= screen->count)
        screen->chosen = screen->count > 0 ? screen->count - 1 : 0;
    if (screen->chosen < screen->first)
        screen->first = screen->chosen;
    if (lines > 0 && screen->chosen >= screen->first + (size_t)lines)
        screen->first = screen->chosen - (size_t)lines + 1;
    draw_head(screen);
    if (screen->view == TABLE)
        draw_table(screen, top, lines);
    else if (screen->view == TREE)
        draw_tree(screen, top, lines);
    else if (screen->view == DOMAINS)
        draw_domains(screen, top, lines);
    else
        draw_help(top);
    draw_foot(screen);
    refresh();
}

/* ---- keys ---- */

static void type(struct screen *screen, int key)
{
    struct cli_watch *watch = screen->watch;
    size_t length = strlen(watch->filter);
    if (key == 27 || key == '\n' || key == KEY_ENTER) {
        screen->is_typing = 0;
        if (key == 27)
            watch->filter[0] = '\0';
    } else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
        watch->filter[length > 0 ? length - 1 : 0] = '\0';
    } else if (key >= 0x20 && key < 0x100 && length + 1 < sizeof watch->filter) {
        watch->filter[length] = (char)key;
        watch->filter[length + 1] = '\0';
    }
    cli_watch_arrange(watch);
}

static void write_snapshot(struct screen *screen)
{
    struct ta_snapshot *snapshot = cli_feed_again(screen->feed);
    time_t seconds = (time_t)(screen->watch->time / 1000000000);
    struct tm parts;
    char now[16] = "";
    if (localtime_r(&seconds, &parts) != NULL)
        strftime(now, sizeof now, "%H%M%S", &parts);
    char *path = cli_text("%.*s.%s.ta", (int)strcspn(screen->feed->name, " "), screen->feed->name, now);
    if (snapshot != NULL && ta_snapshot_dump(snapshot, path) == 0)
        snprintf(screen->message, sizeof screen->message, "written: %s", path);
    else
        snprintf(screen->message, sizeof screen->message, "%s", ta_error_text());
    ta_snapshot_free(snapshot);
    free(path);
}

static void move_by(struct screen *screen, long step)
{
    long next = (long)screen->chosen + step, last = (long)screen->count - 1;
    screen->chosen = (size_t)(next < 0 || last < 0 ? 0 : next > last ? last : next);
}

static void switch_to(struct screen *screen, enum view view)
{
    screen->view = view;
    screen->chosen = screen->first = 0;
}

static int press_moving(struct screen *screen, int key)
{
    switch (key) {
    case KEY_DOWN:
    case 'j':
        return move_by(screen, 1), 1;
    case KEY_UP:
    case 'k':
        return move_by(screen, -1), 1;
    case KEY_NPAGE:
        return move_by(screen, LINES - 7), 1;
    case KEY_PPAGE:
        return move_by(screen, 7 - LINES), 1;
    case KEY_HOME:
        return move_by(screen, LONG_MIN / 2), 1;
    case KEY_END:
        return move_by(screen, LONG_MAX / 2), 1;
    default:
        return 0;
    }
}

static void press(struct screen *screen, int key)
{
    struct cli_watch *watch = screen->watch;
    screen->message[0] = '\0';
    if (screen->is_typing) {
        type(screen, key);
        return;
    }
    if (press_moving(screen, key))
        return;
    switch (key) {
    case 'q':
        screen->is_done = 1;
        break;
    case '\t':
        switch_to(screen, screen->view >= DOMAINS ? TABLE : screen->view + 1);
        break;
    case '1':
    case '2':
    case '3':
        switch_to(screen, (enum view)(key - '1'));
        break;
    case '?':
    case 'h':
        switch_to(screen, screen->view == HELP ? TABLE : HELP);
        break;
    case 's':
        watch->order = (watch->order + 1) % CLI_ORDERS;
        cli_watch_arrange(watch);
        break;
    case '/':
        screen->is_typing = 1;
        break;
    case 27:
        watch->filter[0] = '\0';
        cli_watch_arrange(watch);
        break;
    case 'm':
        cli_watch_mark(watch);
        snprintf(screen->message, sizeof screen->message, "marked: growth counts from here");
        break;
    case ' ':
        screen->is_frozen = !screen->is_frozen;
        break;
    case 'w':
        write_snapshot(screen);
        break;
    case 't':
        cli_feed_turn(screen->feed, screen->message, sizeof screen->message);
        break;
    case '\n':
    case KEY_ENTER:
    case KEY_LEFT:
    case KEY_RIGHT:
        turn_branch(screen);
        break;
    default:
        break;
    }
}

/* ---- the loop ---- */

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void look(struct screen *screen)
{
    struct ta_snapshot *snapshot = cli_feed_next(screen->feed);
    uint64_t resident = cli_feed_resident(screen->feed);
    if (resident > 0)
        screen->watch->resident = resident;
    if (snapshot != NULL && cli_watch_take(screen->watch, snapshot, resident) != CLI_OK)
        snprintf(screen->message, sizeof screen->message, "%s", ta_error_text());
    if (screen->feed->rests)
        cli_watch_rest(screen->watch);
}

static void loop(struct screen *screen, double seconds)
{
    double next = 0;
    while (!screen->is_done) {
        double now = now_seconds();
        if (now >= next) {
            if (!screen->is_frozen)
                look(screen);
            /* A look that takes long is not taken again at once. */
            double took = now_seconds() - now;
            next = now + took + (took > seconds / 2 ? 2 * took : seconds);
        }
        draw(screen);
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        int wait = (int)((next - now_seconds()) * 1000);
        poll(&input, 1, wait > 0 ? wait + 1 : 0);
        if (input.revents & (POLLHUP | POLLERR))
            screen->is_done = 1;
        for (int key = getch(); key != ERR; key = getch())
            press(screen, key);
    }
}

/* A terminal knows its size, these only what it was where they were exported; curses believes them. */
static void forget_exported_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return;
    unsetenv("COLUMNS");
    unsetenv("LINES");
}

int cli_watch_show(struct cli_watch *watch, struct cli_feed *feed, double seconds)
{
    struct screen screen = {.watch = watch, .feed = feed};
    setlocale(LC_CTYPE, "");
    forget_exported_size();
    if (initscr() == NULL)
        return cli_error("watch: this terminal cannot be used");
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    const char *no_color = getenv("NO_COLOR");
    if (has_colors() && (no_color == NULL || *no_color == '\0')) {
        start_color();
        use_default_colors();
        init_pair(RED, COLOR_RED, -1);
        init_pair(GREEN, COLOR_GREEN, -1);
        init_pair(BLUE, COLOR_CYAN, -1);
    }
    loop(&screen, seconds);
    endwin();
    free(screen.turned);
    free(screen.branch_hashes);
    free(screen.branch_nodes);
    return CLI_OK;
}
