/* The state of threads, and the functions that write records to the channels' rings, for all BPF programs.
 * The maps are defined in calls.bpf.c. */
#ifndef CT_PROBE_TASKS_BPF_H
#define CT_PROBE_TASKS_BPF_H

#include "kernel.h"

#include "visits.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* The size of the return address that a call instruction pushes and a return pops. */
#if defined(__TARGET_ARCH_x86)
enum { RETURN_BYTES = 8 };
#else
enum { RETURN_BYTES = 0 };
#endif

struct frame {
    __u64 sp, start;
    __u32 function;
    __u32 links;                        /* the links whose probe added the frame */
    __u32 code;                         /* of a request to the kernel driver */
    struct ct_probe_lane lane;          /* of a visited process: read_lane() at the entry */
    __u32 base;                         /* of a companion: depth_in_hook() at the entry */
    bool is_visited;                    /* the hook may record the call */
    __u64 argument[CT_PROBE_ARGUMENTS]; /* not set if the shape is plain */
};

struct task {
    __u32 channel; /* of its process; CT_PROBE_PROCESSES for none, which only a visited process may have */
    __u32 thread;  /* index in the channel's map of threads, CT_PROBE_THREADS for none */
    __u32 depth;
    __u32 tid;
    __u32 off_event;   /* enum ct_probe_event: why the thread left the processor in a call */
    __u64 off_ns;      /* and when; 0 while it runs */
    bool has_ended;    /* the kernel still runs it, for example to close its files */
    bool is_visited;   /* its process had a visit that was not over when the last call began */
    bool is_companion; /* the hook records its calls: only hooks have frames here */
    struct frame frame[CT_PROBE_OPEN];
};

struct task_storage {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task);
};
extern struct task_storage tasks SEC(".maps");

/* Maps a process id to the process's channel, or to CT_PROBE_PROCESSES if the process is not recorded. The
 * map is large because there may be many processes without a channel. */
struct channels_of_processes {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16 * CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, __u32);
};
extern struct channels_of_processes channels SEC(".maps");

/* Maps a process id to the hook's visit to the process. A process that was started with the hook has no
 * entry. */
struct visits_of_processes {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16 * CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, __u64); /* the address of CT_AREA_CODE */
};
extern struct visits_of_processes visits SEC(".maps");

/* Maps a process id to the companion of the process's hook. Such a process has no channel in `channels`. */
struct companions_of_processes {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, struct ct_probe_companion);
};
extern struct companions_of_processes companions SEC(".maps");
/* True as soon as any process has a companion. */
extern bool has_companions;

/* Returns the companion of the current process, or NULL. */
static inline const struct ct_probe_companion *companion_of_current(void)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    return has_companions ? bpf_map_lookup_elem(&companions, &tgid) : 0;
}

/* ---- the hook's lanes ---- */

/* Reads the beginning of this thread's lane. `producer` is taken from the hook's struct ct_segment. Sets the
 * lane's thread id to 0 if the hook has given the thread no lane, or has left the lane. */
static inline void read_lane(__u64 producer, struct ct_probe_lane *lane)
{
    const __u64 thread = bpf_get_current_task_btf()->thread.fsbase;
    __u64 its_producer, address;
    if (!producer ||
        bpf_probe_read_user(&its_producer, sizeof(its_producer), (const void *)(thread + producer)) != 0 ||
        bpf_probe_read_user(&address, sizeof(address), (const void *)its_producer) != 0 || !address ||
        bpf_probe_read_user(lane, sizeof(*lane), (const void *)address) != 0)
        lane->tid = 0;
}

/* Returns how many open calls the hook's lane shows for the current thread. If the thread is currently
 * writing the record of a call, that call does not count, because its end time has already been read, or will
 * be read immediately. */
static inline __u32 depth_in_hook(const struct ct_probe_companion *companion)
{
    struct ct_probe_lane lane;
    read_lane(companion->producer, &lane);
    const __u32 ending = lane.position & 1;
    return lane.tid && lane.depth > ending ? lane.depth - ending : 0;
}

