/* The rows that are recorded, by `cudatrace run --layers --calls --sample` and `cudatrace set`, and the
 * numbers of rows. */
#ifndef CT_ROW_SELECTION_H
#define CT_ROW_SELECTION_H

#include "find_daemon.h"
#include "producer.h"

/* Begins with what the environment says. The process lock is held, by the maker of a segment. */
void ct_selection_begin(struct ct_segment *segment);
/* The number of wishes (ct_control.selections) that the process goes by, 0 for its environment's. */
extern CT_LOCAL _Atomic uint32_t ct_selection_followed;
static inline bool ct_selection_has_changed(void)
{
    return CT_UNLIKELY(atomic_load_explicit(&ct_control->selections, memory_order_relaxed) !=
                       atomic_load_explicit(&ct_selection_followed, memory_order_relaxed));
}
/* Goes by what the session's daemon wishes now, if that has changed. */
void ct_selection_follow(struct ct_segment *segment);
/* True if this call of the row, which has returned, is one to be counted and not recorded. */
bool ct_selection_leaves_out(const struct ct_producer *self, uint32_t row);

/* The row's number, which it is given if need be; 0 when the directory is full or cannot grow. */
uint16_t ct_row_define(uint32_t row);
/* Takes every row's number away: a new segment numbers anew. */
void ct_rows_forget_numbers(void);

#endif
