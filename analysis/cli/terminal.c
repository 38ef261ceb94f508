/* terminal.c: see terminal.h. */
#include "analysis/cli/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "analysis/cli/cli.h"
#include "analysis/cli/project.h"
#include "analysis/cli/whole_file.h"

static enum { AUTO, ALWAYS, NEVER } when = AUTO;

int cli_set_color(const char *word)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(words[i], word) == 0) {
            when = i;
            return 0;
        }
    return -1;
}

int cli_on_terminal(void)
{
    static int answer = -1;
    if (answer < 0)
        answer = isatty(STDOUT_FILENO);
    return answer || when == ALWAYS;
}

size_t cli_width(void)
{
    if (!cli_on_terminal())
        return SIZE_MAX;
    struct winsize window;
    const char *columns = getenv("COLUMNS");
    long width = columns != NULL ? strtol(columns, NULL, 10) : 0;
    if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0)
        width = window.ws_col;
    if (width <= 0)
        width = 80;
    return width < 40 ? 40 : (size_t)width;
}

static int has_colors(void)
{
    if (when != AUTO)
        return when == ALWAYS;
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return cli_on_terminal() && (no_color == NULL || *no_color == '\0') &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *cli_style(enum cli_style style)
{
    static const char *const sequences[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[31m",
                                            "\033[32m", "\033[33m", "\033[36m"};
    return has_colors() ? sequences[style] : "";
}

static int has_unicode(void)
{
    static int answer = -1;
    if (answer < 0) {
        setlocale(LC_CTYPE, "");
        answer = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    }
    return answer;
}

int cli_has_bars(void)
{
    return cli_on_terminal() && cli_width() >= 100;
}

void cli_print_bar(double share, size_t cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    double length = (share < 0 ? 0 : share > 1 ? 1 : share) * (double)cells;
    size_t full = (size_t)length, used = full;
    fputs(cli_style(CLI_CYAN), stdout);
    for (size_t i = 0; i < full; i++)
        fputs(has_unicode() ? "█" : "#", stdout);
    size_t part = (size_t)((length - (double)full) * 8);
    if (has_unicode() && part > 0 && full < cells) {
        fputs(eighths[part], stdout);
        used++;
    }
    fputs(cli_style(CLI_PLAIN), stdout);
    for (size_t i = used; i < cells; i++)
        putchar(' ');
}

void cli_graph_text(const double *values, size_t count, char *text, size_t size)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[] = {" ", "_", ".", "-", "~", "=", "+", "*", "#"};
    int is_utf8 = cli_on_terminal() && has_unicode();
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = values[i] > largest ? values[i] : largest;
    *text = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t level = largest <= 0 || values[i] <= 0 ? 0 : 1 + (size_t)(values[i] / largest * 7.999);
        strncat(text, is_utf8 ? blocks[level] : ascii[level], size - strlen(text) - 1);
    }
}

/* ---- text that fits ---- */

static int is_below(const char *path, const char *folder, size_t length)
{
    return length > 1 && strncmp(path, folder, length) == 0 && path[length] == '/';
}

void cli_short_path(const char *path, char *text, size_t size)
{
    const char *root = cli_project_root(), *home = getenv("HOME");
    if (is_below(path, root, strlen(root)))
        snprintf(text, size, "%s", path + strlen(root) + 1);
    else if (cli_on_terminal() && home != NULL && is_below(path, home, strlen(home)))
        snprintf(text, size, "~%s", path + strlen(home));
    else
        snprintf(text, size, "%s", path);
}

static int starts_character(char byte)
{
    return ((unsigned char)byte & 0xC0) != 0x80;
}

size_t cli_text_width(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++)
        width += (size_t)starts_character(*text);
    return width;
}

static void print_clean(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        putchar(cli_on_terminal() && (byte < 0x20 || byte == 0x7F) ? '?' : byte);
    }
}