/* ---- channels ---- */

/* Each channel has three maps: a ring, a map of threads, and a map of lost calls. */
struct thread_places {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CT_PROBE_THREADS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ct_probe_thread));
};
struct threads_of_channels {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __array(values, struct thread_places);
};
extern struct threads_of_channels threads SEC(".maps");

struct ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, CT_PROBE_RING_BYTES);
};
struct rings_of_channels {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __array(values, struct ring);
};
extern struct rings_of_channels rings SEC(".maps");

struct lost_calls {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CT_PROBE_FUNCTIONS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ct_probe_lost));
};
struct lost_of_channels {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __array(values, struct lost_calls);
};
extern struct lost_of_channels lost SEC(".maps");

/* ---- records ---- */

static inline void begin_record(struct ct_probe_record *record, __u32 tid, __u32 kind)
{
    record->tid = tid;
    record->function = 0;
    record->depth = 0;
    record->kind = kind;
    record->status = 0;
    record->read = 0;
}

/* Limits a depth to the maximum that a record can contain. */
static inline __u8 recorded_depth(__u32 depth)
{
    return depth < CT_PROBE_OPEN ? depth : CT_PROBE_OPEN - 1;
}

static inline struct ct_probe_record *reserve(void *ring, __u32 tid, __u32 kind)
{
    struct ct_probe_record *record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
    if (record)
        begin_record(record, tid, kind);
    return record;
}

/* How many records have been written of each kernel event. */
extern __u64 recorded[CT_EVENT_COUNT];

static inline void count_recorded(__u32 event)
{
    if (event < CT_EVENT_COUNT)
        __sync_fetch_and_add(&recorded[event], 1);
}

/* The writer polls the ring, so it is woken only if the ring has filled up quickly, or if the record is
 * urgent. */
