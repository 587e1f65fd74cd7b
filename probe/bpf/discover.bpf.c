/* Counts calls to functions in kernel modules that are made by the threads of one program and its children.
 * Returns are not probed: the stack pointer shows which calls have returned. */
#include "kernel.h"

#include "discovered.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

enum {
    FRAMES = 32,           /* open calls of a thread; deeper ones have this depth */
    STACK_BYTES = 1 << 15, /* a thread's stack in the kernel is not longer */
};

/* An open call. */
struct frame {
    __u64 sp;     /* at the entry */
    __u64 caller; /* the return address, which is at `sp` until the call has returned */
};

/* The registers of a thread when it entered the kernel. A later system call or page fault enters the kernel
 * with different registers, unless the program runs in a loop. */
struct entry {
    __u64 ip, sp, number, argument[3];
};

/* A thread whose calls are counted. */
struct thread {
    __u32 depth;
    struct entry entry; /* during which the last call was made */
    struct frame frame[FRAMES];
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread);
} threads SEC(".maps");

/* Indexed by function number. The probe sets the number of entries before it loads the programs. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ct_discovered);
} discovered SEC(".maps");

/* The number of threads whose calls are not counted, because there was no memory for their state. */
__u64 missed_threads;

SEC("tp_btf/sched_process_fork")
int BPF_PROG(follow, struct task_struct *parent, struct task_struct *child)
{
    if (bpf_task_storage_get(&threads, parent, 0, 0) &&
        !bpf_task_storage_get(&threads, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
        __sync_fetch_and_add(&missed_threads, 1);
    return 0;
}

static __u64 read_word(__u64 address)
{
    __u64 word = 0;
    bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
    return word;
}

/* Drops all open calls if the thread has entered the kernel again since the last call, because they must have
 * returned. */
static void check_entry(struct thread *thread, struct task_struct *task)
{
    struct pt_regs registers;
    if (bpf_probe_read_kernel(&registers, sizeof(registers), (const void *)bpf_task_pt_regs(task)) != 0)
        return;
    const struct entry entry = { .ip = registers.rip,
                                 .sp = registers.rsp,
                                 .number = registers.orig_rax,
                                 .argument = { registers.rdi, registers.rsi, registers.rdx } };
    const struct entry *last = &thread->entry;
    if (last->ip != entry.ip || last->sp != entry.sp || last->number != entry.number ||
        last->argument[0] != entry.argument[0] || last->argument[1] != entry.argument[1] ||
        last->argument[2] != entry.argument[2])
        thread->depth = 0;
    thread->entry = entry;
}

/* Adds a frame for a call that begins at the stack pointer `sp`, and returns its depth. Open calls that began
 * at or below `sp` have returned, or have jumped to this function. An open call above `sp` has returned if
 * its return address has been overwritten. */
static __u32 enter(struct thread *thread, __u64 sp)
{
    __u32 depth = thread->depth;
    for (int i = 0; i < FRAMES && depth > 0; i++) {
        const struct frame *last = &thread->frame[(depth - 1) % FRAMES];
        if (last->sp > sp && read_word(last->sp) == last->caller)
            break;
        depth--;
    }
    if (depth < FRAMES) {
        thread->frame[depth % FRAMES] = (struct frame){ .sp = sp, .caller = read_word(sp) };
        thread->depth = depth + 1;
    } else {
        thread->depth = FRAMES;
    }
    return depth;
}

static int count(__u64 sp, __u64 cookie)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct thread *thread = bpf_task_storage_get(&threads, task, 0, 0);
    /* Interrupt handlers do not belong to the thread that they interrupt, and run on their own stacks. */
    if (!thread || sp - (__u64)task->stack >= STACK_BYTES)
        return 0;
    check_entry(thread, task);
    const __u32 depth = enter(thread, sp), number = cookie;
    struct ct_discovered *function = bpf_map_lookup_elem(&discovered, &number);
    if (function && __sync_fetch_and_add(&function->calls, 1) == 0) {
        function->first_ns = bpf_ktime_get_ns();
        function->depth = depth;
    }
    return 0;
}

SEC("kprobe.multi")
int count_multi(struct pt_regs *registers)
{
    return count(PT_REGS_SP(registers), bpf_get_attach_cookie(registers));
}

SEC("kprobe")
int count_event(struct pt_regs *registers)
{
    return count(PT_REGS_SP(registers), bpf_get_attach_cookie(registers));
}

char ct_license[] SEC("license") = "GPL";
