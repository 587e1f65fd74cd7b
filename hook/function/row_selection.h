/* The rows to record, as selected by `cudatrace run --layers --calls --sample` and `cudatrace set`, and the
 * numbers of rows. */
#ifndef CT_ROW_SELECTION_H
#define CT_ROW_SELECTION_H

#include "find_daemon.h"
#include "producer.h"

/* Starts with the selection in the environment. Requires the process lock; the maker of a segment holds
 * it. */
void ct_selection_begin(struct ct_segment *segment);
/* Applies the daemon's current request if it has changed. */
void ct_selection_follow(struct ct_segment *segment);
/* True if this call of the row, which has returned, must be counted but not recorded. */
bool ct_selection_skips(const struct ct_producer *self, uint32_t row);

/* Returns the row's number, assigning one if needed. 0 if the directory is full or cannot grow. */
uint16_t ct_row_define(uint32_t row);
/* Clears every row's number: a new segment starts numbering again. */
void ct_rows_forget_numbers(void);

#endif
