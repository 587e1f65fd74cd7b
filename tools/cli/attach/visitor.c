#include "visitor.h"

#include "tracer.h"

#include "fault_signals.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- stops ---- */

/* The work that the tracer does while it has a thread stopped. */
struct act {
    struct ct_visitor visitor; /* input and output */
    int (*in)(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act);
    enum ct_stop_for what_for;
    pid_t thread; /* in: the thread to try first, or 0; out: the thread that was stopped */
    bool wants_library;
};

static int stop_and_act(void *data)
{
    struct act *act = data;
    struct ct_visitor *visitor = &act->visitor;
    struct ct_stop stop;
    int error = ct_stop_begin(&stop, visitor->memory, act->what_for, act->thread);
    if (error)
        return error;
    ct_tracer_hurry(true);
    act->thread = stop.thread;
    error = act->in(visitor, &stop, act);
    visitor->fault = stop.fault;
    ct_stop_end(&stop);
    ct_tracer_hurry(false);
    visitor->stops++;
    visitor->stopped_ns += stop.took_ns;
    visitor->longest_ns = stop.took_ns > visitor->longest_ns ? stop.took_ns : visitor->longest_ns;
    return error;
}

static int act_within(struct ct_visitor *visitor, struct act *act)
{
    act->visitor = *visitor;
    const int error = ct_tracer_run(stop_and_act, act, sizeof(*act));
    *visitor = act->visitor;
    return error;
}

/* ---- steps ---- */

void ct_visitor_begin(struct ct_visitor *visitor, const struct ct_memory *memory,
                      const struct ct_library *library)
{
    *visitor = (struct ct_visitor){ .memory = memory, .hook = library };
    ct_area_find(&visitor->area, memory);
}

/* Returns an address for the results of system calls. Between visits, nothing uses the area's stack. */
static uint64_t scratch(const struct ct_area *area)
{
    return area->address + CT_AREA_STACK;
}

/* Closes the library's file descriptor in the process, if it still refers to the library's file. */
static int close_in_stop(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act)
{
    struct ct_area_data *data = &visitor->area.data;
    struct stat status;
    (void)act;
    if (data->file < 0 || ct_area_stat(stop, data->file, scratch(&visitor->area), &status) != 0 ||
        status.st_ino != data->file_inode || status.st_dev != data->file_device)
        return 0;
    ct_stop_call(stop, SYS_close, (uint64_t)data->file, 0, 0, 0, 0, 0);
    data->file = -1;
    return ct_area_set(&visitor->area, CT_DATA_FILE, UINT32_MAX) ? 0 : -ESRCH;
}

/* Records the file's inode, because the program may close the descriptor and reuse its number. The record is
 * kept in the process, so that the next command finds it if this command is killed. */
static int note_file(struct ct_visitor *visitor, int file, const struct stat *status)
{
    struct ct_area_data *data = &visitor->area.data;
    data->file = file;
    data->file_inode = status->st_ino;
    data->file_device = status->st_dev;
    return ct_area_write(&visitor->area) ? 0 : -ESRCH;
}

static int prepare_in_stop(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act)
{
    struct ct_area *area = &visitor->area;
    struct stat status;
    int error = area->address ? close_in_stop(visitor, stop, act) : ct_area_make(area, stop);
    if (error || !act->wants_library)
        return error;
    const int file = ct_area_file(stop, CT_LIBRARY_NAME, visitor->hook->bytes, visitor->hook->count,
                                  scratch(area), CT_AREA_BYTES - CT_AREA_STACK, &status);
    ct_stop_call(stop, SYS_madvise, scratch(area), CT_AREA_BYTES - CT_AREA_STACK, MADV_DONTNEED, 0, 0, 0);
    visitor->file_thread = stop->thread;
    return file < 0 ? file : note_file(visitor, file, &status);
}

