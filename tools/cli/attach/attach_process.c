#include "attach_process.h"

#include "asker.h"
#include "attach_message.h"

#include "client.h"
#include "clock.h"
#include "interrupted.h"
#include "proc.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000000, REARMS = 3 /* after calls that were not answered in time */, DISARMS = 20 };
/* How long to wait for a busy hook, and for the locks on all processes together. The hook stays busy for a
 * long time if hundreds of threads take their lanes one after the other on a few processors. */
#define LEAVE_NS UINT64_C(20000000000)
/* How long a thread may take from its grant to the next state. */
#define ASKING_NS UINT64_C(3000000000)
/* Report a stop of all threads that takes longer. */
#define LONG_STOP_NS UINT64_C(100000000)

/* ---- before ---- */

static void unlock_process(struct ct_attachment *attachment)
{
    if (attachment->lock >= 0)
        close(attachment->lock);
    attachment->lock = -1;
}

/* Waits for a thread that is still asking or loading the hook on behalf of a killed attach command. A child
 * of fork() does not have this thread. */
static void await_visit(struct ct_attachment *attachment)
{
    const uint64_t until_ns = ct_monotonic_ns() + LEAVE_NS;
    const struct ct_area *area = &attachment->visitor.area;
    while (area->address && (area->data.state == CT_AREA_TAKING || area->data.state == CT_AREA_ASKING) &&
           area->data.pid == attachment->target.inner_pid && ct_monotonic_ns() < until_ns &&
           ct_visitor_look(&attachment->visitor))
        nanosleep(&(struct timespec){ .tv_nsec = MS_NS }, NULL);
}

static bool refuse(struct ct_attachment *attachment, const char *why)
{
    struct ct_target *target = &attachment->target;
    snprintf(target->why, sizeof(target->why), "%s", why);
    target->kind = CT_TARGET_REFUSED;
    return false;
}

static bool refuse_locked(struct ct_attachment *attachment)
{
    char holder[CT_HOLDER_BYTES], why[128];
    ct_proc_describe_holder(attachment->target.pid, holder);
    if (attachment->lock == -EWOULDBLOCK)
        snprintf(why, sizeof(why), "is being attached to or detached by %s", holder);
    else
        snprintf(why, sizeof(why), "cannot be locked: %s", strerror(-attachment->lock));
    return refuse(attachment, why);
}

bool ct_attachment_open(struct ct_attachment *attachment, const char *command, pid_t pid,
                        const struct ct_library *library)
{
    *attachment = (struct ct_attachment){ .command = command, .lock = -1, .looked_ns = ct_monotonic_ns() };
    struct ct_target *target = &attachment->target;
    char why[CT_SESSION_MAX + 96];
    ct_target_open(target, pid);
    if (target->memory.fd < 0)
        return false;
    ct_visitor_begin(&attachment->visitor, &target->memory, library);
    if (target->kind == CT_TARGET_FINE && !ct_attachment_records(attachment)) {
        attachment->lock = ct_proc_lock(pid);
        if (attachment->lock < 0)
            return refuse_locked(attachment);
        /* Look for an area again, because the command that held the lock may have just mapped one. */
        ct_memory_look(&target->memory);
        ct_visitor_begin(&attachment->visitor, &target->memory, library);
        await_visit(attachment);
    }
    if (!ct_attachment_records(attachment))
        return target->kind == CT_TARGET_FINE;
    unlock_process(attachment);
    attachment->state = CT_ATTACHMENT_RECORDING;
    snprintf(why, sizeof(why), "is already attached to, in session '%.*s': run `cudatrace detach %d` first",
             CT_SESSION_MAX, attachment->visitor.area.data.visit.session, (int)pid);
    return refuse(attachment, why);
}

void ct_attachment_close(struct ct_attachment *attachment)
{
    ct_target_close(&attachment->target);
    unlock_process(attachment);
}

/* ---- made slots ---- */

