/* The rows beside a call's own: launches, transfers, allocations. */
#ifndef CT_DETAIL_H
#define CT_DETAIL_H

#include "shm_lane.h"

/* Defers what the record that `source` is taking, whose times `row` has, says beyond time and status. */
void ct_detail_store(struct ct_lane_source *source, const struct ct_row *row);

#endif
