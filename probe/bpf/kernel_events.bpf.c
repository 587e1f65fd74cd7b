/* Kernel events inside open calls: page faults, and the times when a thread is off the processor. The events
 * are recorded like calls, as functions of the `kernel` layer (functions.h). */
#include "tasks.bpf.h"

/* The processes selected with --pid. If `watched_count` is 0, events of all processes may be recorded. Kernel
 * events are frequent, so the programs ignore other processes before they look anything up. */
const volatile __u32 watched[CT_PROBE_WATCHED];
const volatile __u32 watched_count;

static __always_inline bool is_watched(const struct task_struct *thread)
{
    for (__u32 i = 0; i < CT_PROBE_WATCHED && i < watched_count; i++) {
        if ((__u32)thread->tgid == watched[i])
            return true;
    }
    return watched_count == 0;
}

/* Where an event belongs. */
struct place {
    __u32 channel, tid, depth;
};

static struct task *state_of(struct task_struct *thread)
{
    return bpf_task_storage_get(&tasks, thread, 0, 0);
}

/* Returns whether the thread is in a call that the probe records. */
static bool is_in_call(const struct task *task)
{
    return task && !task->is_companion && task->depth > 0 && task->depth <= CT_PROBE_OPEN &&
           task->channel < CT_PROBE_PROCESSES && !task->frame[(task->depth - 1) % CT_PROBE_OPEN].is_visited;
}

static struct place place_of(const struct task *task)
{
    return (struct place){ task->channel, task->tid, task->depth };
}

/* Checks whether the current thread has an open call, either in the hook's lane or in a hooked function. If
 * so, sets *place and returns true. */
static bool find_in_hook(const struct task *task, struct place *place)
{
    const struct ct_probe_companion *companion = companion_of_current();
    if (!companion)
        return false;
    place->channel = companion->channel;
    place->tid = (__u32)bpf_get_current_pid_tgid();
    place->depth = depth_in_hook(companion);
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
    count_recorded(event);
}

/* Returns why a thread is being switched off the processor. A state of 0 means that the thread is
 * runnable. */
static __u32 reason_of(const struct task_struct *thread, bool is_preempted)
{
    const __u64 state = bpf_core_field_exists(thread->__state)
                            ? thread->__state
                            : (__u64)((const struct task_struct___5_13 *)thread)->state;
    return is_preempted || state == 0 ? CT_EVENT_PREEMPTED : CT_EVENT_BLOCKED;
}

/* Called while the thread that leaves the processor is still the current thread, so its memory can be
 * read. */
static void begin_pause(struct task_struct *thread, bool is_preempted)
{
    struct task *task = state_of(thread);
    struct place place;
    lose_pause(task);
    if (is_in_call(task)) {
        task->off_event = reason_of(thread, is_preempted);
        task->off_ns = bpf_ktime_get_ns();
        return;
    }
    if (!find_in_hook(task, &place))
        return;
    const __u32 event = reason_of(thread, is_preempted);
    struct pause pause = { .channel = place.channel, .depth = place.depth, .event = event };
    pause.ns = bpf_ktime_get_ns();
    if (bpf_map_update_elem(&pauses, &place.tid, &pause, BPF_ANY) != 0)
        lose(place.channel, event, 0);
}

static void end_pause(struct task_struct *thread)
{
    struct task *task = state_of(thread);
    if (is_in_call(task) && task->off_ns) {
        const struct place place = place_of(task);
        write_event(&place, task->off_event, task->off_ns);
        task->off_ns = 0;
        return;
    }
    __u32 tid = (__u32)thread->pid;
    const struct pause *pause = has_companions ? bpf_map_lookup_elem(&pauses, &tid) : 0;
    if (!pause)
        return;
    const struct place place = { pause->channel, tid, pause->depth };
    write_event(&place, pause->event, pause->ns);
    bpf_map_delete_elem(&pauses, &tid);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool is_preempted, struct task_struct *from, struct task_struct *to)
{
    if (is_watched(from))
        begin_pause(from, is_preempted);
    if (is_watched(to))
        end_pause(to);
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault, unsigned long address, struct pt_regs *registers, unsigned long error)
{
    struct task_struct *current = bpf_get_current_task_btf();
    if (!is_watched(current))
        return 0;
    const struct task *task = state_of(current);
    struct place place;
    if (is_in_call(task))
        place = place_of(task);
    else if (!find_in_hook(task, &place))
        return 0;
    write_event(&place, CT_EVENT_PAGE_FAULT, 0);
    return 0;
}
