/* The programs for hooks. A table (hook_table.h) defines the hooks, which record functions in the kernel and
 * in libraries, and tracepoints. All hooks use the same programs, and each hook has a rule that defines which
 * values they read.
 *
 * Hooked calls and driver calls share one stack of frames, so the depths in their rows are consistent. */
#include "tasks.bpf.h"

#include "hook_rule.h"

struct ct_hook_rule rules[CT_HOOK_RULES];

/* By rule. */
struct ct_hook_second seconds[CT_HOOK_RULES];

/* The channel for events of the whole machine. It is set before a hook with the scope `in machine` is
 * attached. */
__u32 machine_channel;

/* The address that a kernel function returns to if a kprobe awaits its return; 0 if unknown. */
__u64 trampoline;

enum { RECORD_MASK = 0xffff }; /* records are shorter */

/* The call whose values are read. */
struct call {
    const struct ct_hook_rule *rule;
    const __u64 *argument; /* of the entry; NULL for tracepoints */
    __u64 result, start, end;
    __u64 at; /* a tracepoint's record */
    __u32 tid, depth;
    __u32 channel;
    bool has_ended;  /* the thread */
    bool is_instant; /* it has no duration */
};

/* Returns the rule whose number is in the upper half of the cookie, or NULL if the rule is now used for
 * another hook. */
static const struct ct_hook_rule *rule_of(__u64 cookie)
{
    const __u32 number = links_of(cookie);
    return number < CT_HOOK_RULES && rules[number].function == function_of(cookie) ? &rules[number] : 0;
}

/* ---- values ---- */

/* Hooks on libraries never read kernel memory, because the traced program could pass any kernel address to a
 * library. */
static bool is_in_kernel(const struct call *call, __u64 address)
{
    return call->rule->is_kernel && is_kernels(address);
}

static long read_bytes(const struct call *call, void *to, __u32 bytes, __u64 from)
{
    return is_in_kernel(call, from) ? bpf_probe_read_kernel(to, bytes, (const void *)from)
                                    : bpf_probe_read_user(to, bytes, (const void *)from);
}

/* Reads the value that a source starts from: an argument, the result, or an address. */
static __u64 read_origin(const struct call *call, const struct ct_hook_source *source)
{
    const __u32 argument = source->argument;
    switch (source->origin) {
    case CT_ORIGIN_ARGUMENT:
        return call->argument && argument < CT_PROBE_ARGUMENTS ? call->argument[argument] : 0;
    case CT_ORIGIN_RESULT:
        return call->result;
    case CT_ORIGIN_PID:
        return bpf_get_current_pid_tgid() >> 32;
    case CT_ORIGIN_TID:
        return (__u32)bpf_get_current_pid_tgid();
    default:
        return call->end - call->start;
    }
}

/* Returns the address of a source in memory. The verifier needs the mask to bound offsets in a record. */
static __u64 address_of(const struct call *call, const struct ct_hook_source *source)
{
    if (source->origin == CT_ORIGIN_RECORD)
        return call->at + (source->offset & RECORD_MASK);
    return read_origin(call, source) + (__s64)source->offset;
}

/* Truncates the value to the size of the source's type. */
static __u64 typed(const struct ct_hook_source *source, __u64 value)
{
    const __u32 unused = 64 - 8 * (source->bytes & 15);
    if (unused == 0 || unused > 56)
        return value;
    return source->is_signed ? (__u64)((__s64)(value << unused) >> unused) : value << unused >> unused;
}

/* Reads a number. Returns false if the memory that contains it cannot be read. */
static __noinline bool read_number(const struct call *call, const struct ct_hook_source *source,
                                   __u64 *number)
{
    __u64 value = 0;
    if (source->origin == CT_ORIGIN_RECORD || source->form == CT_FORM_MEMORY) {
        __u32 bytes = source->bytes;
        barrier_var(bytes);
        if (bytes > sizeof(value) || read_bytes(call, &value, bytes, address_of(call, source)) != 0)
            return false;
    } else {
        value = read_origin(call, source);
    }
    *number = typed(source, value);
    return true;
}

/* Reads a string into the record. Returns its length, or 0 if it cannot be read. */
static __noinline __u64 read_text(const struct call *call, const struct ct_hook_source *source,
                                  struct ct_probe_hooked *hooked)
{
    __u64 from = address_of(call, source);
    char *to = hooked->text[source->text % CT_HOOK_TEXTS];
    if (source->form == CT_FORM_LOCATION) {
        __u32 location;
        if (bpf_probe_read_kernel(&location, sizeof(location), (const void *)from) != 0)
            return 0;
        from = call->at + (location & RECORD_MASK);
    }
    const long length = is_in_kernel(call, from)
                            ? bpf_probe_read_kernel_str(to, CT_HOOK_TEXT_BYTES, (const void *)from)
                            : bpf_probe_read_user_str(to, CT_HOOK_TEXT_BYTES, (const void *)from);
    return length > 0 ? length : 0;
}

