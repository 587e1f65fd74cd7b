/* The hook's visits to processes, as seen by both the BPF programs and the probe. `cudatrace attach` brings
 * the hook into a running process (visit.h), and `cudatrace detach` ends the visit.
 *
 * The probe does not record the calls of a visited process until the visit is over. While the hook is
 * leaving, the position of a thread's lane (lane.h) shows whether the hook has recorded a call. When the hook
 * leaves, it maps empty memory over the lanes. */
#ifndef CT_PROBE_VISITS_H
#define CT_PROBE_VISITS_H

#include "calls.h"

#include "area_layout.h"

/* The words of struct ct_area_data from CT_DATA_STATE to CT_DATA_LEFT, and two words of struct ct_visit. */
struct ct_probe_visit_state {
    uint32_t state, answer, reserved[3], left, request;
    uint64_t producer;
};
enum { CT_VISIT_STATE_BYTES = CT_DATA_LEFT + 4 - CT_DATA_STATE };

/* The beginning of struct ct_lane. */
struct ct_probe_lane {
    uint64_t position; /* doubled; odd while the thread records a call that is ending */
    uint32_t depth, tid;
};

/* Returns whether the hook records the process, or is about to. To end a visit, `cudatrace detach` first
 * changes the request. */
static inline int ct_visit_covers(const struct ct_probe_visit_state *visit)
{
    return visit->request == CT_AREA_REQUEST_RECORD &&
           (visit->state == CT_AREA_ARMED || visit->state == CT_AREA_ASKING ||
            visit->state == CT_AREA_TAKING ||
            (visit->state == CT_AREA_DONE && visit->answer == CT_AREA_ANSWER_DONE));
}

/* Returns whether the hook no longer records calls that begin from now on. While the hook is leaving, both
 * this function and ct_visit_covers() return false. */
static inline int ct_visit_is_over(const struct ct_probe_visit_state *visit)
{
    const int records = visit->state == CT_AREA_DONE && visit->answer == CT_AREA_ANSWER_DONE &&
                        visit->left != CT_AREA_ANSWER_DONE && visit->left != CT_AREA_ANSWER_SILENCED;
    return !ct_visit_covers(visit) && !records;
}

#endif
