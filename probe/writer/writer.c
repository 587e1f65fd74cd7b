#include "writer.h"

#include "current.h"
#include "find_daemon.h"
#include "fork.h"
#include "hooked.h"
#include "kernel_ring.h"
#include "long_call.h"
#include "loss.h"
#include "open_calls.h"
#include "probed_call.h"
#include "producer_pool.h"
#include "request_rows.h"
#include "reserve.h"
#include "rights.h"
#include "ring.h"
#include "segment_file.h"
#include "session_names.h"
#include "target_memory.h"
#include "thread.h"
#include "thread_table.h"
#include "user_daemon.h"
#include "writer_link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BUSY_MS = 5,          /* between two reads of the ring while there are calls */
    IDLE_MS = 50,         /* and while there are none. Rows of other processes are stored that much later */
    BUSY_NS = 200000000,  /* the process counts as busy for that long after a call */
    LOOK_NS = 1000000000, /* between two searches for a daemon */
    HOOK_NS = 1000000000, /* other processes' rows wait that long for the hook to leave this one */
};

struct writer {
    const struct ct_writer_plan *plan;
    struct ct_kernel_ring ring, notices;
    const struct ct_probe_thread *shared_threads; /* CT_PROBE_THREADS of them */
    struct ct_probe_lost *lost;                   /* CT_PROBE_FUNCTIONS */
    struct ct_segment *segment;                   /* NULL while there is no daemon */
    const char *why;                              /* why there is no segment, as printed; NULL: not printed */
    uint16_t ids[CT_PROBE_FUNCTIONS];             /* numbers of functions in the segment, 0 for none */
    struct ct_request_rows requests;
    struct ct_thread_table threads;
    uint64_t absent_ns, next_look_ns;
    uint64_t long_ticks, busy_until_ns;
    /* All calls that ended before `read_ns` have been written. All processes that made a call before
     * `arrived_ns` have segments. `complete` is the earlier of the two times. */
    uint64_t read_ns, arrived_ns, complete;
    uint32_t flags; /* to be set in the segment when the process has ended */
    bool wants_bell, is_reported, is_known;
};

static bool is_arrivals(const struct writer *writer)
{
    return writer->plan->notices >= 0;
}

static bool has_channel(const struct writer *writer)
{
    return writer->plan->ring >= 0;
}

/* ---- the segment ---- */

/* Sends the segment's lock to the probe, which keeps it while replacing a killed writer. If the lock were
 * free, the daemon would record that the process has ended, and refuse the next segment. */
static void share_lock(int description, void *data)
{
    const struct writer *writer = data;
    ct_link_send(writer->plan->link, CT_LINK_LOCK, description);
}

/* Returns NULL, or why there is no segment. */
static const char *make_segment(struct writer *writer)
{
    const struct ct_writer_plan *plan = writer->plan;
    struct ct_session session;
    struct ct_requested requested;
    struct ct_control *control = ct_user_daemon_find(plan->uid, &session, &requested);
    if (!control) {
        static char why[CT_SESSION_MAX + 128];
        snprintf(
            why, sizeof(why),
            "the session has no daemon: calls are recorded once `cudatraced --session %.*s --db FILE` runs",
            CT_SESSION_MAX, getenv(CT_SESSION_ENV));
        return why;
    }
    ct_rights_drop(plan->gid); /* to the rights of the user whose daemon was found */
    ct_clock_is_counter = false;
    ct_long_begin();
    struct ct_segment *segment = ct_segment_create(&(struct ct_segment_plan){
        .session = &session,
        .requested = &requested,
        .pid = plan->pid,
        .uid = plan->uid,
        .maker = plan->maker,
        .program = plan->program,
        .exec_ns = plan->exec_ns,
        .absent_ns = writer->absent_ns,
        .complete = writer->complete,
        .on_lock = share_lock,
        .data = writer,
    });
    ct_process_count_epoch();
    if (!segment || !ct_daemon_take(control, &requested)) {
        ct_daemon_drop(control);
        return "there is no room for its segment in shared memory, so calls are missing: enlarge it, or lift "
               "the limit on the size of files (ulimit -f)";
    }
    writer->long_ticks = ct_long_ticks();
    memset(writer->ids, 0, sizeof(writer->ids));
    ct_request_rows_forget(&writer->requests);
    ct_process_set_current(segment);
    if (!requested.system)
        atomic_fetch_add_explicit(&ct_control->segments, 1, memory_order_release);
    writer->absent_ns = 0;
    writer->segment = segment;
    writer->is_known = false;
    ct_daemon_ring();
    return NULL;
}