void cli_print_fitted(const char *text, size_t columns, enum cli_cut cut)
{
    size_t width = cli_text_width(text), length = strlen(text);
    if (width <= columns || columns < 4) {
        print_clean(text, length);
        return;
    }
    const char *dots = has_unicode() ? "…" : "...";
    size_t kept = columns - (has_unicode() ? 1 : 3);
    if (cut == CLI_CUT_RIGHT) {
        size_t end = 0;
        for (size_t seen = 0; end < length; end++)
            if (starts_character(text[end]) && seen++ == kept)
                break;
        print_clean(text, end);
        fputs(dots, stdout);
        return;
    }
    size_t start = length;
    for (size_t seen = 0; start > 0 && seen < kept;)
        seen += (size_t)starts_character(text[--start]);
    const char *slash = strchr(text + start, '/'); /* rather a whole component than half a name */
    if (slash != NULL && slash - (text + start) < 24)
        start = (size_t)(slash - text);
    fputs(dots, stdout);
    print_clean(text + start, length - start);
}

char *cli_without_arguments(const char *name)
{
    char *text = cli_allocate(2 * strlen(name) + 1, 1), *to = text;
    size_t depth = 0;
    for (const char *at = name; *at != '\0'; at++) {
        int is_list = *at == '<' && at > name && strchr(":<- ", at[-1]) == NULL &&
                      (at - name < 8 || memcmp(at - 8, "operator", 8) != 0);
        if (depth > 0 ? *at == '<' : is_list) {
            if (depth++ == 0)
                to = stpcpy(to, has_unicode() ? "<…>" : "<>");
        } else if (depth == 0) {
            *to++ = *at;
        } else if (*at == '>' && at[-1] != '-') {
            depth--;
        }
    }
    return text;
}

enum { DOTS_MOST = 3 };

/* "a::b::C::f" from the first "::" on behind which it fits with dots before it, or from its class; the name itself where
 * it is short of namespaces or more than one name. */
static const char *without_namespaces(const char *name, size_t columns)
{
    const char *from = name, *end = name + strcspn(name, "( ");
    unsigned parts = 0;
    for (const char *at = name; (at = strstr(at, "::")) != NULL && at < end; at += 2)
        parts++;
    while (*end != ' ' && parts > 2 - (from != name) && cli_text_width(from) > columns) { /* Class::f stays */
        columns -= from == name && columns > DOTS_MOST ? DOTS_MOST : 0;
        from = strstr(from == name ? name : from + 2, "::");
        parts--;
    }
    return from;
}

void cli_print_name(const char *name, size_t columns)
{
    if (cli_text_width(name) <= columns) {
        cli_print_fitted(name, columns, CLI_CUT_RIGHT);
        return;
    }
    char *shorter = cli_without_arguments(name);
    const char *from = without_namespaces(shorter, columns), *dots = has_unicode() ? "…" : "...";
    if (from != shorter && columns > DOTS_MOST) {
        fputs(dots, stdout);
        columns -= cli_text_width(dots);
    }
    cli_print_fitted(from, columns, CLI_CUT_RIGHT);
    free(shorter);
}

char *cli_class_and_function(const char *name)
{
    char *text = cli_without_arguments(name);
    const char *list = has_unicode() ? "<…>" : "<>", *from = text;
    for (char *at = text; (at = strstr(at, list)) != NULL;)
        memmove(at, at + strlen(list), strlen(at + strlen(list)) + 1);
    for (const char *end = text + strcspn(text, "( "), *at = text, *last = text; (at = strstr(at, "::")) != NULL;
         at += 2)
        if (at < end) {
            from = last;
            last = at + 2;
        }
    char *core = cli_text("%s", from);
    free(text);
    return core;
}

/* Up to where the next piece of a line begins. */
static size_t piece_length(const char *text, size_t length)
{
    int depth = 0;
    for (size_t i = 0; i + 1 < length; i++) {
        depth += strchr("<([", text[i]) != NULL ? 1 : strchr(">)]", text[i]) != NULL && depth > 0 ? -1 : 0;
        if (depth == 0 && (text[i] == ',' || (i > 0 && text[i] == ' ')) && text[i + 1] == ' ' &&
            text[i - (i > 0)] != ' ')
            return i + (text[i] == ',');
    }
    return length;
}

