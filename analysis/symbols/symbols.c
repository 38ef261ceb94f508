/* symbols.c: deals the addresses of a snapshot out to workers and puts their answers together.
 *
 *     addresses ──sorted, equal ones once──► lookups ──one job per module, large modules in slices──► workers
 *     workers: open the module, look up, keep answers in tables of their own ──in order of the addresses──► tables
 *
 * A worker that finds a module with very much debug information leaves slices of its addresses to the others. Workers
 * share nothing but the list of jobs and the count of what is done. The tables are put together
 * afterwards by one thread, in the order of the addresses asked for, so that they are the same for any number of
 * workers. Callable from any thread; two symbolizers at once are fine. */
#include "analysis/symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analysis/analysis_domain.h"
#include "analysis/symbols/symbols_dwarf.h"
#include "analysis/symbols/symbols_module.h"
#include "analysis/symbols/symbols_text.h"
#include "base/atomics.h"

#define THREADS_MAX      64
#define THREADS_DEFAULT  8
#define SLICE_ADDRESSES  4096        /* addresses that pay for a second reader of a module … */
#define SLICE_BYTES      (8u << 20)  /* … when it has so much debug information for each reader */
#define WORKER_STACK     (64u << 20) /* demangling and deep trees recurse; only pages that are touched count */
#define WORKER_ROOM      (64u << 20) /* one that leaves less to the others is not started */
#define NO_LOOKUP        UINT32_MAX
#define PROGRESS_STEP_NS 50000000

struct job {
    uint32_t module;
    uint32_t first, count; /* of the lookups */
    uint32_t slices_max;   /* it may be cut into as many */
    struct ta__found_symbols found;
    enum ta__symbolizer_state state;
    char reason[160];
    uint32_t *global; /* for each string that the worker found: its number in the result + 1 */
};

/* An address asked for, on its way to the answer. */
struct request {
    uint64_t address;
    uint32_t module;
    uint32_t index; /* in the caller's list */
    int interrupted;
};

struct run {
    const struct ta__symbolizer *symbolizer;
    struct request *requests;
    struct ta__lookup *lookups;
    uint32_t *lookup_of; /* by the caller's index */
    uint32_t *job_of;    /* by lookup */
    struct job *jobs;    /* room for all slices from the start: they never move */
    uint32_t lookup_count;
    size_t done;

    pthread_mutex_t lock;        /* guards what follows */
    pthread_cond_t jobs_changed; /* there are more, or there will be none */
    pthread_cond_t one_finished; /* a worker has nothing left to do */
    uint32_t job_count, next_job;
    unsigned busy, finished; /* workers */
};

struct module_state {
    enum ta__symbolizer_state state;
    char reason[160];
};

struct ta__symbolizer {
    struct ta__symbolizer_options options;
    char *debug_path;
    struct ta__symbolizer_module *modules;
    struct module_state *states;
    uint32_t module_count;

    struct ta__text_table text;
    struct ta__view_symbol *symbols;
    struct ta__view_symbol_range *ranges;
};

struct ta__symbolizer *ta__symbolizer_open(const struct ta__symbolizer_options *options,
                                           const struct ta__symbolizer_module *modules, uint32_t module_count)
{
    struct ta__symbolizer *symbolizer = calloc(1, sizeof *symbolizer);
    if (symbolizer == NULL)
        return NULL;
    if (options != NULL)
        symbolizer->options = *options;
    symbolizer->module_count = module_count;
    symbolizer->modules = calloc((size_t)module_count + 1, sizeof *symbolizer->modules);
    symbolizer->states = calloc((size_t)module_count + 1, sizeof *symbolizer->states);
    if (symbolizer->options.debug_path != NULL)
        symbolizer->debug_path = strdup(symbolizer->options.debug_path);
    if (symbolizer->modules == NULL || symbolizer->states == NULL ||
        (symbolizer->options.debug_path != NULL && symbolizer->debug_path == NULL)) {
        ta__symbolizer_close(symbolizer);
        return NULL;
    }
    if (module_count > 0)
        memcpy(symbolizer->modules, modules, module_count * sizeof *modules);
    return symbolizer;
}