static inline void submit(void *ring, void *record, bool is_urgent)
{
    const bool is_much = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > CT_PROBE_WAKE_BYTES;
    bpf_ringbuf_submit(record, is_much || is_urgent ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static inline struct ct_probe_lost *lost_of(__u32 channel, __u32 function)
{
    void *of_process = bpf_map_lookup_elem(&lost, &channel);
    return of_process ? bpf_map_lookup_elem(of_process, &function) : 0;
}

/* Counts a lost call that has no record. */
static inline void lose(__u32 channel, __u32 function, __u64 ns)
{
    struct ct_probe_lost *calls = lost_of(channel, function);
    if (!calls)
        return;
    __sync_fetch_and_add(&calls->ns, ns);
    __sync_fetch_and_add(&calls->calls, 1);
}

/* Counts a call that is skipped on purpose. */
static inline void skip(__u32 channel, __u32 function, __u64 ns)
{
    struct ct_probe_lost *calls = lost_of(channel, function);
    if (!calls)
        return;
    __sync_fetch_and_add(&calls->skipped_ns, ns);
    __sync_fetch_and_add(&calls->skipped, 1);
}

/* ---- pauses ---- */

/* A pause of a thread whose calls the hook records: the thread is off the processor during a call. */
struct pause {
    __u32 channel;
    __u32 depth;
    __u32 event; /* enum ct_probe_event: why the thread left the processor */
    __u32 reserved;
    __u64 ns; /* when it left */
};

/* Indexed by thread id. The memory is allocated in advance, because nothing can be allocated while the
 * scheduler holds its locks. */
struct pauses_of_threads {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16 * CT_PROBE_PROCESSES);
    __type(key, __u32);
    __type(value, struct pause);
};
extern struct pauses_of_threads pauses SEC(".maps");

/* Counts the current thread's pause as lost if the thread runs, but the kernel has not reported the end of
 * the pause. Some kernels report no switch from certain threads to others. `task` may be NULL. */
static inline void lose_pause(struct task *task)
{
    if (task && task->off_ns) {
        lose(task->channel, task->off_event, 0);
        task->off_ns = 0;
    }
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    const struct pause *pause = has_companions ? bpf_map_lookup_elem(&pauses, &tid) : 0;
    if (!pause)
        return;
    lose(pause->channel, pause->event, 0);
    bpf_map_delete_elem(&pauses, &tid);
}

/* ---- threads ---- */

/* The lower half of a probe's cookie is the function's number, and the upper half is the number of the links
 * (programs.c) or the rule (hooks.bpf.c). */
static inline __u32 function_of(__u64 cookie)
{
    return (__u32)cookie;
}

static inline __u32 links_of(__u64 cookie)
{
    return cookie >> 32;
}

/* Takes an entry in the channel's map of threads. Tries only a few entries, chosen by the thread id. */
static inline __u32 take_thread(__u32 channel, __u32 tid)
{
    enum { TRIES = 8 };
    void *of_process = bpf_map_lookup_elem(&threads, &channel);
    if (!of_process)
        return CT_PROBE_THREADS;
    for (__u32 i = 0; i < TRIES; i++) {
        __u32 key = (tid + i * 61) % CT_PROBE_THREADS;
        struct ct_probe_thread *thread = bpf_map_lookup_elem(of_process, &key);
        if (thread && __sync_val_compare_and_swap(&thread->tid, 0, tid) == 0) {
            thread->depth = 0;
            return key;
        }
    }
    return CT_PROBE_THREADS;
}

static inline struct ct_probe_thread *thread_of(const struct task *task)
{
    __u32 channel = task->channel, key = task->thread;
    void *of_process = key < CT_PROBE_THREADS ? bpf_map_lookup_elem(&threads, &channel) : 0;
    return of_process ? bpf_map_lookup_elem(of_process, &key) : 0;
}

/* Announces the current thread, whose entry is at `index` in the map of threads. */
static inline void announce_thread(void *ring, __u32 tid, __u32 index)
{
    struct ct_probe_record *record = reserve(ring, tid, CT_PROBE_THREAD);
    if (!record)
        return;
    record->function = (__u16)index;
    bpf_get_current_comm(record->name, sizeof(record->name));
    submit(ring, record, false);
}

/* Announces that the thread has ended. */
static inline void announce_end(void *ring, __u32 tid)
{
    struct ct_probe_record *record = reserve(ring, tid, CT_PROBE_EXIT);
    if (!record)
        return;
    record->start = record->end = bpf_ktime_get_ns();
    submit(ring, record, false);
}

/* Makes the thread use its process's channel. */
static inline void join(struct task *task, __u32 channel)
{
    task->channel = channel;
    task->thread = take_thread(channel, task->tid);
    void *ring = bpf_map_lookup_elem(&rings, &task->channel);
    if (ring)
        announce_thread(ring, task->tid, task->thread);
}

enum { EXITING = 4 }; /* PF_EXITING of include/linux/sched.h */

/* Returns the channel of this thread's process, or CT_PROBE_PROCESSES if the process is not recorded. */
static inline __u32 recorded_channel(void)
{
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    const __u32 *channel = bpf_map_lookup_elem(&channels, &tgid);
    if (!channel || *channel >= CT_PROBE_PROCESSES || bpf_map_lookup_elem(&visits, &tgid) ||
        BPF_CORE_READ(bpf_get_current_task_btf(), flags) & EXITING)
        return CT_PROBE_PROCESSES;
    return *channel;
}

/* Returns the state of this thread, or NULL if its process is not recorded. If there is no memory for the
 * state, counts the call of the function as lost. Must not be called while the kernel holds locks of the
 * scheduler. */
static inline struct task *recorded_task(__u32 function)
{
    struct task_struct *current = bpf_get_current_task_btf();
    struct task *task = bpf_task_storage_get(&tasks, current, 0, 0);
    if (task && task->channel < CT_PROBE_PROCESSES)
        return task;
    const __u32 channel = recorded_channel();
    if (channel >= CT_PROBE_PROCESSES)
        return 0;
    task = bpf_task_storage_get(&tasks, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!task) {
        lose(channel, function, 0);
        return 0;
    }
    task->tid = (__u32)bpf_get_current_pid_tgid();
    join(task, channel);
    return task;
}

/* Returns the state of a thread whose driver calls the hook records, or NULL if the current call of the
 * function must not be recorded. `task` is NULL if the thread has no state yet. */
static inline struct task *companion_task(__u32 function, bool only_in_calls,
                                          const struct ct_probe_companion *companion, struct task *task,
                                          __u32 base)
{
    struct task_struct *current = bpf_get_current_task_btf();
    const bool is_known = task && task->is_companion;
    if (only_in_calls && base == 0 && (!is_known || task->depth == 0))
        return 0;
    if (is_known)
        return task;
    if (BPF_CORE_READ(current, flags) & EXITING)
        return 0;
    /* If the thread made a call before its process had a companion, it already has a state. */
    task = bpf_task_storage_get(&tasks, current, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!task) {
        lose(companion->channel, function, 0);
        return 0;
    }
    task->is_companion = true;
    task->depth = 0;
    task->tid = (__u32)bpf_get_current_pid_tgid();
    join(task, companion->channel);
    return task;
}

/* Returns the state of this thread, or NULL if the current call of the function must not be recorded. Sets
 * *base to the number of open calls that have no frame, because the hook records them. Must not be called
 * while the kernel holds locks of the scheduler. */
static inline struct task *task_of(__u32 function, bool only_in_calls, __u32 *base)
{
    struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    const struct ct_probe_companion *companion = companion_of_current();
    *base = companion ? depth_in_hook(companion) : 0;
    if (companion)
        return companion_task(function, only_in_calls, companion, task, *base);
    if (only_in_calls && (!task || task->depth == 0))
        return 0;
    return recorded_task(function);
}

/* ---- open calls ---- */

static inline bool is_kernels(__u64 sp)
{
    return (__s64)sp < 0;
}

/* Returns whether the frame belongs to a system call on a device of the kernel driver. */
static inline bool is_system_call(const struct frame *frame)
{
    return (frame->function >= CT_EVENT_ESCAPE && frame->function <= CT_EVENT_MODESET) ||
           (frame->function >= CT_EVENT_OPENAT && frame->function <= CT_EVENT_CLOSE);
}

/* Returns the depth of the innermost kernel frame whose function number is in the range from `first` to
 * `last`, or CT_PROBE_OPEN if there is none. */
static inline __u32 depth_in_kernel(const struct task *task, __u32 first, __u32 last)
{
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        barrier_var(depth); /* keeps the index: the verifier does not follow a pointer that moves back */
        const struct frame *frame = &task->frame[(depth - 1) % CT_PROBE_OPEN];
        if (!is_kernels(frame->sp))
            break;
        if (frame->function >= first && frame->function <= last)
            return depth - 1;
        depth--;
    }
    return CT_PROBE_OPEN;
}

