/* Kernel events inside open calls: page faults, and the times when a thread is off the processor. The events
 * are functions of the layer `kernel` (functions.h), and are recorded like calls. */
#include "tasks.bpf.h"

/* A thread of a companion that is off the processor in a call. */
struct pause {
    __u32 channel;
    __u32 depth;
    __u32 event; /* enum ct_probe_event: why the thread left the processor */
    __u32 reserved;
    __u64 ns; /* when it left */
};

/* By thread. The scheduler holds its locks, so this memory exists beforehand. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16 * CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, struct pause);
} pauses SEC(".maps");

/* Where an event belongs. */
struct place {
    __u32 channel, tid, depth;
};

/* Returns the thread's state if it is in a call that the probe records, and NULL otherwise. */
static struct task *in_call(struct task_struct *thread)
{
    struct task *task = bpf_task_storage_get(&tasks, thread, 0, 0);
    if (!task || task->is_companion || task->depth == 0 || task->depth > CT_PROBE_OPEN ||
        task->channel >= CT_PROBE_PROCESSES)
        return 0;
    return task->frame[(task->depth - 1) % CT_PROBE_OPEN].is_visited ? 0 : task;
}

static struct place place_of(const struct task *task)
{
    return (struct place){ task->channel, task->tid, task->depth };
}

/* Finds the current thread's call in the hook's lane, or of a hook. Returns whether there is one. */
static bool find_in_hook(struct place *place)
{
    const struct ct_probe_companion *companion = companion_of_current();
    if (!companion)
        return false;
    place->channel = companion->channel;
    place->tid = (__u32)bpf_get_current_pid_tgid();
    place->depth = depth_in_hook(companion);
    const struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    if (task && task->is_companion)
        place->depth += task->depth;
    return place->depth > 0;
}

static void write_event(const struct place *place, __u32 event, __u64 start)
{
    __u32 channel = place->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_record *record = ring ? reserve(ring, place->tid, CT_PROBE_CALL) : 0;
    const __u64 now = bpf_ktime_get_ns();
    if (!record) {
        lose(channel, event, start ? now - start : 0);
        return;
    }
    record->function = event;
    record->depth = recorded_depth(place->depth);
    record->start = start ? start : now;
    record->end = now;
    submit(ring, record, false);
}

/* Returns the kernel's state of a thread that is being switched off the processor. 0 means runnable. */
static __u32 state_of(struct task_struct *thread)
{
    if (bpf_core_field_exists(thread->__state))
        return BPF_CORE_READ(thread, __state);
    return BPF_CORE_READ((struct task_struct___5_13 *)thread, state);
}

/* The thread that leaves the processor is still the current one, so its memory can be read. */
static void begin_pause(__u32 event)
{
    struct place place;
    if (!find_in_hook(&place))
        return;
    struct pause pause = { .channel = place.channel, .depth = place.depth, .event = event };
    pause.ns = bpf_ktime_get_ns();
    if (bpf_map_update_elem(&pauses, &place.tid, &pause, BPF_ANY) != 0)
        lose(place.channel, event, 0);
}

static void end_pause(struct task_struct *thread)
{
    __u32 tid = BPF_CORE_READ(thread, pid);
    const struct pause *pause = bpf_map_lookup_elem(&pauses, &tid);
    if (!pause)
        return;
    const struct place place = { pause->channel, tid, pause->depth };
    write_event(&place, pause->event, pause->ns);
    bpf_map_delete_elem(&pauses, &tid);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool is_preempted, struct task_struct *from, struct task_struct *to)
{
    const __u32 event = is_preempted || state_of(from) == 0 ? CT_EVENT_PREEMPTED : CT_EVENT_BLOCKED;
    struct task *task = in_call(from);
    if (task) {
        task->off_event = event;
        task->off_ns = bpf_ktime_get_ns();
    } else if (has_companions) {
        begin_pause(event);
    }
    task = in_call(to);
    if (task && task->off_ns) {
        const struct place place = place_of(task);
        write_event(&place, task->off_event, task->off_ns);
        task->off_ns = 0;
    } else if (has_companions) {
        end_pause(to);
    }
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault, unsigned long address, struct pt_regs *registers, unsigned long error)
{
    const struct task *task = in_call(bpf_get_current_task_btf());
    struct place place;
    if (task)
        place = place_of(task);
    else if (!find_in_hook(&place))
        return 0;
    write_event(&place, CT_EVENT_PAGE_FAULT, 0);
    return 0;
}
