/* A recording, from subscribing to CUPTI to leaving it. */
#include "activity.h"
#include "buffers.h"
#include "cupti.h"
#include "other_tool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FLUSH_MS = 100,
    DRAIN_MS = 25,
    DRAINS = 8,
    HOLDER_BYTES = 64,
    CALLBACK_IDS = 4096 /* CUDA 13.0 has 808 */
};

/* What a function of the driver does. */
enum role {
    ROLE_WORK = 1,  /* launches, copies or sets */
    ROLE_GRAPH = 2, /* captures, creates, changes or launches a graph */
};

static const struct ct_gpu_host *host;
static struct ct_cupti cupti;
static void *subscriber;
static uint8_t roles[CALLBACK_IDS + 1]; /* enum role, by callback ID */
static bool sees_graphs;                /* callbacks report the use of graphs */
static _Atomic bool has_graphs;         /* the process has used a graph during a recording */
static _Atomic uint32_t earlier;   /* the highest correlation of earlier recordings; 0 after CUPTI has left */
static _Atomic uint32_t highest;   /* the highest correlation of a call in this recording or earlier ones */
static _Atomic bool has_own_clock; /* times are in ticks of the segment's clock */
static _Atomic bool is_noting;     /* callbacks note correlations */
static _Atomic uint32_t first_unnoted; /* the lowest correlation of a call that was not noted after the end */
static uint32_t graphs;                /* enum ct_gpu_form, or CUPTI's error for whole graphs */

/* ---- called by CUPTI, in any thread ---- */

static void lower_to(_Atomic uint32_t *lowest, uint32_t correlation)
{
    uint32_t before = atomic_load(lowest);
    while (correlation < before && !atomic_compare_exchange_weak(lowest, &before, correlation))
        ;
}

static void raise_to(_Atomic uint32_t *highest_yet, uint32_t correlation)
{
    uint32_t before = atomic_load(highest_yet);
    while (correlation > before && !atomic_compare_exchange_weak(highest_yet, &before, correlation))
        ;
}

static void entered(void *data, int32_t domain, uint32_t id, const struct ct_cupti_call *call)
{
    (void)data;
    if (domain != CT_CUPTI_DRIVER_API || id > CALLBACK_IDS)
        return;
    if (roles[id] & ROLE_GRAPH)
        atomic_store(&has_graphs, true); /* also if the call began before the recording */
    if (call->site != CT_CUPTI_ENTER || !(roles[id] & ROLE_WORK) ||
        call->correlation <= atomic_load(&earlier))
        return;
    raise_to(&highest, call->correlation);
    if (atomic_load(&is_noting))
        host->note(call->correlation);
    else
        lower_to(&first_unnoted, call->correlation);
}

static void request(uint8_t **buffer, size_t *bytes, size_t *records)
{
    *buffer = ct_buffers_take(bytes);
    *records = 0; /* as many as fit */
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)context;
    (void)stream;
    (void)bytes;
    ct_buffers_give(buffer, valid);
    host->wake();
}

