/* Requests to NVIDIA's kernel driver: ioctl() system calls on its devices. They are recorded as functions of
 * the `ioctl` layer, just as the hook would record them (hook/ioctl/ioctl.c), and share the hook's decoding.
 *
 * The ioctl() tracepoints fire for every process. The programs check the request number first, because it
 * excludes nearly all ioctls of other drivers immediately. */
#include "devices.bpf.h"

#include "ioctl_layout.h"

static bool peek(uint64_t address, void *value, uint32_t bytes)
{
    return bpf_probe_read_user(value, bytes, (const void *)address) == 0;
}

#include "ioctl_parse.h" /* needs peek() */

struct ct_probe_devices devices;

/* The release of the kernel driver (ct_ioctl_release()), or 0 if unknown. It is the same for all
 * processes. */
__u32 release;
/* True if the probe itself has determined the release, so that the versions that programs pass to the kernel
 * are ignored. */
bool is_release_known;

/* The record of the sys_enter_ioctl tracepoint, as described in its `format` file. */
struct entry_record {
    __u64 common[2];
    __u64 fd, request, argument;
};

/* The index of each value in the `argument` array of a request's frame. */
enum { STATUS_ADDRESS, BYTES, VERSION_ADDRESS, REQUEST };

/* ---- the file ---- */

static bool is_driver(__u32 device, enum ct_ioctl_language language)
{
    const __u32 minor = device & ((1U << CT_DEVICE_MINOR_BITS) - 1);
    if (device == 0)
        return false;
    if (language == CT_IOCTL_OF_UVM)
        return device == devices.uvm || device == devices.uvm_tools;
    if (language == CT_IOCTL_OF_MODESET)
        return device == devices.modeset;
    return devices.control && (device ^ devices.control) >> CT_DEVICE_MINOR_BITS == 0 &&
           minor != CT_IOCTL_MINOR_MODESET;
}

/* ---- the entry ---- */

/* Returns whether the probe records the driver calls of this process. If the hook records the driver calls of
 * a process, it also records the process's requests. */
static bool is_in_recorded_process(void)
{
    const struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    if (task && task->is_companion)
        return false;
    return (task && task->channel < CT_PROBE_PROCESSES) || recorded_channel() < CT_PROBE_PROCESSES;
}

static __always_inline struct ct_ioctl parse(enum ct_ioctl_language language, __u32 request, __u64 argument)
{
    if (language == CT_IOCTL_OF_UVM)
        return parse_uvm(request, argument, release);
    if (language == CT_IOCTL_OF_MODESET)
        return parse_modeset(request, argument, release);
    return parse_escape(request, argument, release);
}

SEC("tracepoint")
int ioctl_enter(const struct entry_record *entry)
{
    const __u32 request = (__u32)entry->request;
    const enum ct_ioctl_language language = ct_ioctl_language(request);
    if (language == CT_IOCTL_LANGUAGES || !is_in_recorded_process() ||
        !is_driver(device_of(file_of(entry->fd)), language))
        return 0;
    struct task *task = recorded_task(language == CT_IOCTL_OF_UVM       ? CT_EVENT_UVM
                                      : language == CT_IOCTL_OF_MODESET ? CT_EVENT_MODESET
                                                                        : CT_EVENT_ESCAPE);
    if (!task)
        return 0;
    const struct ct_ioctl ioctl = parse(language, request, entry->argument);
    const __u32 function = CT_EVENT_ESCAPE + ioctl.space - CT_IOCTL_ESCAPE;
    const __u32 depth = depth_of_system_call(task);
    struct frame *frame = add_kernel_frame(task, function, 0, depth);
    if (!frame)
        return 0;
    frame->code = ioctl.code;
    frame->argument[STATUS_ADDRESS] = ioctl.status_offset >= 0 ? ioctl.address + ioctl.status_offset : 0;
    frame->argument[BYTES] = ioctl.bytes;
    frame->argument[REQUEST] = request;
    /* In nv_ioctl_rm_api_version_t, the version string follows two words. */
    frame->argument[VERSION_ADDRESS] =
        language == CT_IOCTL_ESCAPES && (request & 0xff) == CT_ESCAPE_CHECK_VERSION ? entry->argument + 8 : 0;
    begin_frame(task, frame, depth);
    return 0;
}

/* ---- the return ---- */

static __s32 status_of(const struct frame *frame, __s64 result)
{
    __s32 status = 0;
    if (result < 0)
        return error_of(result);
    if (frame->argument[STATUS_ADDRESS])
        peek(frame->argument[STATUS_ADDRESS], &status, sizeof(status));
    return status;
}

static void write(const struct task *task, const struct frame *frame, __u32 depth, __s64 result)
{
    __u32 channel = task->channel;
    void *ring = bpf_map_lookup_elem(&rings, &channel);
    struct ct_probe_ioctl *request = ring ? bpf_ringbuf_reserve(ring, sizeof(*request), 0) : 0;
    if (!request) {
        lose(channel, frame->function, bpf_ktime_get_ns() - frame->start);
        return;
    }
    begin_record(&request->record, task->tid, CT_PROBE_IOCTL);
    request->record.function = (__u16)frame->function;
    request->record.depth = (__u8)depth;
    request->record.start = frame->start;
    request->record.end = bpf_ktime_get_ns();
    request->record.status = status_of(frame, result);
    request->code = frame->code;
    request->request = frame->argument[REQUEST];
    request->bytes = frame->argument[BYTES];
    submit(ring, request, false);
}

/* The first request of libcuda contains the version of libcuda, so that the kernel driver can check that both
 * versions are the same. */
static void learn_release(const struct frame *frame)
{
    char version[8];
    if (is_release_known || !frame->argument[VERSION_ADDRESS] ||
        !peek(frame->argument[VERSION_ADDRESS], version, sizeof(version)))
        return;
    const __u32 found = parse_release(version, sizeof(version));
    if (found)
        release = found;
}

SEC("tracepoint")
int ioctl_leave(const struct exit_record *exit)
{
    struct task *task = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);
    const __u32 depth = task ? depth_in_kernel(task, CT_EVENT_ESCAPE, CT_EVENT_MODESET) : CT_PROBE_OPEN;
    if (!task || depth >= CT_PROBE_OPEN)
        return 0;
    if (depth + 1 < task->depth)
        drop_frames(depth + 1);
    task->depth = depth;
    const struct frame *frame = &task->frame[depth % CT_PROBE_OPEN];
    write(task, frame, depth, exit->result);
    if (exit->result >= 0)
        learn_release(frame);
    show_end(task, depth);
    return 0;
}