/* ---- conditions ---- */

static bool holds(const struct ct_hook_condition *condition, __u64 value)
{
    const __u64 number = condition->number;
    const bool is_less = condition->source.is_signed ? (__s64)value < (__s64)number : value < number;
    switch (condition->comparison) {
    case CT_IS_EQUAL:
        return value == number;
    case CT_IS_UNEQUAL:
        return value != number;
    case CT_IS_LESS:
        return is_less;
    case CT_IS_LESS_OR_EQUAL:
        return is_less || value == number;
    case CT_IS_GREATER:
        return !is_less && value != number;
    case CT_IS_GREATER_OR_EQUAL:
        return !is_less;
    default:
        return (value & number) != 0;
    }
}

static __noinline bool is_wanted(const struct call *call)
{
    for (__u32 i = 0; i < CT_HOOK_CONDITIONS && i < call->rule->conditions; i++) {
        const struct ct_hook_condition *condition = &call->rule->condition[i];
        __u64 value;
        if (!read_number(call, &condition->source, &value) || !holds(condition, value))
            return false;
    }
    return true;
}

/* Returns whether the call is recorded, and not only counted. A random number costs less than a count that
 * all processors share, and no period of the calls can coincide with it. */
static bool is_in_sample(const struct ct_hook_rule *rule)
{
    const __u32 one_of = rule->one_of;
    return one_of == 0 || (one_of != CT_HOOK_COUNTS && bpf_get_prandom_u32() % one_of == 0);
}

/* Returns whether the rule's limit permits another call now. If several processors reset the count at the
 * same time, a few extra calls may be recorded at the beginning of a second. */
static bool is_within_limit(const struct call *call, __u32 rule)
{
    const __u64 number = call->end / 1000000000;
    if (call->rule->per_second == 0 || rule >= CT_HOOK_RULES)
        return true;
    struct ct_hook_second *second = &seconds[rule];
    if (second->number != number) {
        second->number = number;
        second->calls = 0;
    }
    return __sync_fetch_and_add(&second->calls, 1) < call->rule->per_second;
}

/* ---- records ---- */

static __noinline void fill(const struct call *call, struct ct_probe_hooked *hooked, bool has_texts)
{
    const struct ct_hook_rule *rule = call->rule;
    begin_record(&hooked->record, call->tid, CT_PROBE_HOOKED);
    hooked->record.function = (__u16)rule->function;
    hooked->record.depth = recorded_depth(call->depth);
    /* As for driver calls, `end` is read after the record has been reserved (calls.h). */
    hooked->record.end = bpf_ktime_get_ns();
    hooked->record.start = call->is_instant ? hooked->record.end : call->start;
    for (__u32 i = 0; i < CT_HOOK_FIELDS; i++) {
        const struct ct_hook_source *source = &rule->field[i];
        __u64 value = 0;
        bool is_read = false;
        if (i < rule->fields && source->form == CT_FORM_TASK)
            is_read = bpf_get_current_comm(hooked->task, sizeof(hooked->task)) == 0;
        else if (i < rule->fields && !ct_hook_is_text(source))
            is_read = read_number(call, source, &value);
        else if (i < rule->fields && has_texts)
            is_read = (value = read_text(call, source, hooked)) != 0;
        hooked->value[i] = value;
        hooked->record.read |= (__u32)is_read << i;
    }
}

static void write(const struct call *call, __u64 cookie)
{
    __u32 channel = call->channel;
    if (!is_wanted(call))
        return;
    if (!is_in_sample(call->rule) || !is_within_limit(call, links_of(cookie))) {
        skip(channel, call->rule->function, call->end - call->start);
        return;
    }
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_hooked *hooked = 0;
    /* If the thread has already been reported as ended, it is announced again, because the writer no longer
     * knows it. */
    if (ring && call->has_ended)
        announce_thread(ring, call->tid, CT_PROBE_THREADS);
    if (ring && call->rule->texts > 0) {
        hooked = bpf_ringbuf_reserve(ring, sizeof(*hooked), 0);
        if (hooked)
            fill(call, hooked, true);
    } else if (ring) {
        hooked = bpf_ringbuf_reserve(ring, CT_HOOKED_BYTES, 0);
        if (hooked)
            fill(call, hooked, false);
    }
    if (hooked)
        submit(ring, hooked, false);
    else
        lose(channel, call->rule->function, call->end - call->start);
    if (ring && call->has_ended)
        announce_end(ring, call->tid);
}

