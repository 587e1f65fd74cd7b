#include "gpu_request.h"

#include "gpu_outcome.h"
#include "gpu_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ct_gpu_request_read(const char *text, struct ct_gpu_request *request, char *problem, size_t bytes)
{
    enum { SECONDS_MAX = 3653 * 86400 };
    char until[16] = "", pid[16] = "", more, *end, *pid_end;
    const int words = sscanf(text, "%15s %15s %c", until, pid, &more);
    const unsigned long seconds = strtoul(until, &end, 10);
    const bool is_on = strcmp(until, "on") == 0, is_off = strcmp(until, "off") == 0;
    const bool is_time = *until >= '0' && *until <= '9' && !*end && seconds >= 1 && seconds <= SECONDS_MAX;
    const long number = strtol(pid, &pid_end, 10);
    const bool is_process = words == 2 && !*pid_end && number >= 1 && number <= INT32_MAX;
    request->pid = is_process ? (int32_t)number : 0;
    if (!(words == 1 || is_process) || !(is_on || is_off || is_time)) {
        snprintf(problem, bytes, "invalid request '%s' for GPU work: expected on, off or 1 to %d seconds",
                 text, (int)SECONDS_MAX);
        return false;
    }
    request->until_ns = ct_monotonic_ns() + (is_on    ? CT_GPU_ENDLESS_NS
                                             : is_off ? 0
                                                      : seconds * UINT64_C(1000000000));
    return true;
}

/* ---- processes ---- */

/* Returns whether the process still uses the segment. Returns false for a companion, because requests are
 * written to the segment that the hook of the same process created. */
static bool is_current(const struct ct_shm_process *process, int32_t pid)
{
    enum { ENDS = CT_SEGMENT_EXITING | CT_SEGMENT_DETACHED | CT_SEGMENT_LEFT };
    return !ct_shm_is_companion(process) && !atomic_load(&process->who.dead) &&
           !(atomic_load_explicit(&process->shared->flags, memory_order_acquire) & ENDS) &&
           (pid == 0 || process->who.seen_pid == pid);
}

#define EACH_CURRENT(p, pid_)                                                                                \
    for (struct ct_shm_process *p = targets->first; p; p = p->next_target)                                   \
        if (is_current(p, pid_))

static void request_of(struct ct_shm_process *process, uint64_t until_ns)
{
    atomic_store_explicit(&process->shared->gpu_until_ns, until_ns, memory_order_release);
}

static void request_of_session(struct ct_shm_process *process, uint64_t until_ns)
{
    request_of(process, until_ns);
    atomic_store_explicit(&process->shared->gpu_session_ns, until_ns, memory_order_relaxed);
}

bool ct_gpu_request_make(struct ct_gpu_targets *targets, const struct ct_gpu_request *request, char *problem,
                         size_t bytes)
{
    bool is_known = request->pid == 0;
    if (request->pid == 0)
        atomic_store_explicit(&targets->control->gpu_until_ns, request->until_ns, memory_order_relaxed);
    EACH_CURRENT(p, request->pid)
    {
        if (request->pid == 0)
            request_of_session(p, request->until_ns);
        else
            request_of(p, request->until_ns);
        is_known = true;
    }
    if (!is_known)
        snprintf(problem, bytes, "the session has no process %d; `cudatrace top --once` lists its processes",
                 request->pid);
    return is_known;
}

void ct_gpu_request_add(struct ct_gpu_targets *targets, struct ct_shm_process *process)
{
    const uint64_t session_ns = atomic_load_explicit(&targets->control->gpu_until_ns, memory_order_relaxed);
    process->next_target = targets->first;
    targets->first = process;
    if (!ct_shm_is_probed(process) &&
        atomic_load_explicit(&process->shared->gpu_session_ns, memory_order_relaxed) != session_ns)
        request_of_session(process, session_ns);
}

void ct_gpu_request_remove(struct ct_gpu_targets *targets, struct ct_shm_process *process)
{
    struct ct_shm_process **link = &targets->first;
    while (*link != process)
        link = &(*link)->next_target;
    *link = process->next_target;
}

static uint32_t state_of(const struct ct_shm_process *process)
{
    return atomic_load_explicit(&process->shared->gpu, memory_order_acquire) & 255;
}

