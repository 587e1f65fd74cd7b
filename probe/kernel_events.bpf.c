/* Kernel events inside open calls: page faults, and the times when a thread is off the processor. The events
 * are functions of the layer `kernel` (functions.h), and are recorded like calls. */
#include "tasks.bpf.h"

/* Returns the thread's state if it is in a call that the probe records, and NULL otherwise. */
static struct task *in_call(struct task_struct *thread)
{
    struct task *task = bpf_task_storage_get(&tasks, thread, 0, 0);
    if (!task || task->depth == 0 || task->depth > CT_PROBE_OPEN || task->channel >= CT_PROBE_PROCESSES)
        return 0;
    return task->frame[(task->depth - 1) % CT_PROBE_OPEN].is_visited ? 0 : task;
}

static void write_event(const struct task *task, __u32 event, __u64 start)
{
    __u32 channel = task->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_record *record = ring ? reserve(ring, task->tid, CT_PROBE_CALL) : 0;
    const __u64 now = bpf_ktime_get_ns();
    if (!record) {
        lose(channel, event, start ? now - start : 0);
        return;
    }
    record->function = event;
    record->depth = task->depth;
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

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool is_preempted, struct task_struct *from, struct task_struct *to)
{
    struct task *task = in_call(from);
    if (task) {
        task->off_event = is_preempted || state_of(from) == 0 ? CT_EVENT_PREEMPTED : CT_EVENT_BLOCKED;
        task->off_ns = bpf_ktime_get_ns();
    }
    task = in_call(to);
    if (task && task->off_ns) {
        write_event(task, task->off_event, task->off_ns);
        task->off_ns = 0;
    }
    return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault, unsigned long address, struct pt_regs *registers, unsigned long error)
{
    const struct task *task = in_call(bpf_get_current_task_btf());
    if (task)
        write_event(task, CT_EVENT_PAGE_FAULT, 0);
    return 0;
}
