/* The probed processes, each with its channel and its writer. */
#ifndef CT_PROBE_PROBED_H
#define CT_PROBE_PROBED_H

#include "companion.h"
#include "functions.h"
#include "hook_segment.h"
#include "mapped_drivers.h"
#include "program.h"
#include "programs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_probed {
    struct ct_probed *next;
    pid_t pid;
    uid_t uid;
    gid_t gid;
    struct ct_program program;
    uint64_t exec_ns;
    struct ct_channel channel;
    bool is_skipped;             /* the hook records it, so it has no writer */
    bool is_companion;           /* the hook records its calls (companion.h) */
    bool is_arrivals;            /* the probe itself; its channel carries the events of the machine */
    bool has_executed;           /* another program, which has the process's id now */
    bool needs_writer;           /* the last one was killed */
    struct ct_hook_segment hook; /* of the hook that visits it or has visited it */
    pid_t writer;                /* 0: it has ended */
    int link;                    /* to that writer (writer_link.h), or -1 */
    unsigned writers;            /* number of writers that were started for it */
    /* Descriptors that hold the locks of segments, or -1. The daemon knows the segment of `known_lock`, if it
     * knows any. `new_lock` is the lock of a later segment. */
    int known_lock, new_lock;
};

struct ct_probed_set {
    struct ct_programs *programs;
    struct ct_function_table *functions;
    struct ct_probed *first;
};

/* Starts the arrivals writer (writer.h), before any process is added. It also writes the events of the
 * machine if `machine` is not NULL, and then owns that channel. Returns 0 or -errno. */
int ct_probed_begin(struct ct_probed_set *set, const struct ct_channel *machine);
struct ct_probed *ct_probed_find(const struct ct_probed_set *set, pid_t pid);
/* Returns true if no process is recorded or skipped, except for the probe itself. */
bool ct_probed_is_empty(const struct ct_probed_set *set);
/* Records the process from now on. If `found` is set, the kernel has found the process and assigned the
 * channel, and the process has been recorded since then. Otherwise, waits up to two seconds until the writer
 * is ready. If `exec_ns` is not 0, it identifies the program (struct ct_segment). Returns 0, -ESRCH if the
 * process has ended, -EEXIST if the kernel has just found the process and a notice will follow, or another
 * -errno. After an error, the channel is freed, either immediately or when the process has ended. */
int ct_probed_add(struct ct_probed_set *set, pid_t pid, struct ct_channel *channel, uint64_t exec_ns,
                  const struct ct_probe_notice *found);
/* Skips a process, so that none of its calls is recorded. `channel` is the channel that the kernel has
 * assigned, or NULL. If the process has a visit (ct_programs_set_visit()), a notice follows when the visit is
 * over. */
int ct_probed_skip(struct ct_probed_set *set, pid_t pid, const struct ct_channel *channel);
/* Accompanies the hook of a process that is skipped or unknown. Returns 0 or -errno. After an error, the
 * channel is freed, either immediately or when the process has ended. */
int ct_probed_accompany(struct ct_probed_set *set, const struct ct_companion *companion,
                        struct ct_channel *channel);
/* Opens the segment of the hook that visits a skipped process, if the segment is new. */
void ct_probed_set_hook(struct ct_probed *probed, const struct ct_mapped_drivers *images);
/* Ends the recording of a program after its process has executed another program. */
void ct_probed_exec(struct ct_probed *probed);
/* Removes processes that have ended, and replaces writers that were killed. A new writer continues where the
 * last one stopped, even if the process has ended. Until the daemon knows its segment, the last segment stays
 * locked. */
void ct_probed_reap(struct ct_probed_set *set);
/* Ends each writer after it has written the contents of its channel. Kills writers that do not end in time,
 * or before Ctrl-C is pressed again. */
void ct_probed_finish(struct ct_probed_set *set);

#endif
