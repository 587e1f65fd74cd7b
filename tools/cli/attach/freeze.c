#include "freeze.h"

#include "clock.h"
#include "proc_file.h"
#include "room.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has(const struct ct_freeze *freeze, pid_t thread)
{
    size_t i = freeze->count;
    while (i > 0 && freeze->threads[i - 1].thread != thread)
        i--;
    return i > 0;
}

/* If the first thread exits, it stays listed until all other threads have exited. */
static bool has_ended(pid_t pid, pid_t thread)
{
    char file[32], text[256];
    snprintf(file, sizeof(file), "task/%d/stat", (int)thread);
    const char *state = ct_proc_read(pid, file, text, sizeof(text)) == 0 ? strrchr(text, ')') : NULL;
    return !state || strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
}

static int interrupt(struct ct_freeze *freeze, pid_t thread)
{
    if (!ct_make_room(&freeze->threads, freeze->count, &freeze->room, sizeof(*freeze->threads)))
        return -ENOMEM;
    struct ct_stop *stop = &freeze->threads[freeze->count++];
    *stop = (struct ct_stop){ .memory = freeze->memory };
    const int error = ct_stop_interrupt(stop, thread);
    stop->is_gone = error != 0;
    return error == -EPERM && !has_ended(freeze->memory->pid, thread) ? -EPERM : 0;
}

/* Interrupts threads that have not been interrupted yet. A thread may have started more threads before it
 * stopped. */
static int interrupt_new(struct ct_freeze *freeze)
{
    char path[64];
    int error = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)freeze->memory->pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return -ESRCH;
    for (struct dirent *task; !error && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && !has(freeze, thread))
            error = interrupt(freeze, thread);
    }
    closedir(tasks);
    return error;
}

/* Returns whether there is a thread, and all threads belong to the process. They were listed before they were
 * stopped, so that another process may have reused the id of an exited thread. */
static bool are_same(const struct ct_freeze *freeze)
{
    const struct ct_stop *any = NULL;
    for (size_t i = 0; i < freeze->count; i++) {
        char path[64];
        const struct ct_stop *stop = &freeze->threads[i];
        if (stop->is_gone)
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)freeze->memory->pid, (int)stop->thread);
        if (access(path, F_OK) != 0)
            return false;
        any = stop;
    }
    return any && ct_memory_take_from(freeze->memory, any->thread);
}

int ct_freeze_begin(struct ct_freeze *freeze, const struct ct_memory *memory, uint64_t patience_ns)
{
    *freeze = (struct ct_freeze){ .memory = memory, .began_ns = ct_monotonic_ns() };
    const uint64_t until_ns = freeze->began_ns + patience_ns;
    int error;
    size_t waited_for = 0;
    do {
        error = interrupt_new(freeze);
        const size_t interrupted = freeze->count;
        if (error || waited_for == interrupted)
            break;
        for (; !error && waited_for < interrupted; waited_for++) {
            struct ct_stop *stop = &freeze->threads[waited_for];
            if (!stop->is_gone && ct_stop_await(stop, until_ns) != 0 && !stop->is_gone)
                error = -ETIMEDOUT;
        }
    } while (!error);
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
    freeze->took_ns = ct_monotonic_ns() - freeze->began_ns;
    free(freeze->threads);
    freeze->threads = NULL;
    freeze->count = 0;
}
