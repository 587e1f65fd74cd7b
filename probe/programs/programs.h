/* The BPF programs (calls.bpf.c, kernel_events.bpf.c, hooks.bpf.c, ioctls.bpf.c, device_files.bpf.c,
 * fences.bpf.c): loads them, attaches them to functions, and manages their maps. */
#ifndef CT_PROBE_PROGRAMS_H
#define CT_PROBE_PROGRAMS_H

#include "calls.h"
#include "hook_rule.h"
#include "targets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Methods of attaching to the entries and returns of functions, from best to worst. */
enum ct_method {
    CT_METHOD_SESSION, /* one program for both, all functions in one link (Linux 6.13) */
    CT_METHOD_MULTI,   /* one program each, all functions in one link (Linux 6.6) */
    CT_METHOD_EVENTS,  /* one program each, a perf event for each function */
    CT_METHOD_COUNT
};
extern const char *const ct_method_names[CT_METHOD_COUNT];

struct ct_programs;

/* Selects which of the optional programs are loaded. */
struct ct_program_set {
    bool kernel_events; /* record events of the kernel inside calls, on the whole machine at once */
    const pid_t *pid;   /* the only processes that have such events; NULL: any process may have them */
    size_t pids;
    pid_t children; /* record only the processes that this process starts from now on; 0: not limited */
    bool hooks;
    bool machine; /* machine-wide hooks */
    bool ioctls;  /* record system calls on the devices of the kernel driver */
    bool fences;  /* record DMA fences; the kernel must have their tracepoints */
};
/* Loads the programs for the best method that works with this kernel, starting with the method `best`. Tests
 * each method on a function of this process. Returns 0, or the -errno of the last attempt, with libbpf's
 * reason in `why`. */
enum { CT_WHY_BYTES = 512 };
int ct_programs_load(enum ct_method best, struct ct_program_set optional, struct ct_programs **programs,
                     char why[CT_WHY_BYTES]);
/* Reports why ct_programs_load() has failed, from its results. Returns the exit status. */
int ct_programs_refused(int error, const char *why);
void ct_programs_unload(struct ct_programs *programs);

enum ct_method ct_programs_method(const struct ct_programs *programs);
/* The time that the probe adds to a call (medians, measured when the programs were loaded). */
struct ct_probe_cost {
    uint64_t seen_ns;  /* the part between the two times that are recorded */
    uint64_t whole_ns; /* the whole time by which the caller is delayed */
};
struct ct_probe_cost ct_programs_cost(const struct ct_programs *programs);

/* Returns all loaded programs, in the order of the object files that contain them. */
struct bpf_object;
const struct bpf_object *ct_programs_object(const struct ct_programs *programs);
/* Returns how many records have been written of the given kernel event. `event` must be below
 * CT_EVENT_COUNT. */
uint64_t ct_programs_recorded(const struct ct_programs *programs, uint32_t event);

/* Returns whether the process is one of those that --children records. */
bool ct_programs_follow(const struct ct_programs *programs, pid_t pid);

/* Returns the descriptor of the notices, a ring buffer of struct ct_probe_notice. */
int ct_programs_notices(const struct ct_programs *programs);

/* ---- functions ---- */

/* Sets the shape of a function's arguments. Must be called before the programs are attached to the
 * function. */
void ct_programs_set_shape(struct ct_programs *programs, uint32_t number, const struct ct_probe_shape *shape);

/* The links to the functions of one file. */
struct ct_links;
/* Attaches to functions of the file, either in all processes that map the file now or later (`pid` is 0), or
 * only in the process `pid`. Returns 0 or -errno; -EINTR after Ctrl-C. */
int ct_programs_attach(struct ct_programs *programs, const char *path, const struct ct_targets *targets,
                       pid_t pid, struct ct_links **links);
void ct_links_close(struct ct_links *links);
/* Closes several of them at the same time. To close one, the kernel waits about 50 ms until no processor runs
 * its program, and waits for several at once. */
void ct_links_close_all(struct ct_links **links, size_t count);

/* ---- hooks ---- */

struct bpf_program;
enum ct_hook_end {
    CT_HOOK_ENTRY,
    CT_HOOK_RETURN,
    CT_HOOK_AT_ENTRY,
    CT_HOOK_POINT,
    CT_HOOK_POINT_IN_MACHINE,
    CT_HOOK_ENTRY_IN_MACHINE,
    CT_HOOK_ENDS
};
/* Returns the program for one end of hooked functions (entry or return), for functions hooked at entry only,
 * or for tracepoints. For the last two, there are also programs that record the whole machine. */
const struct bpf_program *ct_programs_hook(const struct ct_programs *programs, enum ct_hook_end end);
/* Returns the rule with the given number (below CT_HOOK_RULES), which is in the memory of the BPF programs.
 * The caller must not change the rule while a program that refers to it is attached. */
struct ct_hook_rule *ct_programs_rule(const struct ct_programs *programs, uint32_t number);

/* Sets the address that kernel functions return to while a program awaits their return. */
void ct_programs_set_trampoline(struct ct_programs *programs, uint64_t address);

/* ---- requests to the kernel driver ---- */

/* The tracepoints of system calls, in the order of attachment. For each system call, the return precedes the
 * entry, since a return whose entry was not seen has no effect. */
enum ct_system_call_point {
    CT_IOCTL_LEAVE,
    CT_IOCTL_ENTER,
    CT_OPENAT_LEAVE,
    CT_OPENAT_ENTER,
    CT_MMAP_LEAVE,
    CT_MMAP_ENTER,
    CT_CLOSE_LEAVE,
    CT_CLOSE_ENTER,
    CT_SYSTEM_CALL_POINTS
};
const struct bpf_program *ct_programs_system_call(const struct ct_programs *programs,
                                                  enum ct_system_call_point point);
/* Sets the device numbers of the kernel driver, and its release (ct_ioctl_release()). If `release` is 0, the
 * BPF programs use the version that a process last passed to the driver. */
void ct_programs_set_driver(struct ct_programs *programs, const struct ct_probe_devices *devices,
                            uint32_t release);

/* ---- fences ---- */

/* The tracepoints of fences, in the order of attachment. Ends precede beginnings, since an end whose
 * beginning was not seen has no effect. */
enum ct_fence_point {
    CT_FENCE_SIGNALED,
    CT_FENCE_DESTROY,
    CT_FENCE_WAIT_LEAVE,
    CT_FENCE_WAIT_ENTER,
    CT_FENCE_INIT,
    CT_FENCE_EMIT,
    CT_FENCE_POINTS
};
/* Returns the program for the tracepoint. Attach it with ct_tracepoint_attach() if its type is
 * BPF_PROG_TYPE_TRACEPOINT, or otherwise with bpf_program__attach(). */
const struct bpf_program *ct_programs_fence(const struct ct_programs *programs, enum ct_fence_point point);

/* ---- processes ---- */

/* Registers the hook's visit to a process. `area` is the address of CT_AREA_CODE in the process. If the
 * process is not recorded, it takes a spare channel when the visit is over, and is recorded from then on.
 * Returns 0 or -errno. */
int ct_programs_set_visit(struct ct_programs *programs, pid_t pid, uint64_t area);
/* Returns the time when the process called exec() for its current program, in nanoseconds of CLOCK_MONOTONIC,
 * or 0 if the process had no channel at that time. */
uint64_t ct_programs_executed_ns(const struct ct_programs *programs, pid_t pid);

#endif