/* Returns whether the frame's call encloses a call that begins at the stack pointer `sp`. If not, the frame's
 * call was left by longjmp or an exception, or the probe has missed its return. An interrupt handler runs on
 * a separate stack, so its calls always count as enclosed. */
static inline bool encloses(const struct frame *frame, __u64 sp)
{
    enum { KERNEL_STACK_BYTES = 16384 };
    if (is_kernels(frame->sp) != is_kernels(sp))
        return is_kernels(sp);
    return frame->sp > sp || (is_kernels(sp) && frame->sp / KERNEL_STACK_BYTES != sp / KERNEL_STACK_BYTES);
}

/* Returns whether the function was entered by a jump at the end of another probed function (a tail call). In
 * that case, its return address is the kernel's trampoline, because the probe of the other function has
 * replaced the address. */
static inline bool is_tail_call(struct task_struct *current, __u64 sp)
{
    const struct xol_area *area = BPF_CORE_READ(current, mm, uprobes_state.xol_area);
    __u64 address;
    return RETURN_BYTES > 0 && area &&
           bpf_probe_read_user(&address, sizeof(address), (const void *)sp) == 0 &&
           address == BPF_CORE_READ(area, vaddr);
}

/* Returns the depth of a call that begins at the stack pointer `sp`, ignoring the frames of calls that have
 * already been left. */
