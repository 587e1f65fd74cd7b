/* The probed processes, each with its channel and its writer. */
#ifndef CT_PROBE_PROBED_H
#define CT_PROBE_PROBED_H

#include "channels.h"
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
    bool has_hook;               /* its writer has found the hook in it */
    struct ct_hook_segment hook; /* of the hook that visits it or has visited it */
    pid_t writer;                /* 0: it has ended */
    int link;                    /* to that writer (writer_link.h), or -1 */
    unsigned writers;            /* number of writers that were started for it */
    /* Descriptors that hold the locks of segments, or -1. `known_lock` is the lock of the latest segment that
     * the daemon knows, or of the first segment. `new_lock` is the lock of a later segment. */
    int known_lock, new_lock;
};

struct ct_probed_set {
    struct ct_programs *programs;
    struct ct_function_table *functions;
    struct ct_probed *first;
};

/* Starts the arrivals writer (writer.h), before any process is added. If `machine` is not NULL, it is the
 * channel for events of the machine. The arrivals writer then owns this channel, and also writes these
 * events. Returns 0 or -errno. */
int ct_probed_begin(struct ct_probed_set *set, const struct ct_channel *machine);
struct ct_probed *ct_probed_find(const struct ct_probed_set *set, pid_t pid);
/* Returns true if the set contains no recorded or skipped process other than the probe itself. */
bool ct_probed_is_empty(const struct ct_probed_set *set);
/* Records the process from now on. If `found` is not NULL, it is the BPF programs' notice about the process.
 * In that case, the programs have already assigned the channel, and record the process. If `found` is NULL,
 * waits up to two seconds until the writer is ready. If `exec_ns` is not 0, it identifies the program (struct
 * ct_segment). Returns 0 or -errno: -ESRCH if the process has ended, or -EEXIST if the BPF programs have just
 * found the process and a notice will follow. After an error, the channel is freed, either immediately or
 * when the process has ended. */
int ct_probed_add(struct ct_probed_set *set, pid_t pid, struct ct_channel *channel, uint64_t exec_ns,
                  const struct ct_probe_notice *found);
/* Skips a process, so that none of its calls is recorded. `channel` is the channel that the BPF programs have
 * assigned to it, or NULL. If the hook is visiting the process (ct_programs_set_visit()), a notice follows
 * when the visit is over. */
int ct_probed_skip(struct ct_probed_set *set, pid_t pid, const struct ct_channel *channel);
/* Accompanies the hook of a process that is skipped or unknown. Returns 0 or -errno. After an error, the
 * channel is freed, either immediately or when the process has ended. */
int ct_probed_accompany(struct ct_probed_set *set, const struct ct_companion *companion,
                        struct ct_channel *channel);
/* Notes that the probe does not see calls of the process, because its driver's code is in other memory than
 * the driver's file. The trace then contains the loss. Prints a message. */
void ct_probed_set_copied(struct ct_probed_set *set, struct ct_probed *probed,
                          const struct ct_mapped_driver *image);
/* The same, because the process maps more libcuda files than the probe follows. */
void ct_probed_set_left_out(struct ct_probed_set *set, struct ct_probed *probed,
                            const struct ct_mapped_drivers *images);
/* Opens the segment of the hook that is visiting a skipped process, unless that segment is already open. */
void ct_probed_set_hook(struct ct_probed *probed, const struct ct_mapped_drivers *images);
/* Ends the recording of a program after its process has called exec() for another program. */
void ct_probed_exec(struct ct_probed *probed);
/* Removes processes that have ended, and replaces writers that were killed. A new writer continues where the
 * previous writer stopped, even if the process has ended. The previous writer's segment stays locked until
 * the daemon knows the new one. */
void ct_probed_reap(struct ct_probed_set *set);
/* Ends the writers, after each has written the remaining contents of its channel. Kills writers that have not
 * ended in time, or that are still running when Ctrl-C is pressed again. */
void ct_probed_finish(struct ct_probed_set *set);

#endif