static void forget_lane(struct ct_thread *thread, void *unused)
{
    (void)unused;
    thread->producer = NULL;
}

/* Stops writing to the segment. Until there is another daemon, calls are in no segment. The next segment will
 * contain the time when this gap began. Keeps the file locked, as the hook does. Otherwise, a stopping daemon
 * would conclude that the process has ended. */
static void leave_segment(struct writer *writer, uint32_t flags)
{
    struct ct_segment *segment = writer->segment;
    if (!segment)
        return;
    uint32_t next = 0;
    ct_process_set_current(NULL);
    ct_producers_abandon(ct_process_epoch(), &next, UINT32_MAX);
    ct_process_count_epoch();
    atomic_fetch_or_explicit(&segment->flags, flags, memory_order_release);
    ct_daemon_ring();
    ct_thread_table_each(&writer->threads, forget_lane, NULL);
    writer->segment = NULL;
    writer->absent_ns = ct_monotonic_ns();
}

static void report_ready(struct writer *writer)
{
    if (writer->is_reported)
        return;
    writer->is_reported = true;
    if (writer->plan->arriving)
        __atomic_store_n(writer->plan->arriving, 0, __ATOMIC_RELEASE);
    ct_link_send(writer->plan->link, CT_LINK_READY, -1);
}

/* Returns true if the hook has not finished leaving the process. Calls stay in the ring until the hook has
 * left. */
static bool waits_for_hook(struct writer *writer, uint64_t now_ns)
{
    if (writer->segment || !ct_hook_segment_is_held(writer->plan->hook))
        return false;
    if (now_ns - writer->plan->since_ns > HOOK_NS)
        report_ready(writer);
    writer->busy_until_ns = now_ns + BUSY_NS;
    return true;
}

static void look_after_segment(struct writer *writer, uint64_t now_ns)
{
    const uint32_t flags =
        writer->segment ? atomic_load_explicit(&writer->segment->flags, memory_order_acquire) : 0;
    if (flags & CT_SEGMENT_KNOWN && !writer->is_known)
        ct_link_send(writer->plan->link, CT_LINK_KNOWN, -1);
    writer->is_known = flags & CT_SEGMENT_KNOWN;
    if (writer->segment && writer->plan->copied && __atomic_load_n(writer->plan->copied, __ATOMIC_RELAXED) &&
        !(flags & CT_SEGMENT_COPIED)) {
        atomic_fetch_or_explicit(&writer->segment->flags, CT_SEGMENT_COPIED, memory_order_release);
        writer->wants_bell = true;
    }
    if (flags & CT_SEGMENT_DETACHED)
        leave_segment(writer, 0);
    if (writer->segment || now_ns < writer->next_look_ns)
        return;
    writer->next_look_ns = now_ns + LOOK_NS;
    const char *why = make_segment(writer);
    if (why && why != writer->why)
        fprintf(stderr, "cudatrace-probe: process %d: %s\n", writer->plan->pid, why);
    writer->why = why;
    if (!writer->segment && writer->absent_ns == 0)
        writer->absent_ns = now_ns;
    report_ready(writer);
}

/* Returns the function's number in the segment, or 0 if the segment's directory is full. */
static uint16_t id_of(struct writer *writer, uint32_t function)
{
    function = ct_request_other(function);
    const struct ct_function_entry *entry = &writer->plan->functions->entry[function];
    if (writer->ids[function] == 0 && ct_process_lock()) {
        writer->ids[function] =
            ct_segment_define(writer->segment, entry->name, entry->layer, entry->category);
        ct_process_unlock();
    }
    return writer->ids[function];
}

/* Returns the call's number in the segment. Requests to the kernel driver have a number for each code. */
static uint16_t id_of_call(struct writer *writer, uint32_t function, uint32_t code)
{
    const uint16_t id =
        ct_request_is(function) ? ct_request_rows_id(&writer->requests, writer->segment, function, code) : 0;
    return id ? id : id_of(writer, function);
}

