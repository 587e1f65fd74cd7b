/* The BPF programs that run at entries and returns of probed functions. With uprobe sessions (Linux 6.13), a
 * single program handles entries and returns; otherwise, there is a program for each. Each thread's storage
 * contains the frames of its open calls. When a call returns, a record of it is written to the ring of the
 * process's channel. */
#include "spare.bpf.h"
#include "tasks.bpf.h"

struct task_storage tasks SEC(".maps");
struct channels_of_processes channels SEC(".maps");
struct visits_of_processes visits SEC(".maps");
struct threads_of_channels threads SEC(".maps");
struct rings_of_channels rings SEC(".maps");
struct lost_of_channels lost SEC(".maps");
struct companions_of_processes companions SEC(".maps");
struct pauses_of_threads pauses SEC(".maps");
bool has_companions;
__u64 recorded[CT_EVENT_COUNT];

/* By function. */
struct ct_probe_shape shapes[CT_PROBE_FUNCTIONS];

/* With --pid and --children, the ids of the processes that are recorded. Probes that the kernel cannot limit
 * to one process are also hit by other processes. */
const volatile bool has_named;
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, __u8);
} named SEC(".maps");

/* Drops this thread's frames from `depth` on. A kernel function always returns. If its frame is dropped here,
 * the probe has missed the return, because too many threads were in the function. The call then counts as
 * lost. */
__noinline int drop_frames(__u32 depth)
{
    struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    for (int i = 0; task && i < CT_PROBE_OPEN && task->depth > depth; i++) {
        const __u32 top = task->depth - 1;
        const struct frame *frame = &task->frame[top % CT_PROBE_OPEN];
        if (is_kernels(frame->sp))
            lose(task->channel, frame->function, 0);
        task->depth = top;
    }
    return 0;
}

/* ---- a thread's first call ---- */

struct caller {
    bool is_hook;
};

static long look_at_caller(struct task_struct *task, struct vm_area_struct *area, struct caller *caller)
{
    static const char names[][16] = { "libcudatrace.so", "memfd:libcudatr" }; /* 15 bytes are compared */
    char name[16];
    const unsigned char *from = BPF_CORE_READ(area, vm_file, f_path.dentry, d_name.name);
    if (bpf_probe_read_kernel(name, sizeof(name), from) != 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        int same = 0;
        while (same < 15 && name[same] == names[i][same])
            same++;
        caller->is_hook |= same == 15;
    }
    return 0;
}

/* Returns whether the current function was called by the hook. The probe itself could check this only later,
 * when the process may already have ended. */
static bool is_hooks(struct task_struct *current, struct pt_regs *registers)
{
    struct caller caller = { .is_hook = false };
    __u64 address;
    if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_find_vma) || RETURN_BYTES == 0 ||
        bpf_probe_read_user(&address, sizeof(address), (const void *)PT_REGS_SP(registers)) != 0)
        return false;
    bpf_find_vma(current, address, look_at_caller, &caller, 0);
    return caller.is_hook;
}

/* Announces that the process has taken the channel. Returns false if the probe has too many unread notices.
 * The process must then give up the channel, because no writer would be started for it. */
static bool announce(__u32 tgid, __u32 channel)
{
    __u64 *since = bpf_map_lookup_elem(&missed, &tgid);
    if (notify(CT_PROBE_FOUND, tgid, channel, since ? *since : 0)) {
        bpf_map_delete_elem(&missed, &tgid);
        return true;
    }
    miss(tgid, CT_FULL_MEMORY);
    return false;
}

/* Takes a spare channel for the process. Several threads of the process may call this at the same time. */
static __u32 *find_channel(struct task_struct *current, struct pt_regs *registers, __u32 tgid)
{
    __u32 channel = CT_PROBE_PROCESSES;
    if (is_hooks(current, registers)) {
        if (bpf_map_update_elem(&channels, &tgid, &channel, BPF_NOEXIST) == 0)
            notify(CT_PROBE_HOOK, tgid, channel, 0);
        return 0;
    }
    channel = take_spare(tgid);
    if (channel >= CT_PROBE_PROCESSES)
        return 0;
    if (bpf_map_update_elem(&channels, &tgid, &channel, BPF_NOEXIST) != 0) {
        return_spare(channel);
    } else if (!announce(tgid, channel)) {
        bpf_map_delete_elem(&channels, &tgid);
        return_spare(channel);
        return 0;
    }
    return bpf_map_lookup_elem(&channels, &tgid);
}