/* Prepares the made slots (made_slots.h). Slots from an earlier visit stay in the list of pairs even if this
 * visit does not use them. */
static int prepare_made(struct ct_attachment *attachment)
{
    struct ct_target *target = &attachment->target;
    struct ct_made_slots *made = &attachment->made;
    const struct ct_area *area = &attachment->visitor.area;
    if (area->address && made->count == 0) {
        made->list = area->data.made_list;
        made->count = area->data.made_count;
    }
    if (!attachment->is_inline && made->count == 0)
        return 0;
    const int error = ct_made_slots_prepare(made, &target->memory, &target->slots);
    return error || target->slots.count > 0 ? error : -ENOENT;
}

/* Removes the jumps written by this or another attach command. Returns false after reporting an error. */
static bool leave_made(struct ct_attachment *attachment)
{
    struct ct_area *area = &attachment->visitor.area;
    char text[192];
    if (!area->address || !area->data.made_in)
        return true;
    attachment->made.list = area->data.made_list;
    attachment->made.count = area->data.made_count;
    const int error = ct_made_slots_leave(&attachment->made, &attachment->target.memory);
    if (!error)
        ct_area_set(area, offsetof(struct ct_area_data, made_in), 0);
    if (!error || !ct_memory_is_there(&attachment->target.memory))
        return true;
    snprintf(text, sizeof(text),
             "keeps the jumps at the beginnings of functions, which are harmless; to remove them, attach and "
             "detach again: %s",
             error == -EBUSY    ? "a thread was in one at each attempt"
             : error == -EMLINK ? "another process shares the memory"
                                : strerror(-error));
    return ct_attachment_fail(attachment, text);
}

/* Reports how many functions are recorded through jumps, and why others are not. */
static void print_made(const struct ct_attachment *attachment)
{
    const struct ct_made_slots *made = &attachment->made;
    char text[1024];
    size_t length = (size_t)snprintf(text, sizeof(text), ": %" PRIu32 " functions get jumps", made->count);
    for (int reason = CT_INLINE_FINE + 1; reason < CT_INLINE_VERDICTS && length < sizeof(text); reason++) {
        if (made->refused[reason] > 0)
            length +=
                (size_t)snprintf(text + length, sizeof(text) - length, "; %" PRIu32 " do not: they %s",
                                 made->refused[reason], ct_inline_reason((enum ct_inline_verdict)reason));
    }
    ct_attachment_print(attachment, text);
    if (made->longest_ns > LONG_STOP_NS) {
        snprintf(text, sizeof(text), ": its threads were stopped for %" PRIu64 " ms, because they are many",
                 made->longest_ns / MS_NS);
        ct_attachment_print(attachment, text);
    }
}

/* ---- the visit ---- */

static int visit(struct ct_attachment *attachment, const struct ct_visit *request)
{
    struct ct_target *target = &attachment->target;
    struct ct_made_slots *made = &attachment->made;
    struct ct_visit own = *request;
    int error = prepare_made(attachment);
    if (attachment->is_inline) {
        own.slots = made->list;
        own.slot_count = made->count;
    }
    const struct ct_visitor_plan plan = { .slots = &target->slots,
                                          .visit = &own,
                                          .made_list = made->list,
                                          .made_count = made->count,
                                          .find_dlopen = target->find_dlopen,
                                          .find_dlerror = target->find_dlerror,
                                          .find_cancel = target->find_cancel,
                                          .find_errno = target->find_errno,
                                          .find_cancel_type = target->find_cancel_type,
                                          .find_atfork = target->find_atfork,
                                          .inner_pid = target->inner_pid };
    if (!error)
        error = ct_visitor_prepare(&attachment->visitor, &plan);
    if (!error && attachment->is_inline)
        error = ct_made_slots_enter(made, &target->memory);
    if (!error)
        error = ct_visitor_arm(&attachment->visitor);
    return error;
}

/* Returns whether the program has forbidden the system calls of a visit since the process was examined. If
 * so, the process must make none, and is left with thunks that jump to their functions. */