static void drop_result(struct ta__symbolizer *symbolizer)
{
    ta__text_table_destroy(&symbolizer->text);
    free(symbolizer->symbols);
    free(symbolizer->ranges);
    symbolizer->symbols = NULL;
    symbolizer->ranges = NULL;
}

void ta__symbolizer_close(struct ta__symbolizer *symbolizer)
{
    if (symbolizer == NULL)
        return;
    drop_result(symbolizer);
    free(symbolizer->debug_path);
    free(symbolizer->modules);
    free(symbolizer->states);
    free(symbolizer);
}

enum ta__symbolizer_state ta__symbolizer_module_state(const struct ta__symbolizer *symbolizer, uint32_t index,
                                                      const char **reason)
{
    if (reason != NULL)
        *reason = symbolizer->states[index].reason;
    return symbolizer->states[index].state;
}

/* ---- work ---- */

/* The answer without a usable file: the path of the module alone, or nothing, and the address as it is. */
static void answer_without_file(struct job *job, struct ta__lookup *lookups, const char *path)
{
    struct ta__view_symbol symbol = {.flags = TA__SYMBOL_NO_LINES};
    symbol.file = ta__text_intern_z(&job->found.text, path);
    for (uint32_t i = 0; i < job->count; i++) {
        symbol.function =
            ta__text_intern_place(&job->found.text, job->module != 0 ? symbol.file : 0, lookups[i].address);
        ta__found_symbols_add(&job->found, &lookups[i], symbol);
    }
}

/* Leaves a part of the job to other workers when the module is large enough for several to read it. Compressed debug
 * information is not cut: each reader would have to decompress all of it, which takes longer than reading. */
static void share(struct run *run, struct job *job, uint64_t debug_bytes)
{
    uint64_t slice_bytes =
        run->symbolizer->options.slice_bytes != 0 ? run->symbolizer->options.slice_bytes : SLICE_BYTES;
    uint64_t worth = debug_bytes / slice_bytes;
    uint32_t slices = worth < job->slices_max ? (uint32_t)worth : job->slices_max;
    if (slices < 2)
        return;
    uint32_t first = job->first, count = job->count;
    pthread_mutex_lock(&run->lock);
    for (uint32_t slice = 1; slice < slices; slice++) {
        uint32_t from = first + (uint32_t)((uint64_t)count * slice / slices);
        uint32_t to = first + (uint32_t)((uint64_t)count * (slice + 1) / slices);
        for (uint32_t i = from; i < to; i++)
            run->job_of[i] = run->job_count;
        run->jobs[run->job_count++] = (struct job){.module = job->module, .first = from, .count = to - from};
    }
    job->count = count / slices;
    pthread_cond_broadcast(&run->jobs_changed);
    pthread_mutex_unlock(&run->lock);
}

static void do_job(struct run *run, struct job *job)
{
    struct ta__lookup *lookups = run->lookups + job->first;
    ta__found_symbols_create(&job->found);
    if (job->found.text.failed) {
        job->found.failed = 1;
        ta__add_relaxed(&run->done, job->count);
        return;
    }
    if (job->module == 0) {
        answer_without_file(job, lookups, "<unknown>");
        ta__add_relaxed(&run->done, job->count);
        return;
    }

    const struct ta__symbolizer_module *recorded = &run->symbolizer->modules[job->module - 1];
    const char *path = recorded->path != NULL && *recorded->path != '\0' ? recorded->path : "<unknown>";
    struct ta__elf_module module;
    ta__elf_module_open(&module, recorded, run->symbolizer->debug_path);
    share(run, job, module.debug_bytes);
    if (module.dwfl != NULL) {
        ta__dwarf_lookup(&module, path, lookups, job->count, &job->found, &run->done);
    } else {
        answer_without_file(job, lookups, path);
        ta__add_relaxed(&run->done, job->count);
    }
    job->found.failed = job->found.failed || job->found.text.failed || module.no_memory;
    job->state = module.state;
    memcpy(job->reason, module.reason, sizeof job->reason);
    ta__elf_module_close(&module);
}

