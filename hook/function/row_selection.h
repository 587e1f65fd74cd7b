/* The rows that are recorded, by `cudatrace run --layers --calls --sample` and `cudatrace set`, and the
 * numbers of rows. */
#ifndef CT_ROW_SELECTION_H
#define CT_ROW_SELECTION_H

#include "find_daemon.h"
#include "producer.h"

/* Begins with what the environment says. The process lock is held, by the maker of a segment. */
void ct_selection_begin(struct ct_segment *segment);
/* Goes by what the session's daemon wishes now, if that has changed. */
void ct_selection_follow(struct ct_segment *segment);
/* True if this call of the row, which has returned, is one to be counted and not recorded. */
bool ct_selection_leaves_out(const struct ct_producer *self, uint32_t row);

/* The row's number, which it is given if need be; 0 when the directory is full or cannot grow. */
uint16_t ct_row_define(uint32_t row);
/* Takes every row's number away: a new segment numbers anew. */
void ct_rows_forget_numbers(void);

#endif
