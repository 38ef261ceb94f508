/* watch.h: what the files of tracealloc watch share.
 *
 *     feed (a recording that grows, the channel of a process, its memory) ─► model: rows, rates, what it was at the mark ─► screen: curses */
#ifndef TA_ANALYSIS_CLI_WATCH_H
#define TA_ANALYSIS_CLI_WATCH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <tracealloc/export.h>

/* ---- feed: where snapshots come from ------------------------------------------------------------------------------ */

struct cli_feed {
    char *path;     /* of the recording; NULL: there is none, the process is asked for snapshots */
    int is_outside; /* it cannot be asked: its memory is read */
    int channel;    /* of the process; -1 = none */
    int asked;      /* file of the last snapshot that was asked for; -1 = none */
    int rests;      /* the process says that it is not traced */
    pid_t process;  /* 0 = not known */
    pid_t runner;   /* tracealloc run, when we started it; 0 = we did not */
    char *said;     /* where the program's output goes, when we started it */
    char *name;     /* for people */
    char *trouble;  /* why there is nothing new; NULL = all is well */
    uint64_t time;  /* of the last snapshot that was handed out */
    uint64_t bytes; /* of the file at that time */
    int is_over;    /* the process has ended */
};

/* FILE, PID, or a program to be started (`command` not NULL). CLI_OK, or another status after a message. */
int cli_feed_open(struct cli_feed *feed, const char *operand, char **command);
/* A snapshot that is newer than the one before, for ta_snapshot_free; NULL when there is none. */
struct ta_snapshot *cli_feed_next(struct cli_feed *feed);
/* The one that was handed out last, once more; NULL with ta_error_text. */
struct ta_snapshot *cli_feed_again(const struct cli_feed *feed);
/* Starts or stops tracing in the process; `said` tells what came of it. */
void cli_feed_turn(struct cli_feed *feed, char *said, size_t room);
/* Bytes of the process in memory now; 0 = not known. */
uint64_t cli_feed_resident(const struct cli_feed *feed);
/* Leaves the program as it is, and says where what it wrote is. */
void cli_feed_close(struct cli_feed *feed);

/* ---- model: what is shown ----------------------------------------------------------------------------------------- */

enum { CLI_COURSE = 64 }; /* values that a course remembers */

/* The last values, the oldest first. */
struct cli_course {
    double values[CLI_COURSE];
    size_t count;
};

struct cli_watch_row {
    struct ta_frame frame; /* texts are its own */
    uint64_t size, count, calls, bytes;
    uint64_t mark_size, mark_calls; /* at the mark */
    double calls_per_second;
    struct cli_course course;
    uint32_t generation; /* of the sample that it was in last */
};

struct cli_watch_domain {
    uint32_t number;
    char name[64];
    uint64_t size, count, calls, peak, limit;
};

enum cli_watch_order { CLI_BY_LIVE, CLI_BY_GROWTH, CLI_BY_RATE, CLI_BY_CALLS, CLI_ORDERS };

struct cli_watch {
    struct cli_watch_row *rows;
    size_t count, capacity;
    uint32_t *slots; /* row + 1, by frame */
    size_t slot_count;
    uint32_t *shown; /* rows that the filter keeps, in order */
    size_t shown_count;
    struct cli_watch_domain *domains;
    size_t domain_count;
    struct ta_calltree *tree;
    struct ta_own_rules *rules; /* patterns of the user and the project, and what was learned */
    long learned_from;          /* so many traces */
    int has_learned;            /* with this sample: rows that are new were under other names before */
    uint32_t generation;
    uint64_t epoch; /* of the last sample: in another one all counts began again */

    uint64_t size, blocks, peak, calls, bytes, resident; /* of the last sample */
    uint64_t time, mark_time;                            /* ns since 1970 */
    uint64_t mark_size, mark_calls;
    double calls_per_second, bytes_per_second, growth_per_second;
    struct cli_course live;
    uint64_t sampled; /* mean bytes between samples; 0 = everything */

    enum cli_watch_order order;
    char filter[128];
};

/* Takes a snapshot in and frees it. CLI_OK, or CLI_TROUBLE: ta_error_text says why. */
int cli_watch_take(struct cli_watch *watch, struct ta_snapshot *snapshot, uint64_t resident);
/* Nothing is counted at present: there are no rates. */
void cli_watch_rest(struct cli_watch *watch);
/* What was before the first sample, from the entries of a recording. */
void cli_watch_recall(struct cli_watch *watch, const char *path);
/* From now on growth counts from here. */
void cli_watch_mark(struct cli_watch *watch);
/* After a change of order or filter. */
void cli_watch_arrange(struct cli_watch *watch);
void cli_watch_free(struct cli_watch *watch);

/* ---- screen ------------------------------------------------------------------------------------------------------- */

/* Until q: CLI_OK. `seconds` between two looks. */
int cli_watch_show(struct cli_watch *watch, struct cli_feed *feed, double seconds);

#endif