/* ---- records ---- */

static struct ct_producer *lane_of(struct writer *writer, struct ct_thread *thread)
{
    if (!thread->producer)
        thread->producer = ct_thread_take_for(writer->segment, &thread->identity);
    return thread->producer;
}

static bool is_minor(const struct writer *writer, const struct ct_probe_record *call,
                     const struct ct_record *record, uint64_t ns)
{
    return writer->plan->functions->entry[call->function].is_minor &&
           (record->kind == CT_KIND_CALL || record->kind == CT_KIND_OBJECTS) &&
           !ct_status_is_failure(call->status) && ns < writer->long_ticks;
}

static void write_record(struct writer *writer, struct ct_producer *producer,
                         const struct ct_probe_record *call, const struct ct_decoded *decoded,
                         const void *payload, size_t bytes, uint16_t id, uint64_t start, uint64_t end)
{
    struct ct_record record = {
        .end = end,
        .span = ct_span(end - start, call->depth, decoded->flags),
        .function = id,
        .kind = decoded->kind & CT_KIND_MASK,
        .status = decoded->status,
        .value = decoded->value,
    };
    ct_record_measure(&record, bytes);
    const bool minor = is_minor(writer, call, &record, end - start);
    const bool fits = ct_record_room_for_all(producer, record.slots);
    const bool reserve = !fits && ct_record_reserve(producer, record.slots);
    if (fits || (reserve && !minor)) {
        ct_record_write(producer, &record, payload, bytes);
    } else {
        ct_record_lose_held(producer, reserve ? CT_LOSS_PRESSURE : (enum ct_loss_cause)producer->full_cause,
                            id, start, end, ct_decoded_bytes(decoded));
        if (!minor)
            ct_reserve_note_lost(producer, record.slots);
    }
}

union body {
    struct ct_probe_record record;
    struct ct_probe_values values;
    struct ct_probe_hooked hooked;
    struct ct_probe_ioctl ioctl;
    uint8_t bytes[CT_PROBE_RECORD_BYTES_MAX];
};

/* Returns the thread whose lane contains the events of the machine, or NULL if out of memory. Events are
 * ordered by when their records were reserved. If a processor is interrupted before it reads the time for its
 * record, the next record may contain an earlier time. take_call() corrects that. */
static struct ct_thread *thread_of_machine(struct writer *writer)
{
    struct ct_thread *thread = ct_thread_table_get(&writer->threads, (uint32_t)writer->plan->pid);
    if (thread)
        strcpy(thread->identity.name.name, "machine");
    return thread;
}

static void take_call(struct writer *writer, const union body *body)
{
    const struct ct_probe_record *call = &body->record;
    if (call->function >= writer->plan->functions->count)
        return;
    const struct ct_function_entry *function = &writer->plan->functions->entry[call->function];
    const bool is_hooked = call->kind == CT_PROBE_HOOKED;
    const uint32_t code = call->kind == CT_PROBE_IOCTL ? body->ioctl.code : 0;
    uint64_t start = call->start, end = call->end;
    struct ct_thread *thread =
        is_arrivals(writer) ? thread_of_machine(writer) : ct_thread_table_get(&writer->threads, call->tid);
    if (is_arrivals(writer) && thread && end < thread->last_end)
        start = end = thread->last_end;
    if (function->layer == CT_LAYER_DRIVER)
        ct_probed_call_correct(writer->plan->entry_ns, writer->plan->return_ns, thread, &start, &end);
    if (thread)
        thread->last_end = end;
    if (call->kind == CT_PROBE_CALL && thread && thread->is_hooks &&
        thread->hooks_start == (uint32_t)call->start)
        return;
    const uint16_t id = writer->segment ? id_of_call(writer, call->function, code) : 0;
    struct ct_producer *producer = thread && id ? lane_of(writer, thread) : NULL;
    if (!producer) {
        /* Even without a record, the decoder must run: it learns facts about the program's objects. */
        if (!is_hooked)
            ct_probed_call_decode(writer->plan->functions, call, thread, NULL, start, end);
        if (writer->segment)
            ct_record_lose_unlaned(writer->segment, id, start, end);
        return;
    }
    ct_record_hold(producer, 0);
    if (is_hooked) {
        uint8_t fields[CT_FIELDS_BYTES_MAX];
        const size_t bytes = ct_hooked_payload(fields, function, &body->hooked);
        const struct ct_decoded decoded = { .kind = CT_KIND_FIELDS,
                                            .status = ct_hooked_status(function, &body->hooked) };
        write_record(writer, producer, call, &decoded, fields, bytes, id, start, end);
    } else {
        const struct ct_decoded decoded =
            ct_probed_call_decode(writer->plan->functions, call, thread, producer, start, end);
        write_record(writer, producer, call, &decoded, &decoded.payload, decoded.payload_bytes, id, start,
                     end);
    }
    if (atomic_load_explicit(&producer->lane->depth, memory_order_relaxed) > call->depth)
        ct_lane_leave(producer->lane, call->depth);
    ct_record_release(producer);
    writer->wants_bell |= ct_wants_doorbell(producer->lane, producer->position);
}

