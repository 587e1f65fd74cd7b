/* A recording, from subscribing to CUPTI to leaving it. */
#include "activity.h"
#include "buffers.h"
#include "cupti.h"
#include "graph_launches.h"
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
    CALLBACK_IDS = 4096, /* CUDA 13.0 has 808 */
    CONTEXTS = 8,
    HOLDS = 8, /* a GPU that several processes share may not finish a step's work in one of them */
    HOLD_PAUSE_MS = 50,
    VERSION_12_6 = 24, /* of cuptiGetVersion() */
};

static const struct ct_gpu_host *host;
static struct ct_cupti cupti;
static void *subscriber;
static bool does_work[CALLBACK_IDS + 1]; /* by callback ID */
static void
    *_Atomic contexts[CONTEXTS];   /* contexts in which the process has made work; NULL after the last */
static _Atomic bool must_stay;     /* CUPTI cannot leave the process any more */
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

/* Returns false if there are too many contexts. */
static bool note_context(void *context)
{
    for (size_t i = 0; i < CONTEXTS; i++) {
        void *there = atomic_load(&contexts[i]);
        if (!there && atomic_compare_exchange_strong(&contexts[i], &there, context))
            return true;
        if (there == context)
            return true;
    }
    return false;
}

static void entered(void *data, int32_t domain, uint32_t id, const struct ct_cupti_call *call)
{
    (void)data;
    if (domain != CT_CUPTI_DRIVER_API || id > CALLBACK_IDS)
        return;
    if (call->site != CT_CUPTI_ENTER || !does_work[id] || call->correlation <= atomic_load(&earlier))
        return;
    raise_to(&highest, call->correlation);
    const bool notes = atomic_load(&is_noting);
    if (!notes)
        lower_to(&first_unnoted, call->correlation);
    /* An untraced call could be in progress when CUPTI leaves. */
    if (!host->note(notes ? call->correlation : 0) || !note_context(call->context))
        atomic_store(&must_stay, true);
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

/* CUPTI adds a prefix to the name that a tool gives when it subscribes (CUpti_SubscriberParams in the
 * documentation of CUPTI 13). The name may be empty. */
static void remove_prefix(char *holder)
{
    static const char prefix[] = "CUPTI for ";
    const size_t length = sizeof(prefix) - 1;
    if (strncmp(holder, prefix, length) == 0)
        memmove(holder, holder + length, strlen(holder + length) + 1);
}

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
    remove_prefix(attempt->holder);
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

/* Enables callbacks for the functions that do work, which are found by their names. */
static int32_t enable_callbacks(void)
{
    for (uint32_t id = 1; id <= CALLBACK_IDS; id++) {
        const char *name = NULL;
        if (cupti.GetCallbackName(CT_CUPTI_DRIVER_API, id, &name) != 0 || !name)
            continue;
        does_work[id] = host->does_work(name);
        if (!does_work[id])
            continue;
        const int32_t result = cupti.EnableCallback(1, subscriber, CT_CUPTI_DRIVER_API, id);
        if (result != 0)
            return result;
    }
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
    if (host->graphs() == CT_GPU_FORM_WHOLE && !host->has_graphs())
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
    atomic_store(&first_unnoted, UINT32_MAX);
    atomic_store(&is_noting, true);
    ct_graph_launches_forget();
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

static struct ct_activity_limits limits(void)
{
    return (struct ct_activity_limits){
        .after = atomic_load(&earlier),
        .before = atomic_load(&first_unnoted),
        .without_nodes = graphs == CT_GPU_FORM_WHOLE,
    };
}

static void read_buffer(uint8_t *buffer, size_t valid, void *unused)
{
    (void)unused;
    const struct ct_activity_limits now = limits();
    ct_activity_read(host, &cupti, buffer, valid, &now);
}

static void collect(uint32_t flag)
{
    size_t dropped = 0;
    cupti.ActivityFlushAll(flag);
    ct_buffers_read(read_buffer, NULL);
    const struct ct_activity_limits now = limits();
    ct_activity_settle(host, &now, flag == CT_CUPTI_FLUSH_FORCED);
    if (cupti.ActivityGetNumDroppedRecords(NULL, 0, &dropped) != 0)
        dropped = 0;
    host->drop(dropped);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Graphs that have been recorded as a whole access invalid memory after cuptiFinalize() (H100, driver
 * 580.159.04, CUPTI 13.0). Before CUDA 12.6, CUPTI crashes in processes with graphs if it begins again after
 * cuptiFinalize() (pytorch/pytorch, pull request 112507). */
static bool may_leave(void)
{
    uint32_t version;
    if (atomic_load(&must_stay) || host->is_exiting() || host->has_contexts() ||
        cupti.GetVersion(&version) != 0)
        return false;
    return !host->has_graphs() || (graphs != CT_GPU_FORM_WHOLE && version >= VERSION_12_6);
}

static size_t used_contexts(void *used[CONTEXTS])
{
    size_t count = 0;
    while (count < CONTEXTS && (used[count] = atomic_load(&contexts[count])))
        count++;
    return count;
}

/* Holds the program's calls so that CUPTI can leave. cuptiFinalize() waits for the GPU, and so do all calls
 * in the meantime, even those that the GPU waits for. The GPU's work must therefore be finished before. */
static bool hold_calls(void)
{
    void *used[CONTEXTS];
    for (int i = 0; i < HOLDS && may_leave(); i++) {
        const size_t count = used_contexts(used);
        if (host->hold_calls(used, count)) {
            if (may_leave() && used_contexts(used) == count)
                return true;
            host->resume_calls();
        }
        pause_ms(HOLD_PAUSE_MS);
    }
    return false;
}

/* Ends the recording. CUPTI leaves the process if possible, and otherwise stays without a subscriber.
 *
 * If a graph is launched after its kinds of activity have been disabled, its launches fail after
 * cuptiFinalize(), with CUDA_ERROR_LAUNCH_FAILED (H100, driver 580.159.04, CUPTI 13.0). The kinds therefore
 * remain enabled until calls are held. Once CUPTI has stayed, it cannot leave later. */
static void disable(enum ct_gpu_order order)
{
    /* The view gpu_pending takes a noted call without work for unreturned. Therefore, the notes end first,
     * and work of later calls is left out. */
    atomic_store(&is_noting, false);
    /* Work that is waiting for the GPU has no times yet. A forced flush would return it without them. */
    for (int i = 0; order == CT_GPU_STOP && i < DRAINS; i++) {
        pause_ms(DRAIN_MS);
        collect(0);
    }
    const bool leaves = order == CT_GPU_STOP && hold_calls();
    for (const int32_t *kind = ct_activity_kinds; *kind; kind++)
        cupti.ActivityDisable(*kind);
    if (graphs == CT_GPU_FORM_WHOLE)
        cupti.ActivityDisable(CT_ACTIVITY_GRAPH_TRACE);
    collect(0);
    collect(CT_CUPTI_FLUSH_FORCED);
    atomic_store(&has_own_clock, false);
    atomic_store(&earlier, leaves ? 0 : atomic_load(&highest));
    if (!leaves) {
        atomic_store(&must_stay, true);
        cupti.Unsubscribe(subscriber);
        return;
    }
    atomic_store(&highest, 0);
    for (size_t i = 0; i < CONTEXTS; i++)
        atomic_store(&contexts[i], NULL);
    /* This also ends the subscription. If the subscription ended first, the program could subscribe before
     * cuptiFinalize(), and would lose its own subscription. */
    cupti.Finalize();
    host->resume_calls();
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
