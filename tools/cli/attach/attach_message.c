#include "attach_message.h"

#include "say.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MS_NS 1000000

void ct_attachment_print(const struct ct_attachment *attachment, const char *clause)
{
    const struct ct_target *target = &attachment->target;
    const char *space = *clause == ':' ? "" : " ";
    if (*target->name)
        ct_fail(0, "%s: process %d (%s)%s%s", attachment->command, (int)target->pid, target->name, space,
                clause);
    else
        ct_fail(0, "%s: process %d%s%s", attachment->command, (int)target->pid, space, clause);
}

void ct_attachment_print_recorded(const struct ct_attachment *attachment)
{
    ct_attachment_print(attachment, "is recorded");
}

bool ct_attachment_fail(struct ct_attachment *attachment, const char *why)
{
    ct_attachment_print(attachment, why);
    attachment->state = CT_ATTACHMENT_FAILED;
    return false;
}

void ct_attachment_say_why(const struct ct_attachment *attachment)
{
    ct_attachment_print(attachment, attachment->target.why);
}

bool ct_attachment_fail_with(struct ct_attachment *attachment, int error)
{
    static const struct {
        int error;
        const char *why;
    } known[] = {
        { -ESRCH, "has ended, or executes another program now" },
        { -EPERM, "may not be traced: a debugger has attached to it, or the permissions are insufficient; "
                  "see `cudatrace doctor`" },
        { -ETIMEDOUT, "has no thread that stops: all are blocked in the kernel or frozen" },
        { -EKEYREJECTED,
          "has just installed a system call filter (seccomp), which may kill it for the system "
          "calls of attach: start it with `cudatrace run`" },
        { -ENOSYS, "has no system call instruction in its C library" },
        { -EMFILE, "has reached its limit of open files (ulimit -n); attach needs one more temporarily" },
        { -EFBIG, "may not write files as large as the library (ulimit -f): start it with a higher limit" },
        { -EBADF, "closed or replaced the descriptor of the library's file: try again" },
        { -ENFILE, "cannot open a file: the machine has reached its limit of open files" },
        { -ENOMEM, "has no room for 9 MiB more (ulimit -v), or too many mappings (vm.max_map_count)" },
        { -EAGAIN, "locks all its memory (mlockall), and may not lock 9 MiB more (ulimit -l)" },
        { -EACCES, "may not map code: a security module, or vm.memfd_noexec, forbids it" },
        { -E2BIG, "has a driver with too many functions: update cudatrace" },
        { -EFAULT, "has a driver whose table of functions is not writable" },
        { -ENOSPC, "cannot be given the library: out of memory" },
        { -ENOENT, "has an unknown driver, and a jump fits into none of its functions" },
        { -EBUSY, "had a thread in the first instructions of a function at each attempt: try again" },
        { -EMLINK, "shares its memory with another process, which cannot be stopped with it" },
        { -EEXIST, "keeps mapping memory near the driver: try again" },
        { -EIO, "has a driver whose code is not writable" },
        { -ENAMETOOLONG,
          "has loaded dozens of other builds of the library: restart it before you attach to it" },
    };
    char text[160];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].error == error)
            return ct_attachment_fail(attachment, known[i].why);
    }
    snprintf(text, sizeof(text), "cannot be attached to: %s", strerror(-error));
    return ct_attachment_fail(attachment, text);
}

void ct_attachment_end(struct ct_attachment *attachment)
{
    const struct ct_target *target = &attachment->target;
    const bool is_recorded = attachment->state == CT_ATTACHMENT_RECORDING;
    char text[128];
    snprintf(text, sizeof(text), "%s%s",
             ct_target_has_ended(target) ? "has ended" : "executes another program now",
             is_recorded ? ": its earlier calls are recorded" : ", before it was recorded");
    ct_attachment_print(attachment, text);
    attachment->state = is_recorded ? CT_ATTACHMENT_OVER : CT_ATTACHMENT_FAILED;
}

void ct_attachment_fail_alone(struct ct_attachment *attachment)
{
    char text[256];
    snprintf(text, sizeof(text),
             "was not changed: all its CUDA calls were made %s; try again, or start it with `cudatrace run`",
             attachment->alone_why);
    ct_attachment_fail(attachment, text);
}

void ct_attachment_fail_answered(struct ct_attachment *attachment)
{
    static const char *const why[] = {
        [CT_VISIT_STRANGER] =
            "has a hook of another version, which does not know this command: restart the process",
        [CT_VISIT_NO_DAEMON] = "found no daemon of the session, neither its own user's nor the system "
                               "daemon; or it cannot use the session's folder (`cudatrace doctor PID`); or "
                               "there is no memory for its records",
        [CT_VISIT_NO_SLOTS] = "has a driver without any function of a known form",
        [CT_VISIT_SILENCED] = "has a system call filter, which the hook would violate",
        [CT_VISIT_THERE] = "already records for a session",
        [CT_VISIT_NO_CLOCK] =
            "may not read a clock in the thread that would begin the recording (prctl PR_SET_TSC)",
    };
    const struct ct_area_data *data = &attachment->visitor.area.data;
    char text[CT_DATA_WHY_BYTES + 64];
    if (data->answer == CT_AREA_NOT_LOADED) {
        const char *file_why = ct_visitor_has_file(&attachment->visitor)
                                   ? "the thread that made the call has file descriptors of its own "
                                     "(unshare(CLONE_FILES)); try again, or start it with `cudatrace run`"
                                   : "it has closed the hook's file; try again";
        snprintf(text, sizeof(text), "could not load the hook: %.*s", (int)sizeof(data->why),
                 *data->why ? data->why : file_why);
        ct_attachment_fail(attachment, text);
    } else if (data->answer < sizeof(why) / sizeof(why[0]) && why[data->answer]) {
        ct_attachment_fail(attachment, why[data->answer]);
    } else {
        snprintf(text, sizeof(text),
                 "has a hook of another version (answer %" PRIu32 "): restart the process", data->answer);
        ct_attachment_fail(attachment, text);
    }
}

void ct_attachment_say(const struct ct_attachment *attachment)
{
    const struct ct_target *target = &attachment->target;
    const struct ct_visitor *visitor = &attachment->visitor;
    ct_fail(0,
            "%s: process %d (%s): driver %s, %zu of %zu functions traced by its table; area at %#" PRIx64
            "; %" PRIu64 " stops of a thread, %.3f ms in all, the longest %.3f ms",
            attachment->command, (int)target->pid, target->name, target->driver,
            target->slots.count - attachment->made.count, target->slots.functions, visitor->area.address,
            visitor->stops, (double)visitor->stopped_ns / MS_NS, (double)visitor->longest_ns / MS_NS);
    if (attachment->made.stops)
        ct_fail(0,
                "%s: process %d (%s): %" PRIu32 " more functions traced by jumps; %" PRIu64
                " stops of one or all threads, %.3f ms in all, the longest %.3f ms",
                attachment->command, (int)target->pid, target->name, attachment->made.count,
                attachment->made.stops, (double)attachment->made.stopped_ns / MS_NS,
                (double)attachment->made.longest_ns / MS_NS);
    if (attachment->recording_ns)
        ct_fail(0,
                "%s: process %d (%s): recorded after %.1f ms, including %.1f ms until its next CUDA call had "
                "loaded the hook",
                attachment->command, (int)target->pid, target->name,
                (double)(attachment->recording_ns - attachment->looked_ns) / MS_NS,
                (double)(attachment->recording_ns - attachment->armed_ns) / MS_NS);
}
