/* System calls that open, map and close the device files of NVIDIA's kernel driver. They are recorded as
 * functions with fields in the `kernel` layer (functions.c). The hook does not record these system calls, so
 * the probe also records them in processes that have the hook.
 *
 * The tracepoints fire for every process. The programs check the process first, and then the file. */
#include "devices.bpf.h"

#include "hook_rule.h"
#include "ioctl_layout.h"

/* The record of the sys_enter_… tracepoints, as described in their `format` files. A BPF program may only
 * read as many arguments as its system call has. */
struct entry_record {
    __u64 common[2];
    __u64 argument[6];
};

/* The index of each value in a frame's `argument` array. */
enum {
    NAME = 0, /* of the device file */
    PATH = 0, /* of openat(): the address of the path */
    BYTES = CT_DEVICE_NAME_BYTES / 8,
};

/* ---- files ---- */

static bool is_in_recorded_process(void)
{
    const struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    return (task && (task->is_companion || task->channel < CT_PROBE_PROCESSES)) || companion_of_current() ||
           recorded_channel() < CT_PROBE_PROCESSES;
}

static bool is_drivers(const struct file *file)
{
    const __u32 device = device_of(file);
    return device != 0 &&
           (device == devices.uvm || device == devices.uvm_tools || device == devices.modeset ||
            (devices.control && (device ^ devices.control) >> CT_DEVICE_MINOR_BITS == 0));
}

static void read_name(char *name, const struct file *file)
{
    bpf_probe_read_kernel_str(name, CT_DEVICE_NAME_BYTES, BPF_CORE_READ(file, f_path.dentry, d_name.name));
}

enum verdict { NO, YES, UNKNOWN };

/* Returns whether the path names a device file of the driver. The answer is unknown if the path has been
 * paged out, since BPF programs cannot wait for memory. */
static enum verdict is_drivers_path(__u64 address)
{
    static const char nvidia[] = "nvidia";
    char path[CT_DEVICE_FOLDER_BYTES + sizeof(nvidia)];
    const __u32 bytes = devices.folder_bytes;
    if (bytes == 0 || bytes >= CT_DEVICE_FOLDER_BYTES)
        return NO;
    if (bpf_probe_read_user_str(path, sizeof(path), (const void *)address) < 0)
        return UNKNOWN;
    for (__u32 i = 0; i < CT_DEVICE_FOLDER_BYTES && i < bytes; i++) {
        if (path[i] != devices.folder[i])
            return NO;
    }
    char name[CT_DEVICE_NAME_BYTES];
    if (bpf_probe_read_user_str(name, sizeof(name), (const void *)(address + bytes)) < 0)
        return UNKNOWN;
    for (__u32 i = 0; i < sizeof(nvidia) - 1; i++) {
        if (name[i] != nvidia[i])
            return NO;
    }
    for (__u32 i = 0; i < sizeof(name) && name[i]; i++) {
        if (name[i] == '/')
            return NO;
    }
    return YES;
}

/* ---- entries ---- */

/* Adds a frame for the system call. Returns NULL if the call is not recorded. */
static struct frame *enter(__u32 function, struct task **task, __u32 *depth)
{
    __u32 base = 0;
    *task = task_of(function, false, &base);
    if (!*task || (*task)->has_ended)
        return 0;
    *depth = depth_of_system_call(*task);
    return add_kernel_frame(*task, function, base, *depth);
}

/* Begins a system call on a file descriptor, if its file is a device of the driver. */
static void enter_on(__u32 function, __u64 fd, __u64 bytes)
{
    struct task *task;
    __u32 depth;
    const struct file *file = is_in_recorded_process() ? file_of(fd) : 0;
    if (!is_drivers(file))
        return;
    struct frame *frame = enter(function, &task, &depth);
    if (!frame)
        return;
    frame->argument[NAME] = 0;
    read_name((char *)&frame->argument[NAME], file);
    frame->argument[BYTES] = bytes;
    begin_frame(task, frame, depth);
}

SEC("tracepoint")
int close_enter(const struct entry_record *entry)
{
    enter_on(CT_EVENT_CLOSE, entry->argument[0], 0);
    return 0;
}