static void *work(void *context)
{
    TA__OWN_DOMAIN;
    struct run *run = context;
    pthread_mutex_lock(&run->lock);
    for (;;) {
        while (run->next_job == run->job_count && run->busy > 0)
            pthread_cond_wait(&run->jobs_changed, &run->lock);
        if (run->next_job == run->job_count)
            break;
        struct job *job = &run->jobs[run->next_job++];
        run->busy++;
        pthread_mutex_unlock(&run->lock);
        do_job(run, job);
        pthread_mutex_lock(&run->lock);
        run->busy--;
        pthread_cond_broadcast(&run->jobs_changed);
    }
    run->finished++;
    pthread_cond_signal(&run->one_finished);
    pthread_mutex_unlock(&run->lock);
    return NULL;
}

static unsigned thread_count(const struct run *run)
{
    unsigned threads = run->symbolizer->options.threads;
    if (threads == 0) {
        cpu_set_t set;
        int processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        threads = processors < THREADS_DEFAULT ? (unsigned)processors : THREADS_DEFAULT;
    }
    return threads < THREADS_MAX ? threads : THREADS_MAX;
}

static void wait_for(struct run *run, unsigned workers)
{
    const struct ta__symbolizer_options *options = &run->symbolizer->options;
    pthread_mutex_lock(&run->lock);
    while (run->finished < workers) {
        if (options->progress == NULL) {
            pthread_cond_wait(&run->one_finished, &run->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += PROGRESS_STEP_NS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        pthread_cond_timedwait(&run->one_finished, &run->lock, &until);
        pthread_mutex_unlock(&run->lock);
        size_t done = ta__load_relaxed(&run->done);
        options->progress(options->progress_context, done < run->lookup_count ? done : run->lookup_count,
                          run->lookup_count);
        pthread_mutex_lock(&run->lock);
    }
    pthread_mutex_unlock(&run->lock);
}

/* Every job is done, even when only some workers, or none, can be started. */
static void work_in_parallel(struct run *run)
{
    pthread_t workers[THREADS_MAX];
    unsigned wanted = thread_count(run), started = 0, useful = 0;
    for (uint32_t i = 0; i < run->job_count; i++)
        useful += run->jobs[i].slices_max;
    wanted = wanted < useful ? wanted : useful;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK);
    sigset_t all, before; /* handlers of the program that asks do not run on threads that it does not know */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started < wanted && ta__has_room(WORKER_STACK + (started + 1) * WORKER_ROOM) &&
           pthread_create(&workers[started], &attributes, work, run) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);

    if (started == 0)
        work(run);
    else
        wait_for(run, started);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i], NULL);
}

/* ---- before ---- */

static uint64_t pc_of(const struct request *request)
{
    return request->address - !request->interrupted;
}

/* By module, then by place: a byte at a time, beginning with what weighs least; bytes that are the same everywhere are
 * passed over. */
#define KEY_BYTES 13
static uint8_t key_byte(const struct request *request, unsigned place)
{
    if (place == 0)
        return request->interrupted ? 1 : 0;
    uint64_t word = place <= 8 ? pc_of(request) >> (8 * (place - 1)) : request->module >> (8 * (place - 9));
    return (uint8_t)(word & 0xFF);
}

static int sort_requests(struct run *run, uint32_t count)
{
    struct request *from = run->requests, *to = malloc(((size_t)count + 1) * sizeof *to);
    if (to == NULL)
        return -1;
    for (unsigned place = 0; place < KEY_BYTES && count > 0; place++) {
        uint32_t starts[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < count; i++)
            starts[key_byte(&from[i], place)]++;
        if (starts[key_byte(&from[0], place)] == count)
            continue;
        for (unsigned i = 0; i < 256; i++) {
            uint32_t size = starts[i];
            starts[i] = sum;
            sum += size;
        }
        for (uint32_t i = 0; i < count; i++)
            to[starts[key_byte(&from[i], place)]++] = from[i];
        struct request *swap = from;
        from = to;
        to = swap;
    }
    run->requests = from;
    free(to);
    return 0;
}

static int same_request(const struct request *a, const struct request *b)
{
    return a->module == b->module && a->address == b->address && a->interrupted == b->interrupted;
}