static bool is_busy(uint32_t state)
{
    return state == CT_GPU_STARTING || state == CT_GPU_ON;
}

/* Returns whether the process's state is the result of its last request. A process that is not recording GPU
 * work need not follow a request to stop doing so. */
static bool is_followed(const struct ct_shm_process *process)
{
    const struct ct_segment *segment = process->shared;
    const uint64_t until_ns = atomic_load_explicit(&segment->gpu_until_ns, memory_order_acquire);
    const bool is_noted = atomic_load_explicit(&segment->gpu_followed_ns, memory_order_acquire) == until_ns;
    return ct_shm_is_probed(process) || is_noted ||
           (until_ns <= ct_monotonic_ns() && !is_busy(state_of(process)));
}

uint64_t ct_gpu_request_due_ns(const struct ct_gpu_request *request)
{
    enum { BEGIN_MS = 1000, END_MS = 3000 };
    const uint64_t now_ns = ct_monotonic_ns();
    return now_ns + (request->until_ns > now_ns ? BEGIN_MS : END_MS) * UINT64_C(1000000);
}

bool ct_gpu_request_is_followed(const struct ct_gpu_targets *targets, const struct ct_gpu_request *request)
{
    EACH_CURRENT(p, request->pid)
    {
        if (!is_followed(p))
            return false;
    }
    return true;
}

/* ---- results ---- */

/* Further outcomes, numbered after the last state in enum ct_gpu_state. */
enum { PROBED = CT_GPU_NO_THREAD + 1, WAITING, ENDING, OUTCOMES };

/* Further texts. ct_gpu_outcome() has those for states of the hook. */
static const char *const outcome_texts[OUTCOMES] = {
    [CT_GPU_STARTING] = "will record once CUPTI has started",
    [PROBED] = "cannot: the process is recorded by a probe",
    [WAITING] = "will record from the next call of the driver",
    [ENDING] = "yet to stop recording",
};

struct outcome {
    unsigned count;
    const struct ct_shm_process *first; /* the first such process */
    uint32_t gpu;                       /* segment->gpu of the first one */
};

static size_t outcome_of(const struct ct_shm_process *process, uint32_t state)
{
    const uint64_t until_ns = atomic_load_explicit(&process->shared->gpu_until_ns, memory_order_acquire);
    const bool is_over = until_ns <= ct_monotonic_ns();
    if (is_busy(state))
        return is_over ? ENDING : state;
    if (is_over)
        return CT_GPU_OFF;
    if (ct_shm_is_probed(process))
        return PROBED;
    return !is_followed(process) ? WAITING : state <= CT_GPU_NO_THREAD ? state : CT_GPU_OFF;
}

/* Appends how many processes have the outcome, and why they do not record, unless that needs no reason. */
static void describe(size_t number, const struct outcome *outcome, char *text, size_t bytes)
{
    char reason[CT_GPU_TEXT_BYTES];
    const size_t length = strlen(text);
    const char *known = outcome_texts[number];
    const bool needs_none = !known && number < CT_GPU_NO_LIBRARY;
    if (outcome->count == 0 || needs_none)
        return;
    if (!known)
        ct_gpu_outcome(outcome->first->shared, outcome->gpu, reason);
    snprintf(text + length, bytes - length, "; %u %s%s (process %d%s)", outcome->count,
             known ? "" : "cannot: ", known ? known : reason, outcome->first->who.seen_pid,
             outcome->count > 1 ? ", …" : "");
}

void ct_gpu_request_say(const struct ct_gpu_targets *targets, int32_t pid, char *text, size_t bytes)
{
    struct outcome outcomes[OUTCOMES] = { { 0 } };
    unsigned processes = 0;
    EACH_CURRENT(p, pid)
    {
        const uint32_t gpu = atomic_load_explicit(&p->shared->gpu, memory_order_acquire);
        struct outcome *outcome = &outcomes[outcome_of(p, gpu & 255)];
        if (outcome->count++ == 0)
            *outcome = (struct outcome){ 1, p, gpu };
        processes++;
    }
    snprintf(text, bytes, "%u of %u processes record GPU work", outcomes[CT_GPU_ON].count, processes);
    for (size_t i = 0; i < OUTCOMES; i++)
        describe(i, &outcomes[i], text, bytes);
}