/* ---- functions ---- */

/* Returns whether the kernel has missed the return of the frame's function. As long as a return is awaited,
 * the return address on the stack is the trampoline's. The order of stack addresses does not show which
 * functions have returned, because each system call begins at a random stack offset. The frame of a system
 * call on a device or of a wait for a fence has no return address to check. */
static bool is_missed(const struct frame *frame, __u32 function, __u64 sp)
{
    __u64 address;
    if (!is_kernels(frame->sp) || is_system_call(frame) || frame->function == CT_EVENT_FENCE_WAIT)
        return false;
    if (frame->sp == sp && frame->function == function)
        return true;
    return trampoline != 0 &&
           bpf_probe_read_kernel(&address, sizeof(address), (const void *)frame->sp) == 0 &&
           address != trampoline;
}

/* Drops the frames of kernel functions that have already returned, before a function is entered at the stack
 * pointer `sp`. */
static void drop_missed(struct task *task, __u32 function, __u64 sp)
{
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        if (!is_missed(&task->frame[(depth - 1) % CT_PROBE_OPEN], function, sp))
            break;
        depth--;
    }
    if (depth < task->depth)
        drop_frames(depth);
}

/* Drops the frames of calls that have ended, and returns the depth of the function that is being entered. */
static __u32 depth_of_entry(struct task *task, const struct ct_hook_rule *rule, __u64 sp)
{
    if (is_kernels(sp))
        drop_missed(task, rule->function, sp);
    const __u32 depth = enclosing_depth(task, bpf_get_current_task_btf(), sp);
    if (depth < task->depth)
        drop_frames(depth);
    return depth;
}

static int enter(struct pt_regs *registers)
{
    const struct ct_hook_rule *rule = rule_of(bpf_get_attach_cookie(registers));
    __u32 base = 0;
    struct task *task = rule ? task_of(rule->function, rule->scope == CT_SCOPE_CALLS, &base) : 0;
    if (!task)
        return 0;
    const __u64 sp = PT_REGS_SP(registers);
    const __u32 depth = depth_of_entry(task, rule, sp);
    if (depth >= CT_PROBE_OPEN)
        return 0;
    task->depth = depth + 1;
    struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    frame->sp = sp;
    frame->function = rule->function;
    frame->links = links_of(bpf_get_attach_cookie(registers));
    frame->base = base;
    frame->is_visited = false;
    keep_arguments(frame, rule->stack_words, registers);
    frame->start = bpf_ktime_get_ns();
    show_open(thread_of(task), frame, depth);
    return 0;
}

/* Finds the frame of the function that is returning. Returns its depth, or CT_PROBE_OPEN if there is none. A
 * kernel function is found by its number, because the stack pointer at its return depends on the kernel's
 * version. */
static __u32 returning(struct task *task, const struct ct_hook_rule *rule, struct pt_regs *registers)
{
    const __u64 sp = PT_REGS_SP(registers) - RETURN_BYTES;
    __u32 depth = task->depth;
    for (int i = 0; i < CT_PROBE_OPEN && depth > 0 && depth <= CT_PROBE_OPEN; i++) {
        barrier_var(depth); /* keeps the index: the verifier does not follow a pointer that moves back */
        const struct frame *frame = &task->frame[(depth - 1) % CT_PROBE_OPEN];
        if (frame->function == rule->function && (rule->is_kernel || frame->sp == sp))
            return depth - 1;
        if (rule->is_kernel ? !is_kernels(frame->sp) : !is_kernels(frame->sp) && frame->sp >= sp)
            break;
        depth--;
    }
    return CT_PROBE_OPEN;
}

static int leave(struct pt_regs *registers)
{
    const __u64 cookie = bpf_get_attach_cookie(registers);
    const struct ct_hook_rule *rule = rule_of(cookie);
    struct task *task = rule ? bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0) : 0;
    if (!task || task->channel >= CT_PROBE_PROCESSES)
        return 0;
    const __u32 depth = returning(task, rule, registers);
    if (depth >= CT_PROBE_OPEN) {
        if (task->depth >= CT_PROBE_OPEN)
            lose(task->channel, rule->function, 0);
        return 0;
    }
    const struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    if (depth + 1 < task->depth)
        drop_frames(depth + 1);
    task->depth = depth;
    const struct call call = {
        .rule = rule,
        .argument = frame->argument,
        .result = PT_REGS_RC(registers),
        .start = frame->start,
        .end = bpf_ktime_get_ns(),
        .tid = task->tid,
        .depth = task->is_companion ? frame->base + depth : depth,
        .channel = task->channel,
        .has_ended = task->has_ended,
    };
    write(&call, cookie);
    struct ct_probe_thread *thread = thread_of(task);
    if (thread)
        thread->depth = depth;
    return 0;
}

