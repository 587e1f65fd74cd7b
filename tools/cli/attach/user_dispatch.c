#include "user_dispatch.h"

#include "stop.h"
#include "tracer.h"

#include "clock.h"
#include "proc_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_NS  UINT64_C(100000000)
#define PROCESS_NS UINT64_C(2000000000)

static bool has_handler(pid_t pid)
{
    char text[4096];
    uint64_t caught = 0;
    const char *at = ct_proc_read(pid, "status", text, sizeof(text)) == 0 ? strstr(text, "\nSigCgt:") : NULL;
    return at && sscanf(at, "\nSigCgt: %" SCNx64, &caught) == 1 && (caught >> (SIGSYS - 1) & 1) != 0;
}

/* Returns -EPERM if the thread may not be traced. */
static int look_at(const struct ct_memory *memory, pid_t thread)
{
    struct ct_stop stop = { .memory = memory };
    int error = !ct_thread_runs_code(memory->pid, thread) || ct_stop_seize(&stop, thread) != 0
                    ? -EAGAIN
                    : ct_stop_interrupt(&stop);
    error = error ? error : ct_stop_await(&stop, ct_monotonic_ns() + THREAD_NS);
    if (error)
        return error == -EPERM ? -EPERM : false;
    const bool does = ct_tracer_sees_dispatch(thread);
    stop.is_gone = !ct_memory_take_from(memory, thread); /* leave the registers of another program alone */
    ct_stop_end(&stop);
    return does;
}

static int look(void *data)
{
    const struct ct_memory *memory = *(const struct ct_memory **)data;
    const uint64_t until_ns = ct_monotonic_ns() + PROCESS_NS;
    int found = false;
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)memory->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && !found && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        if (thread > 0 && ct_monotonic_ns() < until_ns)
            found = look_at(memory, thread);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

bool ct_process_dispatches(const struct ct_memory *memory)
{
    return has_handler(memory->pid) && ct_tracer_run(look, &memory, sizeof(memory)) > 0;
}