/* Updates the open calls shown in the thread's lane, after the calls that have returned have been written to
 * it. */
static void show_open(struct ct_thread *thread, void *data)
{
    struct writer *writer = data;
    struct ct_probe_open open[CT_PROBE_OPEN];
    uint32_t depth;
    if (thread->index >= CT_PROBE_THREADS ||
        !ct_open_calls_read(&writer->shared_threads[thread->index], thread->identity.tid, open, &depth) ||
        (depth == 0 && !thread->producer))
        return;
    struct ct_producer *producer = lane_of(writer, thread);
    if (!producer || ct_open_calls_are_shown(producer->lane, open, depth, writer->plan->entry_ns))
        return;
    for (uint32_t i = 0; i < depth && open[i].function < writer->plan->functions->count; i++)
        ct_lane_enter(producer->lane, i, id_of_call(writer, open[i].function, open[i].code),
                      open[i].start + writer->plan->entry_ns);
    if (atomic_load_explicit(&producer->lane->depth, memory_order_relaxed) > depth)
        ct_lane_leave(producer->lane, depth);
}

static void begin_thread(struct writer *writer, const struct ct_probe_record *record)
{
    struct ct_thread *thread = ct_thread_table_get(&writer->threads, record->tid);
    if (!thread)
        return;
    thread->index = record->function;
    memcpy(thread->identity.name.name, record->name, sizeof(thread->identity.name.name) - 1);
}

static void note_doubt(struct writer *writer, const struct ct_probe_record *record)
{
    struct ct_thread *thread = ct_thread_table_get(&writer->threads, record->tid);
    if (!thread)
        return;
    thread->is_hooks = ct_hook_segment_passed(writer->plan->hook, record->lane_tid, record->position);
    thread->hooks_start = record->call_start;
}

/* Counts a call as lost if the previous writer was killed between taking it from the ring and writing it. */
static void adopt_call(struct writer *writer)
{
    const uint32_t in_flight = __atomic_exchange_n(writer->plan->in_flight, 0, __ATOMIC_ACQUIRE);
    if (in_flight > 0 && in_flight <= CT_PROBE_FUNCTIONS)
        __atomic_fetch_add(&writer->lost[in_flight - 1].calls, 1, __ATOMIC_RELAXED);
}

/* Removes the thread. If it was killed inside a call, its lane is kept, since the lane shows that call. */
static void end_thread(struct writer *writer, uint32_t tid)
{
    struct ct_thread *thread = ct_thread_table_find(&writer->threads, tid);
    if (!thread)
        return;
    if (writer->segment)
        show_open(thread, writer);
    struct ct_producer *producer = thread->producer;
    ct_thread_table_remove(&writer->threads, tid);
    if (producer && atomic_load_explicit(&producer->lane->depth, memory_order_relaxed) == 0)
        ct_thread_give_back_for(producer);
}

static void take_record(struct writer *writer, const union body *body)
{
    const struct ct_probe_record *record = &body->record;
    switch ((enum ct_probe_kind)record->kind) {
    case CT_PROBE_CALL:
    case CT_PROBE_HOOKED:
    case CT_PROBE_IOCTL:
        take_call(writer, body);
        break;
    case CT_PROBE_THREAD:
        begin_thread(writer, record);
        break;
    case CT_PROBE_EXIT:
        end_thread(writer, record->tid);
        break;
    case CT_PROBE_DOUBT:
        note_doubt(writer, record);
        break;
    }
}

