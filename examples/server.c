/* server.c: a small server with a leak, for trying tracealloc on. It knows nothing of tracealloc.
 *
 *     server [REQUESTS [MICROSECONDS]]     answers so many made-up requests, with a pause between two
 *
 * Every request gets a session; sessions are kept in a cache and the oldest is thrown out. Throwing one out forgets to
 * free its log line: 100 bytes per request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE_SIZE 64

struct session {
    char *user;
    char *log_line;
    char *page;
    size_t page_length;
};

static struct session *cache[CACHE_SIZE];
static unsigned next_place;

static char *format_log_line(unsigned number, const char *user)
{
    char *line = malloc(100);
    if (line != NULL)
        snprintf(line, 100, "request %u of %s", number, user);
    return line;
}

static char *render_page(const char *user, size_t *length)
{
    size_t capacity = 64;
    char *page = malloc(capacity);
    *length = 0;
    for (int row = 0; page != NULL && row < 20; row++) {
        char text[64];
        size_t size = (size_t)snprintf(text, sizeof text, "<li>%s, item %d</li>\n", user, row);
        if (*length + size > capacity) {
            char *larger = realloc(page, capacity *= 2);
            if (larger == NULL)
                break;
            page = larger;
        }
        memcpy(page + *length, text, size);
        *length += size;
    }
    return page;
}

static void drop_session(struct session *session)
{
    if (session == NULL)
        return;
    free(session->user);
    free(session->page);
    free(session); /* and session->log_line? */
}

static size_t handle_request(unsigned number)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return 0;
    char user[32];
    snprintf(user, sizeof user, "user-%u", number % 1000);
    session->user = strdup(user);
    session->log_line = format_log_line(number, user);
    session->page = render_page(user, &session->page_length);

    drop_session(cache[next_place]);
    cache[next_place] = session;
    next_place = (next_place + 1) % CACHE_SIZE;
    return session->page_length;
}

int main(int argc, char **argv)
{
    unsigned requests = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;
    long microseconds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    const struct timespec pause = {microseconds / 1000000, microseconds % 1000000 * 1000};
    size_t bytes = 0;
    for (unsigned number = 0; number < requests; number++) {
        bytes += handle_request(number);
        if (microseconds > 0)
            nanosleep(&pause, NULL);
    }
    printf("%u requests, %zu bytes sent\n", requests, bytes);
    return 0;
}