static bool has_confined_itself(struct ct_attachment *attachment)
{
    if (ct_target_check_filters(&attachment->target) && ct_target_check_dispatch(&attachment->target))
        return false;
    ct_attachment_say_why(attachment);
    attachment->state = CT_ATTACHMENT_FAILED;
    return true;
}

bool ct_attachment_arm(struct ct_attachment *attachment, const struct ct_visit *request)
{
    struct ct_target *target = &attachment->target;
    ct_target_check_folder(target, *request->shm_dir ? request->shm_dir : CT_SHM_DIR);
    if (target->kind == CT_TARGET_FINE)
        ct_target_check_sharer(target);
    if (target->kind == CT_TARGET_FINE)
        ct_target_check_dispatch(target);
    if (ct_is_interrupted_or_hung_up())
        return ct_attachment_fail(attachment, "was not attached to, because the command was interrupted");
    /* Calls may enter a thunk at any time. */
    for (int i = 0;
         i < DISARMS && target->kind == CT_TARGET_FINE && ct_area_has_thunks(&attachment->visitor.area);
         i++) {
        nanosleep(&(struct timespec){ .tv_nsec = i * MS_NS }, NULL);
        ct_visitor_disarm(&attachment->visitor);
    }
    if (target->kind == CT_TARGET_FINE && !leave_made(attachment))
        return false;
    target->may_have_no_slots = attachment->is_inline;
    if (target->kind == CT_TARGET_FINE)
        ct_target_find_slots(target);
    if (target->kind == CT_TARGET_GONE) {
        ct_attachment_end(attachment);
        return false;
    }
    if (target->kind != CT_TARGET_FINE) {
        ct_attachment_say_why(attachment);
        attachment->state = CT_ATTACHMENT_FAILED;
        return false;
    }
    /* Look up the area again, because ct_target_find_slots() has re-read the list of mappings. */
    ct_visitor_begin(&attachment->visitor, &target->memory, attachment->visitor.hook);
    const int error = visit(attachment, request);
    if (error && !ct_memory_is_there(&target->memory)) {
        ct_attachment_end(attachment);
        return false;
    }
    if (error) {
        leave_made(attachment);
        return ct_attachment_fail_with(attachment, error);
    }
    if (attachment->is_inline)
        print_made(attachment);
    attachment->armed_ns = ct_monotonic_ns();
    attachment->state = CT_ATTACHMENT_ARMED;
    return true;
}

/* Handles the hook's answer after a call has loaded the hook. */
static void take_answer(struct ct_attachment *attachment)
{
    attachment->recording_ns = ct_monotonic_ns();
    unlock_process(attachment);
    if (attachment->visitor.area.data.answer == CT_VISIT_DONE)
        attachment->state = CT_ATTACHMENT_RECORDING;
    else
        ct_attachment_fail_answered(attachment);
}

/* Leaves thunks that could not be removed. They only jump to their functions. */
static void fail_interrupted(struct ct_attachment *attachment)
{
    if (attachment->visitor.area.data.state != CT_AREA_IDLE)
        ct_area_set(&attachment->visitor.area, CT_DATA_STATE, CT_AREA_LATE);
    ct_attachment_fail(attachment,
                       "was not recorded: something interrupts its CUDA calls again and again, such "
                       "as a signal handler that jumps out of them");
}

