/* Visits (proto/visit.h). One visit makes the hook start recording in a process that was started without it,
 * and another makes the hook leave.
 *
 * Before a visit requests recording, the hook does nothing, and its constructors change nothing in the
 * process. After the hook has left, stubs that are still in use jump to the driver. */
#include "visit.h"

#include "attach.h"
#include "current.h"
#include "driver_functions.h"
#include "error_guard.h"
#include "fork.h"
#include "imports.h"
#include "machine.h"
#include "process.h"
#include "producer.h"
#include "program.h"
#include "setting.h"
#include "system.h"

/* The lanes that a stopped thread abandons in one visit. */
enum { LANES_PER_VISIT = 32 };

/* Restores the function tables and ends recording. Requires the process lock. Changes nothing and returns
 * CT_VISIT_BUSY if another thread is exchanging table entries. Does not wait, allocate memory, or call the
 * loader. */
static uint32_t put_back(uint32_t lanes_most)
{
    if (!ct_attach_is_leaving()) {
        if (!ct_imports_put_back())
            return CT_VISIT_BUSY;
        ct_driver_put_back(true);
    }
    return ct_attach_leave(lanes_most) ? CT_VISIT_DONE : CT_VISIT_MORE;
}

/* The visited thread may have been stopped at any instruction, even inside the loader or the allocator. */
static uint32_t leave(void)
{
    const int saved_errno = errno;
    uint32_t answer = CT_VISIT_BUSY;
    if (!ct_system_allowed()) {
        ct_driver_put_back(false);
        answer = CT_VISIT_SILENCED;
    } else if (ct_process_lock_try()) {
        answer = put_back(LANES_PER_VISIT);
        ct_process_unlock();
    }
    errno = saved_errno;
    return answer;
}

/* Ends a visit that failed. If entries cannot be restored now, they lead to a hook that does nothing. */
static uint32_t give_up(uint32_t answer)
{
    ct_attach_sleep();
    if (ct_process_lock()) {
        put_back(UINT32_MAX);
        ct_process_unlock();
    }
    return answer;
}

/* A command may have been killed before the hook had left. */
static void finish_leaving(void)
{
    if (!ct_process_lock())
        return;
    if (ct_attach_is_leaving())
        ct_attach_leave(UINT32_MAX);
    ct_process_unlock();
}

/* Runs in place of a driver call, which the visited thread then makes after this function has returned. */
static uint32_t record(struct ct_visit *visit)
{
    CT_ERROR_GUARD;
    if (!ct_system_allowed())
        return CT_VISIT_SILENCED;
    if (!ct_process_may_read_clock())
        return CT_VISIT_NO_CLOCK;
    if (ct_process_current())
        return CT_VISIT_THERE;
    finish_leaving();
    ct_attach_sleep();
    ct_setting_take(visit);
    visit->producer = (uintptr_t)&ct_self - (uintptr_t)ct_thread_pointer();
    if (!ct_driver_take_late(visit))
        return give_up(CT_VISIT_NO_SLOTS);
    ct_attach_wake(ct_program_start_ns(ct_program_start_ticks(ct_fork_pid())));
    const struct ct_segment *segment = ct_process_segment();
    if (!segment)
        return give_up(CT_VISIT_NO_DAEMON);
    visit->exec_ns = segment->exec_ns;
    return CT_VISIT_DONE;
}

__attribute__((visibility("default"))) ct_visit_function cudatrace_visit;

uint32_t cudatrace_visit(struct ct_visit *visit)
{
    if (visit->version != CT_VISIT_VERSION || visit->bytes != sizeof(*visit))
        return CT_VISIT_STRANGER;
    switch (visit->request) {
    case CT_VISIT_RECORD:
        return record(visit);
    case CT_VISIT_LEAVE_CONFINED:
        ct_system_silence();
        return leave();
    case CT_VISIT_LEAVE:
        return leave();
    default:
        return CT_VISIT_STRANGER;
    }
}