/* If CUPTI stays in the process after a recording, another tool expects CUPTI's own clock, CLOCK_REALTIME. */
static uint64_t timestamp(void)
{
    struct timespec now;
    if (atomic_load(&has_own_clock))
        return host->now();
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- beginning ---- */

struct attempt {
    enum ct_gpu_state state; /* CT_GPU_STARTING once the recording has subscribed */
    int32_t result;          /* of cuptiSubscribe() */
    char holder[HOLDER_BYTES];
};

/* CUPTI has only one subscriber, so subscribing is a lock. Without the lock, the recording would take the
 * activity buffers away from another tool. Returns false if another version of CUPTI may fit the driver. If
 * no version does, the result of the first one is reported. */
static bool subscribe(const struct ct_cupti *found, void *data)
{
    struct attempt *attempt = data;
    struct ct_cupti_subscriber parameters = { sizeof(parameters), "cudatrace", attempt->holder,
                                              sizeof(attempt->holder) };
    cupti = *found;
    const int32_t result = cupti.Subscribe_v2 ? cupti.Subscribe_v2(&subscriber, entered, NULL, &parameters)
                                              : cupti.Subscribe(&subscriber, entered, NULL);
    attempt->holder[sizeof(attempt->holder) - 1] = '\0';
    if (result != 0 && result != CT_CUPTI_MULTIPLE_SUBSCRIBERS) {
        if (attempt->state == CT_GPU_NO_CUPTI)
            attempt->result = result;
        attempt->state = CT_GPU_REFUSED;
        return false;
    }
    attempt->state = result == 0 ? CT_GPU_STARTING : CT_GPU_TAKEN;
    attempt->result = result;
    return true;
}

static uint8_t role_of(const char *function)
{
    static const char graphics[] = "cuGraphics"; /* sharing memory with OpenGL and others */
    const bool is_graph =
        strncmp(function, "cuGraph", 7) == 0 && strncmp(function, graphics, strlen(graphics)) != 0;
    const bool is_capture = strncmp(function, "cuStreamBeginCapture", 20) == 0 ||
                            strncmp(function, "cuStreamEndCapture", 18) == 0;
    return (uint8_t)((host->does_work(function) ? ROLE_WORK : 0) | (is_graph || is_capture ? ROLE_GRAPH : 0));
}

/* Enables callbacks for the functions that have a role, which are found by their names. */
static int32_t enable_callbacks(void)
{
    bool found_graphs = false;
    for (uint32_t id = 1; id <= CALLBACK_IDS; id++) {
        const char *name = NULL;
        if (cupti.GetCallbackName(CT_CUPTI_DRIVER_API, id, &name) != 0 || !name)
            continue;
        roles[id] = role_of(name);
        if (!roles[id])
            continue;
        const int32_t result = cupti.EnableCallback(1, subscriber, CT_CUPTI_DRIVER_API, id);
        if (result != 0)
            return result;
        found_graphs |= (roles[id] & ROLE_GRAPH) != 0;
    }
    sees_graphs = found_graphs;
    return 0;
}

/* Returns an enum ct_gpu_form, or CUPTI's error. The process may have made a graph at any time until the kind
 * was enabled. */
static uint32_t enable_whole_graphs(void)
{
    const uint32_t form = host->graphs();
    if (form != CT_GPU_FORM_WHOLE)
        return form;
    const int32_t refusal = cupti.ActivityEnable(CT_ACTIVITY_GRAPH_TRACE);
    if (refusal != 0)
        return (uint32_t)refusal;
    if (host->graphs() == CT_GPU_FORM_WHOLE && !atomic_load(&has_graphs))
        return CT_GPU_FORM_WHOLE;
    cupti.ActivityDisable(CT_ACTIVITY_GRAPH_TRACE);
    return CT_GPU_FORM_LATE;
}

/* The timestamp callback must be registered before any kind of activity is enabled. Callbacks are enabled
 * before the kinds, so that all recorded work has a call. The kind for whole graphs is enabled before the
 * kinds of their nodes, so that no graph has both. If it cannot be enabled, nodes are recorded. */
static int32_t enable(void)
{
    atomic_store(&has_own_clock, true);
    sees_graphs = false;
    atomic_store(&first_unnoted, UINT32_MAX);
    atomic_store(&is_noting, true);
    int32_t result = cupti.ActivityRegisterTimestampCallback(timestamp);
    if (result == 0)
        result = cupti.ActivityRegisterCallbacks(request, complete);
    if (result == 0)
        result = enable_callbacks();
    graphs = result == 0 ? enable_whole_graphs() : CT_GPU_FORM_NODES;
    for (const int32_t *kind = ct_activity_kinds; result == 0 && *kind; kind++)
        result = cupti.ActivityEnable(*kind);
    return result;
}

/* ---- recording ---- */

static void read_buffer(uint8_t *buffer, size_t valid, void *unused)
{
    (void)unused;
    const struct ct_activity_limits limits = {
        .after = atomic_load(&earlier),
        .before = atomic_load(&first_unnoted),
        .without_nodes = graphs == CT_GPU_FORM_WHOLE,
    };
    ct_activity_read(host, &cupti, buffer, valid, &limits);
}

static void collect(uint32_t flag)
{
    size_t dropped = 0;
    cupti.ActivityFlushAll(flag);
    ct_buffers_read(read_buffer, NULL);
    if (cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) != 0)
        dropped = 0;
    host->drop(dropped);
}