/* Equal requests become one lookup. */
static int make_lookups(struct run *run, uint32_t count)
{
    if (sort_requests(run, count) != 0)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        const struct request *request = &run->requests[i];
        if (i == 0 || !same_request(request - 1, request)) {
            uint64_t base = request->module != 0 ? run->symbolizer->modules[request->module - 1].load_base : 0;
            struct ta__lookup *lookup = &run->lookups[run->lookup_count];
            lookup->address = request->address - base;
            lookup->pc = lookup->address - !request->interrupted;
            run->job_of[run->lookup_count++] = request->module; /* for now */
        }
        run->lookup_of[request->index] = run->lookup_count - 1;
    }
    free(run->requests);
    run->requests = NULL;
    return 0;
}

/* One per module. */
static int make_jobs(struct run *run)
{
    unsigned threads = thread_count(run);
    uint32_t modules = 0, slices = 0;
    for (uint32_t i = 0; i < run->lookup_count; i++)
        modules += i == 0 || run->job_of[i] != run->job_of[i - 1];
    run->jobs = calloc((size_t)modules + run->lookup_count / SLICE_ADDRESSES + 1, sizeof *run->jobs);
    if (run->jobs == NULL)
        return -1;
    for (uint32_t first = 0, end; first < run->lookup_count; first = end) {
        uint32_t module = run->job_of[first];
        for (end = first; end < run->lookup_count && run->job_of[end] == module; end++)
            run->job_of[end] = run->job_count;
        slices = (end - first) / SLICE_ADDRESSES;
        run->jobs[run->job_count++] = (struct job){
            .module = module,
            .first = first,
            .count = end - first,
            .slices_max = slices == 0        ? 1
                          : slices < threads ? slices
                                             : threads,
        };
    }
    return 0;
}

/* ---- after ---- */

static uint32_t global_string(struct ta__symbolizer *symbolizer, struct job *job, uint32_t id)
{
    if (id != 0 && job->global[id] == 0) {
        const struct ta__view_string *string = &job->found.text.strings[id];
        job->global[id] = ta__text_intern(&symbolizer->text, string->text, string->length);
    }
    return id != 0 ? job->global[id] : 0;
}

/* Puts the answers together in the order of the caller's list. */
static int merge(struct run *run, struct ta__symbolizer *symbolizer, uint32_t count, struct ta__symbols *result)
{
    size_t total = 0;
    for (uint32_t i = 0; i < run->job_count; i++) {
        struct job *job = &run->jobs[i];
        total += job->found.count;
        job->global = calloc((size_t)job->found.text.count + 1, sizeof *job->global);
        if (job->found.failed || job->global == NULL)
            return ENOMEM;
        if (job->module != 0) {
            struct module_state *state = &symbolizer->states[job->module - 1];
            state->state = job->state;
            memcpy(state->reason, job->reason, sizeof state->reason);
        }
    }
    if (total > UINT32_MAX)
        return ENOMEM;
    symbolizer->symbols = malloc((total + 1) * sizeof *symbolizer->symbols);
    symbolizer->ranges = malloc(((size_t)count + 1) * sizeof *symbolizer->ranges);
    struct ta__view_symbol_range *merged = calloc((size_t)run->lookup_count + 1, sizeof *merged);
    if (symbolizer->symbols == NULL || symbolizer->ranges == NULL || merged == NULL) {
        free(merged);
        return ENOMEM;
    }

    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = run->lookup_of[i];
        if (index == NO_LOOKUP) {
            symbolizer->ranges[i] = (struct ta__view_symbol_range){0, 0};
            continue;
        }
        const struct ta__lookup *lookup = &run->lookups[index];
        struct job *job = &run->jobs[run->job_of[index]];
        if (merged[index].count == 0) {
            merged[index] = (struct ta__view_symbol_range){used, lookup->count};
            for (uint32_t j = 0; j < lookup->count; j++) {
                struct ta__view_symbol symbol = job->found.symbols[lookup->first + j];
                symbol.file = global_string(symbolizer, job, symbol.file);
                symbol.function = global_string(symbolizer, job, symbol.function);
                symbol.raw_name = global_string(symbolizer, job, symbol.raw_name);
                symbolizer->symbols[used++] = symbol;
            }
        }
        symbolizer->ranges[i] = merged[index];
    }
    free(merged);
    if (symbolizer->text.failed)
        return ENOMEM;
    *result = (struct ta__symbols){
        .strings = symbolizer->text.strings,
        .symbols = symbolizer->symbols,
        .ranges = symbolizer->ranges,
        .string_count = symbolizer->text.count,
        .symbol_count = used,
    };
    return 0;
}