static inline __u32 enclosing_depth(const struct task *task, struct task_struct *current, __u64 sp)
{
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        const struct frame *top = &task->frame[(depth - 1) % CT_PROBE_OPEN];
        if (encloses(top, sp) || (top->sp == sp && (is_kernels(sp) || is_tail_call(current, sp))))
            break;
        depth--;
    }
    return depth;
}

/* Drops this thread's frames from `depth` on. This function is not static, so that the verifier checks it
 * only once. */
int drop_frames(__u32 depth);

/* Stores the arguments that are passed in registers, and the first `words` words of the stack. */
static inline void keep_arguments(struct frame *frame, __u32 words, struct pt_regs *registers)
{
    frame->argument[0] = PT_REGS_PARM1(registers);
    frame->argument[1] = PT_REGS_PARM2(registers);
    frame->argument[2] = PT_REGS_PARM3(registers);
    frame->argument[3] = PT_REGS_PARM4(registers);
    frame->argument[4] = PT_REGS_PARM5(registers);
    frame->argument[5] = registers->r9;
    if (words == 0)
        return;
    barrier_var(words); /* keeps both comparisons: the verifier does not follow words - 1 */
    if (words > CT_PROBE_STACK)
        return;
    const void *from = (const void *)(frame->sp + RETURN_BYTES);
    if (is_kernels(frame->sp))
        bpf_probe_read_kernel(&frame->argument[CT_PROBE_REGISTERS], words * sizeof(frame->argument[0]), from);
    else
        bpf_probe_read_user(&frame->argument[CT_PROBE_REGISTERS], words * sizeof(frame->argument[0]), from);
}

/* Returns the depth of the system call that is beginning. Drops any frames of kernel functions: none can be
 * open when a thread enters the kernel, so their returns were missed. */
static inline __u32 depth_of_system_call(struct task *task)
{
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        barrier_var(depth); /* keeps the index: the verifier does not follow a pointer that moves back */
        if (!is_kernels(task->frame[(depth - 1) % CT_PROBE_OPEN].sp))
            break;
        depth--;
    }
    if (depth < task->depth)
        drop_frames(depth);
    return depth;
}

/* Shows an open call to the writer. `thread` may be NULL. */
static inline void show_open(struct ct_probe_thread *thread, const struct frame *frame, __u32 depth)
{
    if (!thread)
        return;
    thread->open[depth % CT_PROBE_OPEN].function = frame->function;
    thread->open[depth % CT_PROBE_OPEN].code = frame->code;
    thread->open[depth % CT_PROBE_OPEN].start = frame->start;
    barrier();
    thread->depth = depth + 1;
}

/* Adds a frame without a return address, for a system call or a wait in the kernel. `base` comes from
 * task_of(). The caller fills in the frame, and then calls begin_frame(). Returns NULL if too many calls are
 * open. */
static inline struct frame *add_kernel_frame(struct task *task, __u32 function, __u32 base, __u32 depth)
{
    if (depth >= CT_PROBE_OPEN) {
        lose(task->channel, function, 0);
        return 0;
    }
    task->depth = depth + 1;
    struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    /* Functions of the kernel that are called within this call use the stack below the saved registers. */
    frame->sp = bpf_task_pt_regs(bpf_get_current_task_btf());
    frame->function = function;
    frame->base = base;
    frame->is_visited = false;
    return frame;
}

static inline void begin_frame(const struct task *task, struct frame *frame, __u32 depth)
{
    frame->start = bpf_ktime_get_ns();
    show_open(thread_of(task), frame, depth);
}

/* Shows that the call at the depth has ended, after its record has been written. */
static inline void show_end(const struct task *task, __u32 depth)
{
    struct ct_probe_thread *thread = thread_of(task);
    if (thread)
        thread->depth = depth;
}

#endif
