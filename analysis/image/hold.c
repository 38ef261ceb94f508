/* hold.c: holds a live process still, by ptrace, for as long as its memory is copied.
 *
 * Threads are seized, which does not disturb them, then interrupted: each stops where it is, system calls begin anew
 * when it goes on. Nothing is written into the process. Should this program die meanwhile, the kernel lets all go. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/arrays.h"
#include "analysis/failure.h"
#include "analysis/image/target.h"

struct ta__held_thread {
    pid_t tid;
    int is_stopped;
    int pending; /* a signal that arrived before the stop, to be handed over when it goes on */
};

struct hold {
    struct ta__held_thread *threads;
    size_t count, capacity;
    uint64_t since_ns;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int is_known(const struct hold *hold, pid_t tid)
{
    for (size_t i = 0; i < hold->count; i++)
        if (hold->threads[i].tid == tid)
            return 1;
    return 0;
}

int ta__target_has_ended(const struct ta__target *target, pid_t tid)
{
    char path[64], state = '\0';
    snprintf(path, sizeof path, "/proc/%u/task/%d/stat", target->pid, tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 1;
    char text[512] = "";
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *name_end = length > 0 ? strrchr(text, ')') : NULL;
    if (name_end != NULL && name_end[1] == ' ')
        state = name_end[2];
    return state == 'Z' || state == 'X';
}

/* 1: seized now. 0: it is gone. -1: it may not be. */
static int seize(const struct ta__target *target, struct hold *hold, pid_t tid)
{
    if (ta__grow(&hold->threads, &hold->capacity, hold->count + 1, sizeof *hold->threads) != 0)
        return -1;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        int error = errno, is_gone = error == ESRCH || ta__target_has_ended(target, tid);
        errno = error;
        return is_gone ? 0 : -1;
    }
    hold->threads[hold->count++] = (struct ta__held_thread){.tid = tid};
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 || errno == ESRCH ? 1 : -1;
}

/* All threads that are there now; new ones are made by old ones, so that a round without a new one is the last. */
static int seize_all(struct ta__target *target, struct hold *hold)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/task", target->pid);
    for (int is_new = 1; is_new;) {
        DIR *folder = opendir(path);
        if (folder == NULL)
            return ta__fail("process %u: there is no such process", target->pid);
        is_new = 0;
        int result = 0;
        for (struct dirent *entry; result >= 0 && (entry = readdir(folder)) != NULL;) {
            pid_t tid = (pid_t)atoi(entry->d_name);
            if (tid <= 0 || is_known(hold, tid))
                continue;
            result = seize(target, hold, tid);
            is_new |= result > 0;
        }
        int error = errno;
        closedir(folder);
        if (result < 0 && error == EPERM)
            return ta__fail(
                "process %u cannot be held still: it is being debugged, or not yours, or ptrace is restricted "
                "(/proc/sys/kernel/yama/ptrace_scope); --no-pause looks without",
                target->pid);
        if (result < 0)
            return ta__fail("process %u cannot be held still: %s", target->pid, strerror(error));
    }
    return 0;
}

/* Waits until the thread stands still; one that ends meanwhile counts as gone. A signal that is about to be delivered
 * stops it too: it is kept for later. */
static void await(struct ta__held_thread *thread)
{
    int status;
    while (!thread->is_stopped) {
        pid_t got = waitpid(thread->tid, &status, __WALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != thread->tid || WIFEXITED(status) || WIFSIGNALED(status)) {
            thread->tid = 0;
            return;
        }
        thread->is_stopped = 1;
        if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP)
            thread->pending = WSTOPSIG(status);
    }
}

static void read_name(struct ta__target *target, struct ta__target_thread *thread)
{
    char path[64], name[sizeof thread->name + 1] = "";
    snprintf(path, sizeof path, "/proc/%u/task/%u/comm", target->pid, thread->tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    size_t length = fread(name, 1, sizeof thread->name, file);
    fclose(file);
    length -= length > 0 && name[length - 1] == '\n';
    memcpy(thread->name, name, length);
}

static void read_registers(struct ta__target_thread *thread)
{
    uint64_t words[64];
    struct iovec vector = {words, sizeof words};
    if (ptrace(PTRACE_GETREGSET, (pid_t)thread->tid, (void *)NT_PRSTATUS, &vector) == 0)
        ta__target_set_registers(thread, words, vector.iov_len);
}

static void forget_hold(struct ta__target *target)
{
    struct hold *hold = target->hold;
    free(hold->threads);
    free(hold);
    target->hold = NULL;
    target->is_held = 0;
}

int ta__target_hold(struct ta__target *target)
{
    if (target->is_core || target->is_held)
        return 0;
    struct hold *hold = ta__new_array(1, sizeof *hold);
    if (hold == NULL)
        return -1;
    target->hold = hold;
    target->is_held = 1;
    hold->since_ns = now_ns();
    int result = seize_all(target, hold);
    for (size_t i = 0; result == 0 && i < hold->count; i++)
        await(&hold->threads[i]);
    target->thread_count = 0;
    for (size_t i = 0; result == 0 && i < hold->count; i++) {
        struct ta__target_thread *thread = hold->threads[i].tid != 0 ? ta__target_add_thread(target) : NULL;
        if (thread == NULL)
            continue;
        thread->tid = (uint32_t)hold->threads[i].tid;
        read_registers(thread);
        read_name(target, thread);
    }
    if (result == 0 && target->thread_count == 0)
        result = ta__fail("process %u has ended", target->pid);
    ta__target_forget(target);
    if (result != 0)
        ta__target_release(target);
    return result;
}

static struct ta__held_thread *held(struct ta__target *target, uint32_t tid)
{
    struct hold *hold = target->hold;
    for (size_t i = 0; hold != NULL && i < hold->count; i++)
        if ((uint32_t)hold->threads[i].tid == tid)
            return &hold->threads[i];
    return NULL;
}

int ta__target_nudge(struct ta__target *target, size_t index, unsigned microseconds)
{
    struct ta__target_thread *thread = &target->threads[index];
    struct ta__held_thread *one = held(target, thread->tid);
    const struct timespec moment = {0, (long)microseconds * 1000};
    if (one == NULL || !one->is_stopped || one->pending != 0 || ptrace(PTRACE_CONT, one->tid, NULL, NULL) != 0)
        return -1;
    one->is_stopped = 0;
    nanosleep(&moment, NULL);
    ptrace(PTRACE_INTERRUPT, one->tid, NULL, NULL);
    await(one);
    if (one->tid == 0)
        return -1;
    read_registers(thread);
    ta__target_forget(target);
    return 0;
}

/* A thread that has not stopped cannot be detached from: it stops first. */
void ta__target_release(struct ta__target *target)
{
    struct hold *hold = target->hold;
    if (hold == NULL)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        struct ta__held_thread *thread = &hold->threads[i];
        if (thread->tid != 0)
            await(thread);
        if (thread->tid != 0)
            ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(intptr_t)thread->pending);
    }
    target->held_ns += now_ns() - hold->since_ns;
    forget_hold(target);
}