/* cuptiFinalize() must not run while other threads call the driver for the last time. At exit, the process's
 * end makes it unnecessary. It also ends the subscription. If the subscription ended first, the program could
 * subscribe before cuptiFinalize(), and would lose its own subscription.
 *
 * After cuptiFinalize(), launches of graphs that were used during the recording fail with
 * CUDA_ERROR_LAUNCH_FAILED (seen on an H100, driver 580.159.04, CUPTI 13.0). Before CUDA 12.6, CUPTI crashes
 * in processes with graphs if it begins again after cuptiFinalize() (pytorch/pytorch, pull request 112507).
 * CUPTI therefore stays in a process that has used graphs. */
static void disable(enum ct_gpu_order order)
{
    /* The view gpu_pending takes a noted call without work for unreturned. Therefore, the notes end first,
     * and work of later calls is left out. */
    atomic_store(&is_noting, false);
    for (const int32_t *kind = ct_activity_kinds; *kind; kind++)
        cupti.ActivityDisable(*kind);
    if (graphs == CT_GPU_FORM_WHOLE)
        cupti.ActivityDisable(CT_ACTIVITY_GRAPH_TRACE);
    /* Work that is waiting for the GPU has no times yet. A forced flush would return it without them. */
    for (int i = 0; order == CT_GPU_STOP && i < DRAINS; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = DRAIN_MS * 1000000L }, NULL);
        collect(0);
    }
    collect(0);
    collect(CT_CUPTI_FLUSH_FORCED);
    atomic_store(&has_own_clock, false);
    const bool stays = !sees_graphs || atomic_load(&has_graphs) || host->has_graphs();
    atomic_store(&earlier, stays ? atomic_load(&highest) : 0);
    if (!stays)
        atomic_store(&highest, 0);
    if (stays || order == CT_GPU_EXIT || host->is_exiting())
        cupti.Unsubscribe(subscriber);
    else
        cupti.Finalize();
}

/* Exit handlers run in reverse order of their registration. This one is registered after CUPTI has been
 * loaded, so that it runs before CUPTI's own. */
static void leave(void)
{
    host->leave();
}

__attribute__((visibility("default"))) ct_gpu_record_function cudatrace_gpu_record;

void cudatrace_gpu_record(const struct ct_gpu_host *given)
{
    static bool is_registered;
    struct attempt attempt = { .state = CT_GPU_NO_CUPTI };
    host = given;
    if (ct_other_tool_find(host, attempt.holder, sizeof(attempt.holder)))
        attempt.state = CT_GPU_TAKEN;
    else if (ct_buffers_begin())
        ct_cupti_each(host, subscribe, &attempt);
    if (attempt.state != CT_GPU_STARTING) {
        host->report(attempt.state, (uint32_t)attempt.result, attempt.holder);
        return;
    }
    const int32_t result = enable();
    if (result != 0) {
        disable(CT_GPU_STOP);
        host->report(CT_GPU_REFUSED, (uint32_t)result, NULL);
        return;
    }
    if (!is_registered)
        is_registered = atexit(leave) == 0;
    host->report(CT_GPU_ON, graphs, NULL);
    enum ct_gpu_order order;
    while ((order = host->wait(FLUSH_MS)) == CT_GPU_GO_ON)
        collect(0);
    disable(order);
    host->report(CT_GPU_ENDED, 0, NULL);
}