SEC("tracepoint")
int mmap_enter(const struct entry_record *entry)
{
    enum { ANONYMOUS = 0x20 }; /* MAP_ANONYMOUS of include/uapi/asm-generic/mman-common.h */
    if (!(entry->argument[3] & ANONYMOUS))
        enter_on(CT_EVENT_MMAP, entry->argument[4], entry->argument[1]);
    return 0;
}

SEC("tracepoint")
int openat_enter(const struct entry_record *entry)
{
    struct task *task;
    __u32 depth;
    const __u64 path = entry->argument[1];
    if (!is_in_recorded_process() || is_drivers_path(path) == NO)
        return 0;
    struct frame *frame = enter(CT_EVENT_OPENAT, &task, &depth);
    if (!frame)
        return 0;
    frame->argument[PATH] = path;
    begin_frame(task, frame, depth);
    return 0;
}

/* ---- returns ---- */

/* Removes the frame of the returning system call and returns it, or returns NULL if there is none. */
static struct frame *leave(__u32 function, struct task **task, __u32 *depth)
{
    *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    *depth = *task ? depth_in_kernel(*task, function, function) : CT_PROBE_OPEN;
    if (!*task || *depth >= CT_PROBE_OPEN)
        return 0;
    if (*depth + 1 < (*task)->depth)
        drop_frames(*depth + 1);
    (*task)->depth = *depth;
    return (*task)->channel < CT_PROBE_PROCESSES ? &(*task)->frame[*depth % CT_PROBE_OPEN] : 0;
}

/* Writes the record of the call. The frame contains the name of the device file. */
static void write_call(const struct task *task, const struct frame *frame, __u32 depth, __s64 result)
{
    __u32 channel = task->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_hooked *call = ring ? bpf_ringbuf_reserve(ring, sizeof(*call), 0) : 0;
    if (!call) {
        lose(channel, frame->function, bpf_ktime_get_ns() - frame->start);
        return;
    }
    begin_record(&call->record, task->tid, CT_PROBE_HOOKED);
    call->record.function = (__u16)frame->function;
    call->record.depth = recorded_depth(task->is_companion ? frame->base + depth : depth);
    call->record.start = frame->start;
    call->record.end = bpf_ktime_get_ns();
    call->record.status = result < 0 ? error_of(result) : 0;
    __builtin_memcpy(call->text[0], &frame->argument[NAME], CT_DEVICE_NAME_BYTES);
    call->value[1] = frame->argument[BYTES];
    call->value[2] = (__u64)result;
    call->record.read = 1U << 0 | 1U << 1 | (result >= 0) << 2;
    submit(ring, call, false);
    count_recorded(frame->function);
}

static void leave_named(__u32 function, __s64 result)
{
    struct task *task;
    __u32 depth;
    const struct frame *frame = leave(function, &task, &depth);
    if (!frame)
        return;
    write_call(task, frame, depth, result);
    show_end(task, depth);
}

SEC("tracepoint")
int close_leave(const struct exit_record *exit)
{
    leave_named(CT_EVENT_CLOSE, exit->result);
    return 0;
}

SEC("tracepoint")
int mmap_leave(const struct exit_record *exit)
{
    leave_named(CT_EVENT_MMAP, exit->result);
    return 0;
}

/* The returned descriptor shows whether the opened file is a device of the driver. If the call failed, the
 * path is checked instead. */
SEC("tracepoint")
int openat_leave(const struct exit_record *exit)
{
    struct task *task;
    __u32 depth;
    struct frame *frame = leave(CT_EVENT_OPENAT, &task, &depth);
    if (!frame)
        return 0;
    const struct file *file = exit->result >= 0 ? file_of((__u64)exit->result) : 0;
    const __u64 path = frame->argument[PATH];
    if (file ? is_drivers(file) : is_drivers_path(path) == YES) {
        char *name = (char *)&frame->argument[NAME];
        if (file)
            read_name(name, file);
        else
            bpf_probe_read_user_str(name, CT_DEVICE_NAME_BYTES, (const void *)(path + devices.folder_bytes));
        write_call(task, frame, depth, exit->result);
    }
    show_end(task, depth);
    return 0;
}