int ta__symbolizer_run(struct ta__symbolizer *symbolizer, const struct ta__symbolizer_address *addresses,
                       uint32_t count, struct ta__symbols *result)
{
    memset(result, 0, sizeof *result);
    drop_result(symbolizer);
    memset(symbolizer->states, 0, symbolizer->module_count * sizeof *symbolizer->states);
    for (uint32_t i = 0; i < count; i++) {
        if (addresses[i].module > symbolizer->module_count && addresses[i].module != TA__SYMBOLIZER_SKIP)
            return EINVAL;
    }

    int error = ENOMEM;
    size_t room = (size_t)count + 1;
    struct run run = {.symbolizer = symbolizer};
    pthread_mutex_init(&run.lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&run.one_finished, &monotonic);
    pthread_cond_init(&run.jobs_changed, NULL);
    pthread_condattr_destroy(&monotonic);
    ta__text_table_create(&symbolizer->text);
    run.requests = malloc(room * sizeof *run.requests);
    run.lookups = calloc(room, sizeof *run.lookups);
    run.lookup_of = malloc(room * sizeof *run.lookup_of);
    run.job_of = malloc(room * sizeof *run.job_of);
    if (run.requests == NULL || run.lookups == NULL || run.lookup_of == NULL || run.job_of == NULL)
        goto end;

    uint32_t wanted = 0;
    for (uint32_t i = 0; i < count; i++) {
        run.lookup_of[i] = NO_LOOKUP;
        if (addresses[i].module != TA__SYMBOLIZER_SKIP)
            run.requests[wanted++] =
                (struct request){addresses[i].address, addresses[i].module, i, addresses[i].interrupted};
    }
    if (make_lookups(&run, wanted) != 0 || make_jobs(&run) != 0)
        goto end;
    work_in_parallel(&run);
    error = merge(&run, symbolizer, count, result);
    if (error == 0 && symbolizer->options.progress != NULL)
        symbolizer->options.progress(symbolizer->options.progress_context, run.lookup_count, run.lookup_count);

end:
    for (uint32_t i = 0; i < run.job_count; i++) {
        ta__found_symbols_destroy(&run.jobs[i].found);
        free(run.jobs[i].global);
    }
    free(run.jobs);
    free(run.requests);
    free(run.lookups);
    free(run.lookup_of);
    free(run.job_of);
    pthread_cond_destroy(&run.one_finished);
    pthread_cond_destroy(&run.jobs_changed);
    pthread_mutex_destroy(&run.lock);
    return error;
}

int ta__symbolize_view(const struct ta__view *view, const struct ta__symbolizer_options *options,
                       struct ta__symbolizer **symbolizer, struct ta__symbols *symbols)
{
    int error = ENOMEM;
    struct ta__symbolizer_module *modules = calloc((size_t)view->module_count + 1, sizeof *modules);
    struct ta__symbolizer_address *addresses = calloc((size_t)view->frame_count + 1, sizeof *addresses);
    *symbolizer = NULL;
    if (modules == NULL || addresses == NULL)
        goto end;
    for (uint32_t i = 0; i < view->module_count; i++) {
        const struct ta__view_module *module = &view->modules[i];
        modules[i] = (struct ta__symbolizer_module){view->strings[module->path].text, module->build_id,
                                                    module->build_id_length, module->load_base};
    }
    for (uint32_t i = 0; i < view->frame_count; i++) {
        const struct ta__view_frame *frame = &view->frames[i];
        addresses[i].address = frame->address;
        addresses[i].module = frame->kind == TA__FRAME_ADDRESS ? frame->module : TA__SYMBOLIZER_SKIP;
    }
    *symbolizer = ta__symbolizer_open(options, modules, view->module_count);
    if (*symbolizer)
        error = ta__symbolizer_run(*symbolizer, addresses, view->frame_count, symbols);

end:
    free(modules);
    free(addresses);
    return error;
}
