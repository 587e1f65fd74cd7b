/* DMA fences: a driver of a GPU or display promises that a fence will be signaled when some work is done. The
 * events are recorded as functions with fields in the `kernel` layer (functions.c).
 *
 * Threads of recorded processes create fences and wait for them. Any thread or interrupt may signal a fence,
 * so the signal is recorded as an event of the whole machine. A map contains the fences that have not been
 * signaled yet. */
#include "tasks.bpf.h"

#include "hook_rule.h"

struct fence_key {
    __u32 context, seqno; /* their lower halves, as the tracepoints have them */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CT_PROBE_FENCES);
    __type(key, struct fence_key);
    __type(value, __u8); /* not used */
} fences SEC(".maps");

extern __u32 machine_channel;

/* The record of the tracepoints, as defined in include/trace/events/dma_fence.h. ct_fences_find() checks that
 * the running kernel's record is the same. */
struct fence_record {
    __u64 common;
    __u32 driver, timeline; /* where the texts are in the record (__data_loc) */
    struct fence_key key;
};

enum { RECORD_MASK = 0xffff }; /* records are shorter */

/* Where an event belongs. */
struct place {
    __u32 channel, tid, depth, function;
};

static __noinline void read_name(struct ct_probe_hooked *hooked, __u32 field, __u64 record, __u32 location)
{
    char *to = hooked->text[field % CT_HOOK_TEXTS];
    const void *from = (const void *)(record + (location & RECORD_MASK));
    const long length = bpf_probe_read_kernel_str(to, CT_HOOK_TEXT_BYTES, from);
    if (length > 0)
        hooked->record.read |= 1U << field;
}

static void begin_event(struct ct_probe_hooked *hooked, const struct place *place, __u64 start)
{
    begin_record(&hooked->record, place->tid, CT_PROBE_HOOKED);
    hooked->record.function = (__u16)place->function;
    hooked->record.depth = recorded_depth(place->depth);
    hooked->record.end = bpf_ktime_get_ns();
    hooked->record.start = start ? start : hooked->record.end;
}

/* Writes an event whose fields are `named_fence` (functions.c). Returns false if there is no room in the
 * ring. */
static bool write_named(const struct place *place, const struct fence_record *from, __u64 start)
{
    __u32 channel = place->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_hooked *hooked = ring ? bpf_ringbuf_reserve(ring, sizeof(*hooked), 0) : 0;
    if (!hooked) {
        lose(channel, place->function, start ? bpf_ktime_get_ns() - start : 0);
        return false;
    }
    begin_event(hooked, place, start);
    read_name(hooked, 0, (__u64)from, from->driver);
    read_name(hooked, 1, (__u64)from, from->timeline);
    hooked->value[2] = from->key.context;
    hooked->value[3] = from->key.seqno;
    hooked->record.read |= 1U << 2 | 1U << 3;
    submit(ring, hooked, false);
    count_recorded(place->function);
    return true;
}

/* ---- from the start to the signal ---- */

/* If the map is full, the fence's signal would be missed, so the fence counts as lost. */
static void begin_fence(const struct fence_record *record, __u32 function)
{
    __u32 base = 0;
    const struct task *task = task_of(function, false, &base);
    if (!task || task->has_ended)
        return;
    const struct place place = { task->channel, task->tid, base + task->depth, function };
    const struct fence_key key = record->key;
    const __u8 unused = 0;
    if (bpf_map_update_elem(&fences, &key, &unused, BPF_ANY) != 0)
        lose(task->channel, function, 0);
    else if (!write_named(&place, record, 0))
        bpf_map_delete_elem(&fences, &key);
}

SEC("tracepoint")
int fence_init(const struct fence_record *record)
{
    begin_fence(record, CT_EVENT_FENCE_INIT);
    return 0;
}

SEC("tracepoint")
int fence_emit(const struct fence_record *record)
{
    begin_fence(record, CT_EVENT_FENCE_EMIT);
    return 0;
}

/* Removes the fence from the map. Returns false if the map does not contain it. */
static bool forget(const struct dma_fence *fence, struct fence_key *key)
{
    key->context = (__u32)fence->context;
    key->seqno = (__u32)fence->seqno;
    return bpf_map_lookup_elem(&fences, key) && bpf_map_delete_elem(&fences, key) == 0;
}

/* This program is not attached as a perf event, because the kernel skips perf events in an interrupt of
 * another BPF program (trace_call_bpf() in kernel/trace/bpf_trace.c). */
SEC("tp_btf/dma_fence_signaled")
int BPF_PROG(fence_signaled, struct dma_fence *fence)
{
    struct fence_key key;
    if (!forget(fence, &key))
        return 0;
    const struct place place = { machine_channel, 0, 0, CT_EVENT_FENCE_SIGNALED };
    __u32 channel = machine_channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_hooked *hooked = ring ? bpf_ringbuf_reserve(ring, CT_HOOKED_BYTES, 0) : 0;
    if (!hooked) {
        lose(channel, CT_EVENT_FENCE_SIGNALED, 0);
        return 0;
    }
    begin_event(hooked, &place, 0);
    hooked->value[0] = key.context;
    hooked->value[1] = key.seqno;
    hooked->record.read = 1U << 0 | 1U << 1;
    submit(ring, hooked, false);
    count_recorded(CT_EVENT_FENCE_SIGNALED);
    return 0;
}

/* A fence may be freed without having been signaled. */
SEC("tp_btf/dma_fence_destroy")
int BPF_PROG(fence_destroy, struct dma_fence *fence)
{
    struct fence_key key;
    forget(fence, &key);
    return 0;
}

/* ---- waits ---- */

SEC("tracepoint")
int fence_wait_enter(const struct fence_record *record)
{
    __u32 base = 0;
    struct task *task = task_of(CT_EVENT_FENCE_WAIT, false, &base);
    if (!task || task->has_ended)
        return 0;
    const __u32 depth = task->depth;
    struct frame *frame = add_kernel_frame(task, CT_EVENT_FENCE_WAIT, base, depth);
    if (frame)
        begin_frame(task, frame, depth);
    return 0;
}

SEC("tracepoint")
int fence_wait_leave(const struct fence_record *record)
{
    struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    const __u32 depth =
        task ? depth_in_kernel(task, CT_EVENT_FENCE_WAIT, CT_EVENT_FENCE_WAIT) : CT_PROBE_OPEN;
    if (!task || depth >= CT_PROBE_OPEN || task->channel >= CT_PROBE_PROCESSES)
        return 0;
    const struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    if (depth + 1 < task->depth)
        drop_frames(depth + 1);
    task->depth = depth;
    const struct place place = { task->channel, task->tid, task->is_companion ? frame->base + depth : depth,
                                 CT_EVENT_FENCE_WAIT };
    write_named(&place, record, frame->start);
    show_end(task, depth);
    return 0;
}