static void print_wrapped_line(const char *line, size_t length, size_t room)
{
    size_t indent = strspn(line, " "), column = indent, done = indent;
    printf("%*s", (int)indent, "");
    while (done < length) {
        size_t blanks = done > indent ? strspn(line + done, " ") : 0, taken;
        taken = piece_length(line + done + blanks, length - done - blanks);
        char *piece = cli_text("%.*s", (int)taken, line + done + blanks);
        if (done > indent && column + blanks + cli_text_width(piece) > room) {
            printf("\n%*s", (int)indent + 4, "");
            column = indent + 4;
        } else {
            printf("%*s", (int)blanks, "");
            column += blanks;
        }
        fputs(piece, stdout);
        column += cli_text_width(piece);
        done += blanks + taken;
        free(piece);
    }
    putchar('\n');
}

void cli_print_wrapped(const char *text)
{
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        print_wrapped_line(text, length, cli_width());
    }
}

size_t cli_print_path(const char *path, size_t columns)
{
    const char *dots = has_unicode() ? "…" : "...", *from = path;
    size_t width = cli_text_width(path);
    while (width > columns) {
        const char *slash = strchr(*from == '/' ? from + 1 : from, '/');
        if (slash == NULL)
            break;
        from = slash;
        width = cli_text_width(from) + cli_text_width(dots);
    }
    if (from != path)
        fputs(dots, stdout);
    print_clean(from, strlen(from));
    return columns == SIZE_MAX ? SIZE_MAX : width < columns ? columns - width : 0;
}

/* ---- progress ---- */

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    _Atomic(const char *) label;
    const char *labels[8]; /* of what began inside of what; the innermost one is shown */
    unsigned depth;
    atomic_size_t done, total;
    atomic_int is_drawn;
    int is_running, is_over;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void draw(unsigned round)
{
    static const char spinner[] = "|/-\\";
    size_t done = atomic_load(&progress.done), total = atomic_load(&progress.total);
    char line[160];
    int length;
    if (total > 0) {
        char bar[21];
        size_t full = done >= total ? 20 : done * 20 / total;
        memset(bar, '.', 20);
        memset(bar, '#', full);
        bar[20] = '\0';
        length =
            snprintf(line, sizeof line, "\r%s [%s] %zu of %zu\033[K", atomic_load(&progress.label), bar, done, total);
    } else {
        length = snprintf(line, sizeof line, "\r%s %c\033[K", atomic_load(&progress.label), spinner[round % 4]);
    }
    atomic_store(&progress.is_drawn, 1);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

void cli_progress_wipe(void)
{
    if (atomic_exchange(&progress.is_drawn, 0))
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
}

static void *show(void *unused)
{
    struct timespec next;
    unsigned round = 0;
    clock_gettime(CLOCK_REALTIME, &next);
    next.tv_sec += 1;
    pthread_mutex_lock(&progress.lock);
    while (!progress.is_over) {
        if (pthread_cond_timedwait(&progress.ended, &progress.lock, &next) == 0)
            continue;
        draw(round++);
        next.tv_nsec += 200000000;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
    }
    pthread_mutex_unlock(&progress.lock);
    cli_progress_wipe();
    return unused;
}

static void start(void)
{
    cli_watch_signals();
    progress.is_over = 0;
    progress.is_running = pthread_create(&progress.thread, NULL, show, NULL) == 0;
}

void cli_progress_begin(const char *label)
{
    if (!isatty(STDERR_FILENO) || progress.depth == sizeof progress.labels / sizeof *progress.labels)
        return;
    progress.labels[progress.depth++] = label;
    atomic_store(&progress.label, label);
    cli_progress_set(NULL, 0, 0);
    if (progress.depth == 1)
        start();
}

void cli_progress_begin_output(void)
{
    if (!isatty(STDOUT_FILENO))
        cli_progress_begin("writing");
}

void cli_progress_set(void *user, size_t done, size_t total)
{
    (void)user;
    atomic_store(&progress.done, done);
    atomic_store(&progress.total, total);
}

void cli_progress_end(void)
{
    if (progress.depth > 0 && --progress.depth > 0) {
        atomic_store(&progress.label, progress.labels[progress.depth - 1]);
        cli_progress_set(NULL, 0, 0);
        return;
    }
    if (!progress.is_running)
        return;
    pthread_mutex_lock(&progress.lock);
    progress.is_over = 1;
    pthread_cond_signal(&progress.ended);
    pthread_mutex_unlock(&progress.lock);
    pthread_join(progress.thread, NULL);
    progress.is_running = 0;
}