/* Removes the thunks of a process without a visit, and reports the reason. */
static void give_up(struct ct_attachment *attachment, bool is_long_over)
{
    const struct ct_area_data *data = &attachment->visitor.area.data;
    /* Check before the visit whether a signal has stopped the process, because the visit briefly resumes a
     * stopped thread. */
    const bool is_stopped = ct_proc_is_stopped(attachment->target.pid);
    if (has_confined_itself(attachment)) {
        ct_area_set(&attachment->visitor.area, CT_DATA_STATE, CT_AREA_LATE);
        return;
    }
    const int error = ct_visitor_disarm(&attachment->visitor);
    if (error)
        ct_attachment_fail_with(attachment, error);
    else if (data->state != CT_AREA_IDLE && !is_long_over)
        return; /* a thread has just entered a thunk */
    else if (data->state == CT_AREA_IDLE && is_stopped)
        ct_attachment_fail(attachment, "makes no CUDA call, because a signal has stopped it: resume it with "
                                       "kill -CONT; it was not changed");
    else if (data->state == CT_AREA_IDLE && attachment->alone_why)
        ct_attachment_fail_alone(attachment);
    else if (data->state == CT_AREA_IDLE && attachment->rearms > 0)
        ct_attachment_fail(attachment, "was not recorded: its calls were made before attach answered, which "
                                       "the processors are too busy for; try again");
    else if (data->state != CT_AREA_IDLE || attachment->was_answered)
        fail_interrupted(attachment);
    else
        ct_attachment_fail(attachment,
                           "made no CUDA call in this time and was not changed; use --wait to wait longer");
}

/* Returns true after reporting that another command has detached the process. */
static bool is_left(struct ct_attachment *attachment)
{
    if (ct_area_records(&attachment->visitor.area))
        return false;
    ct_attachment_print(attachment, "was detached by another command");
    attachment->state = CT_ATTACHMENT_OVER;
    return true;
}

/* Returns false if the process has exited or executed another program. The area's memory usually disappears
 * with the program. Comparing the program takes longer, so it is done less often. */
static bool is_there(struct ct_attachment *attachment)
{
    enum { PAUSE_NS = 50 * MS_NS };
    const uint64_t now_ns = ct_monotonic_ns();
    if (!ct_visitor_look(&attachment->visitor))
        return false;
    if (now_ns - attachment->proved_ns < PAUSE_NS)
        return true;
    attachment->proved_ns = now_ns;
    return ct_memory_is_there(&attachment->target.memory);
}

/* Answers a thread that asks for a grant. A signal handler or a cancellation may have ended its wait. */
static void answer(struct ct_attachment *attachment)
{
    struct ct_visitor *visitor = &attachment->visitor;
    const uint64_t now_ns = ct_monotonic_ns();
    if (visitor->asked_ns == 0 && visitor->area.data.asked_stack != 0) {
        visitor->asked_ns = now_ns;
        attachment->was_answered = true;
        const bool is_confined = has_confined_itself(attachment);
        attachment->later_why =
            is_confined ? NULL : ct_asker_not_now(&attachment->target, &visitor->area.data);
        ct_area_set(&visitor->area, CT_DATA_GRANT,
                    is_confined             ? CT_AREA_GRANT_NO
                    : attachment->later_why ? CT_AREA_GRANT_LATER
                                            : CT_AREA_GRANT_YES);
    } else if (visitor->asked_ns != 0 && now_ns - visitor->asked_ns > ASKING_NS) {
        ct_visitor_rearm(visitor);
    }
}

/* Waits for another call. Whenever the area is armed, there are a few nanoseconds in which a cancellation
 * skips the program's handlers, and the next call waits until its stack has been read. So the area is armed
 * more and more rarely. */
static void arm_after_alone(struct ct_attachment *attachment)
{
    const uint64_t first_ns = UINT64_C(100) * MS_NS, most_ns = UINT64_C(3200) * MS_NS;
    const uint64_t now_ns = ct_monotonic_ns(), pause_ns = attachment->alone_pause_ns;
    if (now_ns - attachment->alone_ns < pause_ns)
        return;
    attachment->alone_ns = now_ns;
    attachment->alone_pause_ns = pause_ns == 0 ? first_ns : 2 * pause_ns < most_ns ? 2 * pause_ns : most_ns;
    attachment->alone_why =
        attachment->later_why
            ? attachment->later_why
            : "by threads that may be cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS)";
    attachment->later_why = NULL;
    ct_visitor_rearm(&attachment->visitor);
}