SEC("uprobe")
int hook_enter(struct pt_regs *registers)
{
    return enter(registers);
}

SEC("uretprobe")
int hook_leave(struct pt_regs *registers)
{
    return leave(registers);
}

/* Records a function at its entry only. The arguments are stored temporarily where the next frame will be. */
SEC("uprobe")
int hook_at_entry(struct pt_regs *registers)
{
    const __u64 cookie = bpf_get_attach_cookie(registers);
    const struct ct_hook_rule *rule = rule_of(cookie);
    __u32 base = 0;
    struct task *task = rule ? task_of(rule->function, rule->scope == CT_SCOPE_CALLS, &base) : 0;
    if (!task)
        return 0;
    const __u64 sp = PT_REGS_SP(registers);
    const __u32 depth = depth_of_entry(task, rule, sp);
    if (depth >= CT_PROBE_OPEN) {
        lose(task->channel, rule->function, 0);
        return 0;
    }
    struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    frame->sp = sp;
    keep_arguments(frame, rule->stack_words, registers);
    const __u64 now = bpf_ktime_get_ns();
    const struct call call = {
        .rule = rule,
        .argument = frame->argument,
        .start = now,
        .end = now,
        .is_instant = true,
        .tid = task->tid,
        .depth = base + depth,
        .channel = task->channel,
    };
    write(&call, cookie);
    return 0;
}

/* ---- tracepoints ---- */

/* Records an event: either a tracepoint whose record begins at `at`, or a function with the given
 * arguments. */
static void write_event(const struct ct_hook_rule *rule, __u64 at, const __u64 *argument, __u64 cookie,
                        __u32 channel, __u32 depth)
{
    const __u64 now = bpf_ktime_get_ns();
    const struct call call = {
        .rule = rule,
        .argument = argument,
        .at = at,
        .start = now,
        .end = now,
        .is_instant = true,
        .tid = (__u32)bpf_get_current_pid_tgid(),
        .depth = depth,
        .channel = channel,
    };
    write(&call, cookie);
}

/* A thread without a state does not get one here, since the scheduler's locks may be held. */
SEC("tracepoint")
int hook_point(void *record)
{
    const __u64 cookie = bpf_get_attach_cookie(record);
    const __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    const struct ct_hook_rule *rule = rule_of(cookie);
    const struct task *task = rule ? bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0) : 0;
    const struct ct_probe_companion *companion = rule ? companion_of_current() : 0;
    if (companion && task && !task->is_companion)
        task = 0; /* from before the process had a companion */
    const __u32 *channel = companion ? &companion->channel : rule ? bpf_map_lookup_elem(&channels, &tgid) : 0;
    if (!rule || !channel || *channel >= CT_PROBE_PROCESSES || (task && task->channel != *channel))
        return 0;
    const __u32 depth = (task ? task->depth : 0) + (companion ? depth_in_hook(companion) : 0);
    if (rule->scope == CT_SCOPE_CALLS && depth == 0)
        return 0;
    if (!task || !task->has_ended)
        write_event(rule, (__u64)record, 0, cookie, *channel, depth);
    return 0;
}

/* Records a tracepoint in any thread and in interrupts. This is a separate program, because the kernel
 * attaches each program to a tracepoint only once. The probe's own hook must not prevent a user's hook on the
 * same tracepoint. */
SEC("tracepoint")
int hook_in_machine(void *record)
{
    const __u64 cookie = bpf_get_attach_cookie(record);
    const struct ct_hook_rule *rule = rule_of(cookie);
    if (rule)
        write_event(rule, (__u64)record, 0, cookie, machine_channel, 0);
    return 0;
}

/* Records the entry of a kernel function in any thread and in interrupts. */
SEC("kprobe")
int hook_entry_in_machine(struct pt_regs *registers)
{
    const __u64 cookie = bpf_get_attach_cookie(registers);
    const struct ct_hook_rule *rule = rule_of(cookie);
    if (!rule)
        return 0;
    struct frame frame = { .sp = PT_REGS_SP(registers) };
    keep_arguments(&frame, rule->stack_words, registers);
    write_event(rule, 0, frame.argument, cookie, machine_channel, 0);
    return 0;
}