/* Takes a spare channel for a process that the probe has not recorded so far, because the hook was visiting
 * it. Several threads of the process may call this at the same time. */
static void take_over(__u32 *channel, __u32 tgid)
{
    __u32 taken = take_spare(tgid);
    if (taken >= CT_PROBE_PROCESSES)
        return;
    if (__sync_val_compare_and_swap(channel, CT_PROBE_PROCESSES, taken) != CT_PROBE_PROCESSES) {
        return_spare(taken);
    } else if (!announce(tgid, taken)) {
        __sync_val_compare_and_swap(channel, taken, CT_PROBE_PROCESSES);
        return_spare(taken);
    }
}

/* Makes the thread use its process's channel. Returns false if the process has no channel. */
static bool join_channel(struct task *task, struct task_struct *current, struct pt_regs *registers)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    __u32 *channel = bpf_map_lookup_elem(&channels, &tgid);
    if (!channel)
        channel = find_channel(current, registers, tgid);
    else if (*channel >= CT_PROBE_PROCESSES && bpf_map_lookup_elem(&visits, &tgid))
        take_over(channel, tgid);
    if (!channel || *channel >= CT_PROBE_PROCESSES)
        return false;
    join(task, *channel);
    return true;
}

/* If a process is skipped and the hook is not visiting it, each call costs only two lookups. */
static struct task *begin_task(struct task_struct *current, struct pt_regs *registers)
{
    const __u64 id = bpf_get_current_pid_tgid();
    const __u32 tgid = id >> 32;
    const __u32 *channel = bpf_map_lookup_elem(&channels, &tgid);
    const bool is_visited = bpf_map_lookup_elem(&visits, &tgid) != 0;
    if (channel && *channel >= CT_PROBE_PROCESSES && !is_visited)
        return 0;
    if (!channel && has_named && !bpf_map_lookup_elem(&named, &tgid))
        return 0;
    struct task *task = bpf_task_storage_get(&tasks, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!task) {
        /* Either the thread was interrupted while the kernel was changing its storage, or there is no memory
         * left. */
        if (channel && *channel < CT_PROBE_PROCESSES)
            lose(*channel, function_of(bpf_get_attach_cookie(registers)), 0);
        else if (!is_visited)
            miss(tgid, CT_FULL_MEMORY);
        return 0;
    }
    task->channel = CT_PROBE_PROCESSES;
    task->thread = CT_PROBE_THREADS;
    task->tid = (__u32)id;
    task->is_visited = is_visited;
    return task;
}

/* ---- visits ---- */

static bool read_visit(struct ct_probe_visit_state *state)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    const __u64 *area = bpf_map_lookup_elem(&visits, &tgid);
    return area &&
           bpf_probe_read_user(state, CT_VISIT_STATE_BYTES,
                               (const void *)(*area + CT_AREA_DATA + CT_DATA_STATE)) == 0 &&
           bpf_probe_read_user(&state->request, sizeof(state->request),
                               (const void *)(*area + CT_AREA_DATA + CT_DATA_REQUEST)) == 0 &&
           bpf_probe_read_user(&state->producer, sizeof(state->producer),
                               (const void *)(*area + CT_AREA_DATA + CT_DATA_PRODUCER)) == 0;
}

enum whose { CT_HOOKS, CT_OURS, CT_IN_DOUBT };

/* Returns whether the hook or the probe records the call that is now returning. The hook takes a lane for the
 * thread, and writes the record before the call returns. If the hook has left the process during the call, it
 * may already have written the record. In that case, the writer decides. */
static enum whose whose_call(const struct frame *frame)
{
    struct ct_probe_visit_state state;
    struct ct_probe_lane lane;
    if (!read_visit(&state) || ct_visit_covers(&state))
        return CT_HOOKS;
    read_lane(state.producer, &lane);
    if (!frame->lane.tid)
        return lane.tid ? CT_HOOKS : CT_OURS;
    if (lane.tid != frame->lane.tid)
        return CT_IN_DOUBT;
    return lane.position >> 1 != frame->lane.position >> 1 ? CT_HOOKS : CT_OURS;
}

/* Announces that the thread's next record belongs to a call that the hook may have recorded. */
static bool doubt(const struct task *task, const struct frame *frame)
{
    __u32 channel = task->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_record *record = ring ? reserve(ring, task->tid, CT_PROBE_DOUBT) : 0;
    if (!record)
        return false;
    record->position = frame->lane.position >> 1;
    record->lane_tid = frame->lane.tid;
    record->call_start = (__u32)frame->start;
    submit(ring, record, false);
    return true;
}