void ct_attachment_step(struct ct_attachment *attachment, uint64_t patience_ns)
{
    if (attachment->state != CT_ATTACHMENT_ARMED && attachment->state != CT_ATTACHMENT_RECORDING)
        return;
    if (!is_there(attachment)) {
        ct_attachment_end(attachment);
        return;
    }
    if (attachment->state == CT_ATTACHMENT_RECORDING) {
        is_left(attachment);
        return;
    }
    const uint64_t waited_ns = ct_monotonic_ns() - attachment->armed_ns;
    const uint32_t state = attachment->visitor.area.data.state;
    const bool is_long_over = waited_ns > patience_ns && waited_ns - patience_ns > 2 * ASKING_NS;
    if (state != CT_AREA_TAKING)
        attachment->taking_ns = 0;
    else if (attachment->taking_ns == 0)
        attachment->taking_ns = ct_monotonic_ns();
    if (state == CT_AREA_ASKING && !is_long_over) {
        answer(attachment);
    } else if (attachment->taking_ns && ct_monotonic_ns() - attachment->taking_ns > LEAVE_NS) {
        ct_attachment_fail(attachment, "has a thread that is still loading the hook: detach it later");
    } else if (state == CT_AREA_LATE && attachment->rearms < REARMS) {
        attachment->rearms++;
        ct_visitor_rearm(&attachment->visitor);
    } else if (state == CT_AREA_ALONE && waited_ns <= patience_ns) {
        arm_after_alone(attachment);
    } else if (state != CT_AREA_TAKING && (state != CT_AREA_ARMED || waited_ns > patience_ns)) {
        if (state == CT_AREA_DONE)
            take_answer(attachment);
        else
            give_up(attachment, is_long_over);
        if (attachment->state == CT_ATTACHMENT_FAILED && attachment->target.kind == CT_TARGET_FINE)
            leave_made(attachment);
    } else if (waited_ns > UINT64_C(1000) * MS_NS && !attachment->is_waiting_said) {
        attachment->is_waiting_said = true;
        ct_attachment_print(attachment, ": waiting for its next CUDA call");
    }
}

/* Removes the thunks. If a thread has just entered a thunk, the process is briefly recorded. */
static bool take_out(struct ct_attachment *attachment)
{
    const uint64_t until_ns = ct_monotonic_ns() + LEAVE_NS;
    const uint32_t *state = &attachment->visitor.area.data.state;
    if (has_confined_itself(attachment)) {
        ct_area_set(&attachment->visitor.area, CT_DATA_STATE, CT_AREA_LATE);
        return false;
    }
    ct_area_set(&attachment->visitor.area, CT_DATA_GRANT, CT_AREA_GRANT_NO);
    while (ct_visitor_look(&attachment->visitor) && (*state == CT_AREA_TAKING || *state == CT_AREA_ASKING) &&
           ct_monotonic_ns() < until_ns)
        nanosleep(&(struct timespec){ .tv_nsec = MS_NS }, NULL);
    const int error = ct_visitor_disarm(&attachment->visitor);
    if (error && error != -ESRCH)
        return ct_attachment_fail_with(attachment, error);
    attachment->state =
        !error && ct_attachment_records(attachment) ? CT_ATTACHMENT_RECORDING : CT_ATTACHMENT_OVER;
    return true;
}

/* Tries once to make the hook leave. Returns false if the hook is busy. */
static bool has_left(struct ct_attachment *attachment)
{
    const bool is_confined = ct_target_is_confined(&attachment->target);
    const int error = ct_visitor_leave(&attachment->visitor, is_confined);
    const uint32_t left = attachment->visitor.area.data.left;
    if (error == -ESRCH && !ct_memory_is_there(&attachment->target.memory)) {
        ct_attachment_end(attachment);
    } else if (error) {
        ct_attachment_fail_with(attachment, error);
    } else if (left == CT_VISIT_DONE || left == CT_VISIT_SILENCED) {
        /* In a process with a system call filter, the hook only restores the slots, which is enough to end
         * the recording. */
        ct_area_set(&attachment->visitor.area, CT_DATA_STATE, CT_AREA_IDLE);
        attachment->state = CT_ATTACHMENT_OVER;
    } else if (left != CT_VISIT_BUSY) {
        ct_attachment_fail(attachment, "is still recorded: its hook does not support detaching");
    }
    return attachment->state != CT_ATTACHMENT_RECORDING;
}