/* Reads only the name of the file, because the process may have replaced the file by any other. */
bool ct_visitor_has_file(const struct ct_visitor *visitor)
{
    static const char name[] = "/memfd:" CT_LIBRARY_NAME;
    char path[64], file[sizeof(name)];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/fd/%d", (int)visitor->memory->pid,
             (int)visitor->file_thread, (int)visitor->area.data.file);
    const ssize_t bytes = readlink(path, file, sizeof(file) - 1);
    return bytes == (ssize_t)sizeof(file) - 1 && memcmp(file, name, sizeof(file) - 1) == 0;
}

static void fill(struct ct_visitor *visitor, const struct ct_visitor_plan *plan, uint64_t hook)
{
    struct ct_area_data *data = &visitor->area.data;
    data->state = CT_AREA_IDLE;
    data->answer = data->left = CT_VISIT_OPEN;
    data->grant = CT_AREA_GRANT_NONE;
    data->pid = plan->inner_pid;
    data->hook = hook;
    data->hook_offset = visitor->hook->visit_offset;
    data->find_dlopen = plan->find_dlopen;
    data->find_dlerror = plan->find_dlerror;
    data->find_cancel = plan->find_cancel;
    data->find_errno = plan->find_errno;
    data->find_cancel_type = plan->find_cancel_type;
    data->find_atfork = plan->find_atfork;
    data->asked_stack = 0;
    data->kept_out = ~(CT_FAULT_SIGNALS | CT_SETXID_SIGNAL);
    snprintf(data->path, sizeof(data->path), "%s", "");
    memset(data->why, 0, sizeof(data->why));
    data->visit = *plan->visit;
    data->made_list = plan->made_list;
    data->made_count = plan->made_count;
    data->made_in = plan->visit->slot_count > 0;
}

/* Chooses a path for the library that no earlier visit has used, because the loader identifies a library by
 * its path. An earlier visit may have loaded a different build through the same descriptor. Returns false
 * after too many visits. */
static bool name_library(struct ct_visitor *visitor)
{
    static const char own[] = "/memfd:" CT_LIBRARY_NAME;
    struct ct_area_data *data = &visitor->area.data;
    size_t length = (size_t)snprintf(data->path, sizeof(data->path), CT_VISIT_PATH);
    for (size_t i = 0; i < visitor->memory->count && length < sizeof(data->path); i++) {
        const struct ct_mapping *mapping = &visitor->memory->mappings[i];
        if (mapping->offset == 0 && strncmp(mapping->path, own, sizeof(own) - 1) == 0)
            length += (size_t)snprintf(data->path + length, sizeof(data->path) - length, "./");
    }
    if (length < sizeof(data->path))
        length += (size_t)snprintf(data->path + length, sizeof(data->path) - length, "%d", data->file);
    return length < sizeof(data->path);
}