/* Returns whether the probe records the call that is now returning in a visited process. */
static bool is_ours(struct task *task, const struct frame *frame, struct pt_regs *registers)
{
    const enum whose whose = whose_call(frame);
    return whose != CT_HOOKS &&
           (task->channel < CT_PROBE_PROCESSES ||
            join_channel(task, bpf_get_current_task_btf(), registers)) &&
           (whose != CT_IN_DOUBT || doubt(task, frame));
}

/* ---- a call ---- */

static const struct ct_probe_shape *shape_of(__u32 function)
{
    return &shapes[function % CT_PROBE_FUNCTIONS];
}

/* ---- returns that the kernel cannot probe ---- */

/* Returns whether the thread's system calls go to a handler of the program (Syscall User Dispatch). The
 * kernel would pass the handler the system call of a probed return (Linux 6.11, x86-64). */
static bool dispatches(struct task_struct *current)
{
    if (!bpf_core_enum_value_exists(enum syscall_work_bit, SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH) ||
        !bpf_core_field_exists(current->thread_info.syscall_work))
        return false;
    const __u64 bit = bpf_core_enum_value(enum syscall_work_bit, SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH);
    return current->thread_info.syscall_work >> bit & 1;
}

/* Returns whether the thread is in a signal handler on an alternate stack above the stack of an open call. If
 * the return of another call were probed there, the kernel would take the open call for one that longjmp()
 * has left (arch_uretprobe_is_alive()). It would then kill the program when that call returns. */
static bool is_above_open_call(struct task_struct *current, const struct task *task, __u64 sp)
{
    if (task->depth == 0)
        return false;
    const __u64 begin = current->sas_ss_sp, bytes = current->sas_ss_size;
    if (sp - begin > bytes)
        return false;
    for (__u32 i = 0; i < CT_PROBE_OPEN && i < task->depth; i++) {
        const __u64 of_frame = task->frame[i].sp;
        if (of_frame < sp && of_frame - begin > bytes && !is_kernels(of_frame))
            return true;
    }
    return false;
}

/* Handles the entry into a function. Returns whether the function's return must be probed, too, which only a
 * session can omit. */
static __always_inline bool enter(struct pt_regs *registers, bool is_session)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);
    if ((task && task->is_companion) || (!task && !(task = begin_task(current, registers))))
        return false;
    struct ct_probe_visit_state visit;
    if (task->is_visited)
        task->is_visited = read_visit(&visit) && !ct_visit_is_over(&visit);
    if (!task->is_visited && task->channel >= CT_PROBE_PROCESSES && !join_channel(task, current, registers))
        return false;
    const __u64 sp = PT_REGS_SP(registers);
    const __u64 cookie = bpf_get_attach_cookie(registers);
    if (is_session && (dispatches(current) || is_above_open_call(current, task, sp))) {
        lose(task->channel, function_of(cookie), 0);
        return false;
    }
    __u32 depth = task->depth;
    if (depth > 0 && depth <= CT_PROBE_OPEN) {
        const struct frame *top = &task->frame[(depth - 1) % CT_PROBE_OPEN];
        /* A function may have two probes, because its file can be reached by two paths. The second probe must
         * be ignored. */
        if (top->sp == sp && top->function == function_of(cookie) && top->links != links_of(cookie))
            return false;
    }
    depth = enclosing_depth(task, current, sp);
    if (depth < task->depth)
        drop_frames(depth);
    if (depth >= CT_PROBE_OPEN)
        return true;
    task->depth = depth + 1;
    struct ct_probe_thread *thread = thread_of(task);
    struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    frame->sp = sp;
    frame->function = function_of(cookie);
    frame->links = links_of(cookie);
    frame->is_visited = task->is_visited;
    if (task->is_visited)
        read_lane(visit.producer, &frame->lane);
    const struct ct_probe_shape *shape = shape_of(frame->function);
    if (shape->kind != CT_SHAPE_PLAIN)
        keep_arguments(frame, shape->stack_words, registers);
    frame->start = bpf_ktime_get_ns();
    show_open(thread, frame, depth);
    return true;
}

/* Reads memory that the arguments point to. The verifier needs two bounds: `place` is a mask for the position
 * in the record, and `most` is the maximum length of a read. */