/* ---- a look ---- */

/* Writes all records that the ring contains at the beginning of this function, but none that are added later,
 * so that the loop always ends. Returns whether there were any records. */
static bool drain(struct writer *writer)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const uint64_t end = ct_kernel_ring_end(&writer->ring);
    size_t bytes;
    bool any = false;
    for (const void *record;
         (record = ct_kernel_ring_next(&writer->ring, end, sizeof(struct ct_probe_record), &bytes));
         any = true) {
        union body copy;
        memcpy(&copy, record, bytes < sizeof(copy) ? bytes : sizeof(copy));
        const bool is_call = copy.record.kind == CT_PROBE_CALL || copy.record.kind == CT_PROBE_HOOKED ||
                             copy.record.kind == CT_PROBE_IOCTL;
        if (is_call)
            __atomic_store_n(writer->plan->in_flight, copy.record.function + 1U, __ATOMIC_RELEASE);
        ct_kernel_ring_pass(&writer->ring);
        take_record(writer, &copy);
        __atomic_store_n(writer->plan->in_flight, 0, __ATOMIC_RELEASE);
    }
    /* All records beyond `end` were reserved after `now_ns`, so the end times in them are also later
     * (calls.h). */
    if (ct_kernel_ring_is_read(&writer->ring, end))
        writer->read_ns = now_ns - writer->plan->return_ns;
    return any;
}

static uint64_t take_count(uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED) == 0 ? 0
                                                         : __atomic_exchange_n(count, 0, __ATOMIC_ACQUIRE);
}

/* Reports the calls that have been skipped or lost since the last report. Removes the reported calls from the
 * map, so that a writer that replaces this one does not report them again. */
static void report_losses(struct writer *writer)
{
    const uint32_t functions = __atomic_load_n(&writer->plan->functions->count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; writer->segment && i < functions; i++) {
        struct ct_probe_lost *lost = &writer->lost[i];
        const uint64_t calls = take_count(&lost->calls), skipped = take_count(&lost->skipped);
        if (calls > 0)
            ct_record_lose_many(writer->segment, id_of(writer, i), calls, take_count(&lost->ns),
                                writer->complete);
        if (skipped > 0)
            ct_record_skip_many(writer->segment, id_of(writer, i), skipped, take_count(&lost->skipped_ns));
        writer->wants_bell |= calls > 0 || skipped > 0;
    }
}

/* For the arrivals writer: advances `arrived_ns` if every process that has made a call has a segment. */
static void note_arrivals(struct writer *writer)
{
    const uint64_t now_ns = ct_monotonic_ns();
    const uint64_t end = ct_kernel_ring_end(&writer->notices);
    bool all_have = ct_kernel_ring_is_read(&writer->notices, end);
    for (uint32_t i = 0; all_have && i < CT_PROBE_PROCESSES; i++)
        all_have = __atomic_load_n(&writer->plan->functions->arriving[i], __ATOMIC_ACQUIRE) == 0;
    if (all_have)
        writer->arrived_ns = now_ns;
    else
        writer->busy_until_ns = now_ns + BUSY_NS;
}

static void look(struct writer *writer)
{
    const uint64_t now_ns = ct_monotonic_ns();
    if (waits_for_hook(writer, now_ns))
        return;
    look_after_segment(writer, now_ns);
    if (is_arrivals(writer))
        note_arrivals(writer);
    if (has_channel(writer)) {
        if (drain(writer))
            writer->busy_until_ns = now_ns + BUSY_NS;
        report_losses(writer);
        if (writer->segment)
            ct_thread_table_each(&writer->threads, show_open, writer);
    }
    writer->complete = writer->read_ns < writer->arrived_ns ? writer->read_ns : writer->arrived_ns;
    if (!writer->segment)
        return;
    atomic_store_explicit(&writer->segment->selections,
                          atomic_load_explicit(&ct_control->selections, memory_order_acquire),
                          memory_order_release);
    /* The release pairs with the acquire in ct_shm_read_complete(). All calls up to the time `complete` have
     * been published and, in the arrivals writer, all segments have been counted. */
    atomic_store_explicit(&writer->segment->complete, writer->complete, memory_order_release);
    if (writer->wants_bell)
        ct_daemon_ring();
    writer->wants_bell = false;
}

