#include "freeze.h"

#include "tracer.h"

#include "clock.h"
#include "room.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Marks the thread as listed, and returns whether it was known. The kernel lists new threads last, so that
 * the search usually ends at `expected`, the index after that of the previous thread. */
static bool mark(struct ct_freeze *freeze, pid_t thread, size_t *expected)
{
    size_t i = *expected;
    while (i < freeze->count && freeze->threads[i].thread != thread)
        i++;
    if (i == freeze->count) {
        i = 0;
        while (i < *expected && freeze->threads[i].thread != thread)
            i++;
        if (i == *expected)
            return false;
    }
    *expected = i + 1;
    freeze->is_listed[i] = true;
    return true;
}

static int seize(struct ct_freeze *freeze, pid_t thread)
{
    size_t room = freeze->room;
    if (!ct_make_room(&freeze->threads, freeze->count, &freeze->room, sizeof(*freeze->threads)) ||
        !ct_make_room(&freeze->is_listed, freeze->count, &room, sizeof(*freeze->is_listed)))
        return -ENOMEM;
    freeze->is_listed[freeze->count] = true;
    struct ct_stop *stop = &freeze->threads[freeze->count++];
    *stop = (struct ct_stop){ .memory = freeze->memory };
    if (!ct_thread_runs_code(freeze->memory->pid, thread))
        stop->is_gone = true;
    else
        ct_stop_seize(stop, thread);
    stop->thread = thread;
    return 0;
}

/* Seizes threads that have not been seized yet. A thread may have started more threads before it stopped. */
static int seize_new(struct ct_freeze *freeze)
{
    char path[64];
    int error = 0;
    size_t expected = 0;
    for (size_t i = 0; i < freeze->count; i++)
        freeze->is_listed[i] = false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)freeze->memory->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return -ESRCH;
    for (struct dirent *task; !error && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && !mark(freeze, thread, &expected)) {
            error = seize(freeze, thread);
            expected = freeze->count;
        }
    }
    closedir(tasks);
    return error;
}

/* Interrupts the threads from `first` on, which takes less time than seizing them. */
static int interrupt(struct ct_freeze *freeze, size_t first)
{
    int error = 0;
    for (size_t i = first; !error && i < freeze->count; i++) {
        struct ct_stop *stop = &freeze->threads[i];
        const int refusal = stop->is_gone ? 0 : ct_stop_interrupt(stop);
        stop->is_gone |= refusal != 0;
        error = refusal == -EPERM && ct_thread_runs_code(freeze->memory->pid, stop->thread) ? -EPERM : 0;
    }
    return error;
}

static int await(struct ct_freeze *freeze, size_t first, uint64_t until_ns)
{
    for (size_t i = first; i < freeze->count; i++) {
        struct ct_stop *stop = &freeze->threads[i];
        if (!stop->is_gone && ct_stop_await(stop, until_ns) != 0 && !stop->is_gone)
            return -ETIMEDOUT;
    }
    return 0;
}

/* Returns whether there is a thread, and all threads belong to the process. The last listing was made after
 * they had stopped, so that another process cannot have reused the id of an exited thread since then. */
static bool are_same(const struct ct_freeze *freeze)
{
    const struct ct_stop *any = NULL;
    for (size_t i = 0; i < freeze->count; i++) {
        if (freeze->threads[i].is_gone)
            continue;
        if (!freeze->is_listed[i])
            return false;
        any = &freeze->threads[i];
    }
    return any && ct_memory_take_from(freeze->memory, any->thread);
}

int ct_freeze_begin(struct ct_freeze *freeze, const struct ct_memory *memory, uint64_t patience_ns)
{
    *freeze = (struct ct_freeze){ .memory = memory };
    size_t stopped = 0;
    int error = seize_new(freeze);
    freeze->began_ns = ct_monotonic_ns();
    ct_tracer_hurry(true);
    while (!error && stopped < freeze->count) {
        const size_t first = stopped;
        error = interrupt(freeze, first);
        stopped = freeze->count;
        if (!error)
            error = await(freeze, first, ct_monotonic_ns() + patience_ns);
        if (!error)
            error = seize_new(freeze);
    }
    if (!error && !are_same(freeze))
        error = -ESRCH;
    if (error)
        ct_freeze_end(freeze);
    return error;
}

void ct_freeze_end(struct ct_freeze *freeze)
{
    for (size_t i = 0; i < freeze->count; i++)
        ct_stop_end(&freeze->threads[i]);
    ct_tracer_hurry(false);
    freeze->took_ns = ct_monotonic_ns() - freeze->began_ns;
    free(freeze->threads);
    free(freeze->is_listed);
    freeze->threads = NULL;
    freeze->is_listed = NULL;
    freeze->count = 0;
}