static __always_inline void read_memory(struct ct_probe_values *values, const struct ct_probe_shape *shape,
                                        __u32 place, __u32 most)
{
    for (__u32 i = 0; i < CT_PROBE_READS && i < shape->reads; i++) {
        const struct ct_probe_read *read = &shape->read[i];
        const __u32 argument = read->argument, bytes = read->bytes;
        if (argument >= CT_PROBE_ARGUMENTS || bytes > most)
            break;
        void *to = values->memory + (read->at & place);
        const void *from = (const void *)(values->argument[argument] + read->offset);
        if (values->argument[argument] != 0 && (read->is_text ? bpf_probe_read_user_str(to, bytes, from) > 0
                                                              : bpf_probe_read_user(to, bytes, from) == 0))
            values->record.read |= 1U << i;
    }
}

static __always_inline void fill_call(struct ct_probe_record *record, const struct task *task,
                                      const struct frame *frame, __u32 depth, struct pt_regs *registers)
{
    begin_record(record, task->tid, CT_PROBE_CALL);
    record->function = (__u16)frame->function;
    record->depth = (__u8)depth;
    record->status = (__s32)PT_REGS_RC(registers);
    record->start = frame->start;
    record->end = bpf_ktime_get_ns();
}

/* A BPF program can only reserve records of a constant size, so each kind of shape needs a separate call. */
#define WRITE(bytes, rest)                                                                                   \
    {                                                                                                        \
        struct ct_probe_values *values = bpf_ringbuf_reserve(ring, bytes, 0);                                \
        if (!values)                                                                                         \
            return false;                                                                                    \
        fill_call(&values->record, task, frame, depth, registers);                                           \
        rest;                                                                                                \
        submit(ring, values, shape->is_urgent);                                                              \
        return true;                                                                                         \
    }
#define COPY_ARGUMENTS() __builtin_memcpy(values->argument, frame->argument, sizeof(values->argument))

/* Writes the record of a call. Returns false if there is no room in the ring. */
static bool write_call(void *ring, const struct task *task, const struct frame *frame, __u32 depth,
                       struct pt_regs *registers)
{
    const struct ct_probe_shape *shape = shape_of(frame->function);
    switch (shape->kind) {
    case CT_SHAPE_VALUES:
        WRITE(CT_PROBE_VALUES_BYTES, COPY_ARGUMENTS())
    case CT_SHAPE_SMALL:
        WRITE(CT_PROBE_VALUES_BYTES + CT_PROBE_SMALL_BYTES, {
            COPY_ARGUMENTS();
            read_memory(values, shape, CT_PROBE_SMALL_BYTES - CT_PROBE_SMALL_READ_BYTES - 1,
                        CT_PROBE_SMALL_READ_BYTES);
        })
    case CT_SHAPE_LARGE:
        WRITE(CT_PROBE_VALUES_BYTES + CT_PROBE_LARGE_BYTES, {
            COPY_ARGUMENTS();
            read_memory(values, shape, CT_PROBE_LARGE_BYTES - CT_PROBE_READ_BYTES - 1, CT_PROBE_READ_BYTES);
        })
    default:
        WRITE(sizeof(struct ct_probe_record), )
    }
}

/* Handles the return from a function. `is_entered` is true if the probe is known to have seen the entry. */
static void leave(struct pt_regs *registers, bool is_entered)
{
    struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    if (!task || task->is_companion)
        return;
    const __u64 sp = PT_REGS_SP(registers) - RETURN_BYTES;
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        const __u64 of_frame = task->frame[(depth - 1) % CT_PROBE_OPEN].sp;
        if (of_frame >= sp && !is_kernels(of_frame))
            break;
        depth--;
    }
    if (depth < task->depth)
        drop_frames(depth);
    const struct frame *frame = &task->frame[(depth - 1) % CT_PROBE_OPEN];
    if (depth == 0 || frame->sp != sp) {
        /* Either the thread had too many open calls, or the entry was not seen, or the return has already
         * been handled. It is also possible that the frame was dropped by a call on a stack at a higher
         * address, such as the stack of a signal handler. */
        if (is_entered || depth == CT_PROBE_OPEN)
            lose(task->channel, function_of(bpf_get_attach_cookie(registers)), 0);
        return;
    }
    task->depth = --depth;
    if (!frame->is_visited || is_ours(task, frame, registers)) {
        __u32 channel = task->channel;
        void *ring = bpf_map_lookup_elem(&rings, &channel);
        if (!ring || !write_call(ring, task, frame, depth, registers))
            lose(task->channel, frame->function, bpf_ktime_get_ns() - frame->start);
    }
    struct ct_probe_thread *thread = thread_of(task);
    if (thread)
        thread->depth = depth;
}

