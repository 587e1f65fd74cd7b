#include "untraced.h"

#include "area.h"
#include "proc.h"
#include "room.h"
#include "target.h"

#include <stdlib.h>

enum { CANDIDATE = 1 }; /* note of a process that has loaded the driver and was not started with the hook */

static bool is_candidate(pid_t pid)
{
    return ct_proc_has_mapped(pid, CT_DRIVER_IN_PATH) && !ct_proc_has_mapped(pid, "/libcudatrace.so");
}

/* Returns whether no visit is recording the candidate. If the candidate's memory cannot be read, returns
 * true, and `attach` will report why. */
static bool is_untraced(pid_t pid)
{
    struct ct_target target;
    struct ct_area area;
    ct_target_open(&target, pid);
    ct_area_find(&area, &target.memory);
    const bool is =
        (target.kind == CT_TARGET_FINE || target.kind == CT_TARGET_REFUSED) && !ct_area_records(&area);
    ct_target_close(&target);
    return is;
}

bool ct_untraced_look(struct ct_untraced *untraced)
{
    untraced->count = 0;
    ct_processes_look(&untraced->processes);
    for (size_t i = 0; i < untraced->processes.count; i++) {
        struct ct_process *seen = &untraced->processes.process[i];
        if (seen->change != CT_PROCESS_SAME)
            seen->note = is_candidate(seen->pid) ? CANDIDATE : 0;
        if (!(seen->note & CANDIDATE) || !is_untraced(seen->pid))
            continue;
        if (!ct_make_room(&untraced->pid, untraced->count, &untraced->room, sizeof(*untraced->pid)))
            return false;
        untraced->pid[untraced->count++] = seen->pid;
    }
    return true;
}

void ct_untraced_free(struct ct_untraced *untraced)
{
    ct_processes_free(&untraced->processes);
    free(untraced->pid);
    *untraced = (struct ct_untraced){ 0 };
}