static bool leave(struct ct_attachment *attachment)
{
    enum { PAUSE_MOST_NS = 50 * MS_NS };
    /* No thread runs in a stopped process, so a busy hook stays busy. */
    const bool is_stopped = ct_proc_is_stopped(attachment->target.pid);
    const uint64_t until_ns = ct_monotonic_ns() + (is_stopped ? LEAVE_NS / 10 : LEAVE_NS);
    if (attachment->state == CT_ATTACHMENT_ARMED && !take_out(attachment))
        return false;
    for (long pause_ns = MS_NS; attachment->state == CT_ATTACHMENT_RECORDING && !has_left(attachment);) {
        if (ct_monotonic_ns() >= until_ns)
            return ct_attachment_fail(
                attachment, is_stopped
                                ? "is still recorded: a signal stopped it inside the hook; resume it with "
                                  "kill -CONT, then run `cudatrace detach`"
                                : "is still recorded: its hook was busy at each attempt; detach it again");
        nanosleep(&(struct timespec){ .tv_nsec = pause_ns }, NULL);
        pause_ns = 2 * pause_ns > PAUSE_MOST_NS ? PAUSE_MOST_NS : 2 * pause_ns;
    }
    return attachment->state == CT_ATTACHMENT_OVER;
}

/* Locks a recorded process. Waits while another command holds the lock, until a deadline or Ctrl-C. Sets the
 * state and returns false if there is nothing left to do. */
static bool await_lock(struct ct_attachment *attachment, uint64_t until_ns)
{
    const uint64_t since_ns = ct_monotonic_ns();
    char holder[CT_HOLDER_BYTES], text[160];
    bool is_said = false;
    for (;;) {
        attachment->lock = ct_proc_lock(attachment->target.pid);
        if (!ct_visitor_look(&attachment->visitor)) {
            ct_attachment_end(attachment);
            return false;
        }
        if (is_left(attachment))
            return false;
        if (attachment->lock >= 0)
            return true;
        if (attachment->lock != -EWOULDBLOCK)
            return ct_attachment_fail_with(attachment, attachment->lock);
        if (!is_said && ct_monotonic_ns() - since_ns > UINT64_C(1000) * MS_NS) {
            is_said = true;
            ct_attachment_print(attachment, ": waiting for another command that is busy with it");
        }
        if (ct_monotonic_ns() > until_ns || ct_is_interrupted_or_hung_up()) {
            ct_proc_describe_holder(attachment->target.pid, holder);
            snprintf(text, sizeof(text), "is still recorded: %s keeps its lock; end that, then detach again",
                     holder);
            return ct_attachment_fail(attachment, text);
        }
        nanosleep(&(struct timespec){ .tv_nsec = MS_NS }, NULL);
    }
}

uint64_t ct_attachment_deadline(void)
{
    return ct_monotonic_ns() + LEAVE_NS;
}

bool ct_attachment_leave(struct ct_attachment *attachment, uint64_t until_ns)
{
    const bool is_over = (attachment->lock < 0 && !await_lock(attachment, until_ns))
                             ? attachment->state == CT_ATTACHMENT_OVER
                             : leave(attachment) && leave_made(attachment);
    unlock_process(attachment); /* so that other commands need not wait until the calls are stored */
    return is_over;
}

bool ct_attachment_records(const struct ct_attachment *attachment)
{
    return ct_area_records(&attachment->visitor.area);
}
