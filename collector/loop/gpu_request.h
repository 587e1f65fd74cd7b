/* Requests that running processes record their GPU work (`cudatrace set --gpu`), and reports the results. A
 * request is written to the header of each process's segment, and to the control segment for new processes.
 * The hooks report the results in the segment headers. Used only on the loop thread. */
#ifndef CT_GPU_REQUEST_H
#define CT_GPU_REQUEST_H

#include "shm_process.h"

struct ct_gpu_request {
    uint64_t until_ns; /* when the recordings end (CLOCK_MONOTONIC); if this is in the past, at once */
    int32_t pid;       /* in the daemon's pid namespace; 0: all processes of the session */
};

/* The session's processes. A process is in this list from ct_gpu_request_add() until
 * ct_gpu_request_remove(). */
struct ct_gpu_targets {
    struct ct_control *control;
    struct ct_shm_process *first; /* by `next_target` */
};

/* Reads "on", "off" or a number of seconds, followed by a process ID or nothing. Returns false with a
 * sentence in `problem` if the text is invalid. */
bool ct_gpu_request_read(const char *text, struct ct_gpu_request *request, char *problem, size_t bytes);
/* Makes the request, which the next batch passes on to the hooks. Returns false with a sentence in `problem`
 * if the process is not in the session. */
bool ct_gpu_request_make(struct ct_gpu_targets *targets, const struct ct_gpu_request *request, char *problem,
                         size_t bytes);
/* Adds a process, and passes the session's request to it if its hook has not seen that request yet. */
void ct_gpu_request_add(struct ct_gpu_targets *targets, struct ct_shm_process *process);
void ct_gpu_request_remove(struct ct_gpu_targets *targets, struct ct_shm_process *process);
/* Returns when the request is answered at the latest (CLOCK_MONOTONIC). A recording takes up to a second to
 * end, because CUPTI leaves only while the GPU is idle. A process may never begin, because it begins at its
 * next call. */
uint64_t ct_gpu_request_due_ns(const struct ct_gpu_request *request);
/* Returns whether all processes named by the request have followed it or need not do so. */
bool ct_gpu_request_is_followed(const struct ct_gpu_targets *targets, const struct ct_gpu_request *request);
/* Writes how many processes record GPU work, how many cannot, and why. `pid` 0 means all processes. */
void ct_gpu_request_say(const struct ct_gpu_targets *targets, int32_t pid, char *text, size_t bytes);

#endif