/* At a return, the instruction pointer is not at the function, but at the place where the caller continues.
 * The kernel has a function for this check, but its prototype differs between versions, so libbpf would
 * refuse to load the programs. */
static bool is_at_entry(struct pt_regs *registers)
{
    return PT_REGS_IP(registers) == bpf_get_func_ip(registers);
}

SEC("uprobe")
int call_session(struct pt_regs *registers)
{
    if (is_at_entry(registers))
        return enter(registers, true) ? 0 : 1; /* 1: do not probe the return */
    leave(registers, true);
    return 0;
}

SEC("uprobe")
int call_enter(struct pt_regs *registers)
{
    enter(registers, false);
    return 0;
}

SEC("uretprobe")
int call_leave(struct pt_regs *registers)
{
    leave(registers, false);
    return 0;
}

/* ---- the ends of threads and programs ---- */

/* For each channel, how its process has ended (CT_PROBE_ENDED). It is stored here because the ring may be
 * full. */
__u32 ends[CT_PROBE_PROCESSES];

static void end_thread(struct task *task)
{
    struct ct_probe_thread *thread = thread_of(task);
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        barrier_var(depth);
        if (!is_kernels(task->frame[(depth - 1) % CT_PROBE_OPEN].sp))
            break;
        depth--;
    }
    if (depth < task->depth)
        drop_frames(depth);
    __u32 channel = task->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    if (ring)
        announce_end(ring, task->tid);
    /* If the thread was killed inside a call, its entry in the map is kept, because it shows the call. */
    if (thread)
        thread->depth = depth;
    if (thread && depth == 0)
        thread->tid = 0;
    task->thread = CT_PROBE_THREADS; /* another thread may take the entry */
    task->has_ended = true;
}

/* Announces the thread's end to the companion's writer, which has a lane for each thread with events. */
static void end_in_companion(__u32 channel)
{
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    if (ring)
        announce_end(ring, (__u32)bpf_get_current_pid_tgid());
}

static void end_process(__u32 channel, const struct task_struct *current)
{
    if (channel < CT_PROBE_PROCESSES)
        ends[channel] = CT_PROBE_ENDED | current->exit_code;
}

/* With --children, records the new process if its parent is recorded. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
    const __u32 from = parent->tgid, to = child->tgid;
    const __u8 is_named = 1;
    if (from != to && bpf_map_lookup_elem(&named, &from) &&
        bpf_map_update_elem(&named, &to, &is_named, BPF_ANY) != 0)
        miss(to, CT_FULL_NONE_FREE);
    return 0;
}

SEC("raw_tp/sched_process_exit")
int thread_exit(void *context)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);
    lose_pause(task);
    if (task)
        end_thread(task);
    const struct ct_probe_companion *companion = companion_of_current();
    if (companion)
        end_in_companion(companion->channel);
    /* The process's last thread is ending, so the kernel may reuse the process id. */
    if (BPF_CORE_READ(current, signal, live.counter) == 0) {
        const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
        __u32 *channel = bpf_map_lookup_elem(&channels, &tgid);
        if (companion)
            end_process(companion->channel, current);
        else if (channel)
            end_process(*channel, current);
        bpf_map_delete_elem(&companions, &tgid);
        bpf_map_delete_elem(&channels, &tgid);
        bpf_map_delete_elem(&visits, &tgid);
        bpf_map_delete_elem(&executed, &tgid);
        bpf_map_delete_elem(&missed, &tgid);
        bpf_map_delete_elem(&named, &tgid);
    }
    return 0;
}

SEC("raw_tp/sched_process_exec")
int program_exec(void *context)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct task_struct *current = bpf_get_current_task_btf();
    struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);
    if (task) {
        end_thread(task);
        bpf_task_storage_delete(&tasks, current);
    }
    __u32 *channel = bpf_map_lookup_elem(&channels, &tgid);
    if (channel) {
        __u64 now = bpf_ktime_get_ns();
        bpf_map_update_elem(&executed, &tgid, &now, BPF_ANY);
        if (*channel < CT_PROBE_PROCESSES)
            ends[*channel] |= CT_PROBE_EXECUTED;
        notify(CT_PROBE_EXEC, tgid, *channel, 0);
        bpf_map_delete_elem(&channels, &tgid);
    }
    bpf_map_delete_elem(&companions, &tgid);
    bpf_map_delete_elem(&visits, &tgid);
    bpf_map_delete_elem(&missed, &tgid);
    return 0;
}

char ct_license[] SEC("license") = "GPL";