/* ---- its life ---- */

static int open_maps(struct writer *writer)
{
    const struct ct_writer_plan *plan = writer->plan;
    const size_t threads = sizeof(struct ct_probe_thread) * CT_PROBE_THREADS;
    const size_t lost = sizeof(struct ct_probe_lost) * CT_PROBE_FUNCTIONS;
    int error =
        is_arrivals(writer) ? ct_kernel_ring_map(&writer->notices, plan->notices, CT_NOTICES_BYTES) : 0;
    if (!error && has_channel(writer))
        error = ct_kernel_ring_map(&writer->ring, plan->ring, CT_PROBE_RING_BYTES);
    if (error || !has_channel(writer))
        return error;
    void *shared_threads = mmap(NULL, threads, PROT_READ, MAP_SHARED, plan->threads, 0);
    void *losses = mmap(NULL, lost, PROT_READ | PROT_WRITE, MAP_SHARED, plan->lost, 0);
    if (shared_threads == MAP_FAILED || losses == MAP_FAILED)
        return -errno;
    writer->shared_threads = shared_threads;
    writer->lost = losses;
    return 0;
}

/* Returns whether the process has ended, and was not killed by a signal. */
static bool has_exited(const struct ct_writer_plan *plan)
{
    const uint32_t end = plan->end ? __atomic_load_n(plan->end, __ATOMIC_ACQUIRE) : 0;
    return end & CT_PROBE_ENDED && !WIFSIGNALED((int)(end & ~(uint32_t)CT_PROBE_ENDED));
}

/* Waits until it is time for the next look(). Sets *ended to true if no more records can follow. */
static void wait_for_more(struct writer *writer, int poll, bool *ended)
{
    int descriptor;
    struct epoll_event events[CT_WATCHED_COUNT];
    const int count = epoll_wait(poll, events, CT_WATCHED_COUNT,
                                 ct_monotonic_ns() < writer->busy_until_ns ? BUSY_MS : IDLE_MS);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == CT_WATCHED_LINK &&
            ct_link_take(writer->plan->link, &descriptor) == CT_LINK_EXEC)
            writer->flags |= CT_SEGMENT_EXITING;
        *ended |= events[i].data.u32 >= CT_WATCHED_PROCESS;
    }
}

int ct_writer_run(const struct ct_writer_plan *plan)
{
    static struct writer writer;
    char name[16];
    writer = (struct writer){ .plan = plan,
                              .complete = plan->since_ns,
                              .read_ns = plan->ring >= 0 ? plan->since_ns : UINT64_MAX,
                              .arrived_ns = plan->notices >= 0 ? plan->since_ns : UINT64_MAX,
                              .absent_ns = plan->absent_ns,
                              .flags = plan->flags };
    snprintf(name, sizeof(name), "probe-%d", plan->pid);
    prctl(PR_SET_NAME, name, 0, 0, 0);
    ct_fork_begin();
    if (plan->pidfd >= 0 && plan->maker == CT_MAKER_PROBE)
        ct_target_open(plan->pid, plan->uid, plan->pidfd, plan->end);
    const int poll = ct_link_watch(plan->ring, plan->notices, plan->pidfd, plan->link);
    if (poll < 0 || !ct_thread_table_begin(&writer.threads) || open_maps(&writer) != 0)
        return 1;
    if (has_channel(&writer)) {
        adopt_call(&writer);
        ct_thread_table_adopt(&writer.threads, writer.shared_threads, plan->pid);
    }
    bool ended = plan->pidfd < 0;
    while (!ended) {
        look(&writer);
        wait_for_more(&writer, poll, &ended);
    }
    /* Threads may have been preempted while they were writing a record, so wait for these records. */
    const uint64_t patience_ns = ct_monotonic_ns() + LOOK_NS;
    do
        look(&writer);
    while (has_channel(&writer) && !ct_kernel_ring_is_read(&writer.ring, ct_kernel_ring_end(&writer.ring)) &&
           ct_monotonic_ns() < patience_ns);
    look(&writer);
    if (has_exited(plan))
        writer.flags |= CT_SEGMENT_EXITING;
    leave_segment(&writer, writer.flags | CT_SEGMENT_LEFT);
    return 0;
}