static int write_pairs(struct ct_visitor *visitor, const struct ct_driver_slots *slots)
{
    struct ct_area_pair *pairs = calloc(slots->count + 1, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;
    for (size_t i = 0; i < slots->count; i++)
        pairs[i] =
            (struct ct_area_pair){ .slot = slots->slots[i].slot, .function = slots->slots[i].function };
    int error = visitor->area.address ? ct_area_write_pairs(&visitor->area, pairs, slots->count) : -ENOENT;
    free(pairs);
    return error;
}

static int prepare_data(struct ct_visitor *visitor, const struct ct_visitor_plan *plan, uint64_t hook)
{
    fill(visitor, plan, hook);
    if (!hook && !name_library(visitor))
        return -ENAMETOOLONG;
    const int error = write_pairs(visitor, plan->slots);
    return error || ct_area_write(&visitor->area) ? error : -ESRCH;
}

int ct_visitor_prepare(struct ct_visitor *visitor, const struct ct_visitor_plan *plan)
{
    const uint64_t hook = ct_library_find(visitor->hook, visitor->memory);
    struct act act = { .in = prepare_in_stop, .what_for = CT_STOP_FOR_CODE, .wants_library = hook == 0 };
    int error = write_pairs(visitor, plan->slots);
    if (error == -EBUSY) /* the area was made for a driver loaded earlier, so map a new one */
        visitor->area.address = 0;
    if (error == -EBUSY || error == -ENOENT || act.wants_library)
        error = act_within(visitor, &act);
    if (!error)
        error = prepare_data(visitor, plan, hook);
    if (error && act.wants_library && visitor->area.address) {
        act.in = close_in_stop;
        act_within(visitor, &act);
    }
    return error;
}

static int disarm_in_stop(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act)
{
    const int error = ct_area_disarm(&visitor->area, stop);
    if (error)
        return error;
    if (!ct_area_read(&visitor->area))
        return -ESRCH;
    return visitor->area.data.state == CT_AREA_IDLE ? close_in_stop(visitor, stop, act) : 0;
}

static int arm_in_stop(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act)
{
    (void)act;
    return ct_area_arm(&visitor->area, stop);
}

int ct_visitor_arm(struct ct_visitor *visitor)
{
    struct act act = { .in = arm_in_stop, .what_for = CT_STOP_FOR_CODE };
    const int error = act_within(visitor, &act);
    /* Arming may have failed halfway. Stop a thread once more to remove the thunks that were already
     * installed. */
    if (error == -EFAULT)
        ct_area_set(&visitor->area, CT_DATA_STATE, CT_AREA_ARMED);
    if (error && error != -ESRCH)
        ct_visitor_disarm(visitor);
    return error;
}

bool ct_visitor_look(struct ct_visitor *visitor)
{
    return ct_area_read(&visitor->area);
}

bool ct_visitor_rearm(struct ct_visitor *visitor)
{
    const uint64_t none = 0;
    visitor->asked_ns = 0;
    return ct_memory_write(visitor->memory, visitor->area.address + CT_AREA_DATA + CT_DATA_ASKED_STACK, &none,
                           sizeof(none)) &&
           ct_area_set(&visitor->area, CT_DATA_GRANT, CT_AREA_GRANT_NONE) &&
           ct_area_set(&visitor->area, CT_DATA_STATE, CT_AREA_ARMED);
}

int ct_visitor_disarm(struct ct_visitor *visitor)
{
    if (visitor->area.address && visitor->area.data.state == CT_AREA_ASKING)
        ct_visitor_rearm(visitor);
    struct act act = { .in = disarm_in_stop, .what_for = CT_STOP_FOR_CODE };
    return act_within(visitor, &act);
}

static int leave_in_stop(struct ct_visitor *visitor, struct ct_stop *stop, struct act *act)
{
    (void)act;
    if (ct_stop_is_filtered(stop) && !ct_area_set(&visitor->area, CT_DATA_REQUEST, CT_VISIT_LEAVE_CONFINED))
        return -ESRCH;
    return ct_area_leave(&visitor->area, stop);
}

/* Each stop is short. Between two stops, the program runs for longer than it was stopped. */
int ct_visitor_leave(struct ct_visitor *visitor, bool is_confined)
{
    enum { PAUSES_PER_STOP = 2, PAUSE_MOST_NS = 500000000 };
    struct act act = { .in = leave_in_stop, .what_for = CT_STOP_FOR_FUNCTION };
    visitor->area.data.visit.request = is_confined ? CT_VISIT_LEAVE_CONFINED : CT_VISIT_LEAVE;
    for (;;) {
        const uint64_t before_ns = visitor->stopped_ns;
        visitor->area.data.left = CT_VISIT_OPEN;
        if (!ct_area_write(&visitor->area))
            return -ESRCH;
        const int error = act_within(visitor, &act);
        if (error || !ct_area_read(&visitor->area))
            return error ? error : -ESRCH;
        if (visitor->area.data.left != CT_VISIT_MORE)
            return 0;
        const uint64_t pause_ns = PAUSES_PER_STOP * (visitor->stopped_ns - before_ns);
        nanosleep(&(struct timespec){ .tv_nsec = pause_ns < PAUSE_MOST_NS ? (long)pause_ns : PAUSE_MOST_NS },
                  NULL);
    }
}
