/* Selects the rows to record (`cudatrace run --layers --calls --sample`, `cudatrace set`), and assigns
 * function numbers to rows. */
#ifndef CT_ROW_SELECTION_H
#define CT_ROW_SELECTION_H

#include "find_daemon.h"
#include "producer.h"

/* Starts with the selection from the environment. Requires the process lock, which the caller holds because
 * it creates a segment. */
void ct_selection_begin(struct ct_segment *segment);
/* Applies the daemon's current request if it has changed. */
void ct_selection_follow(struct ct_segment *segment);
/* True if a call of the row's function, which has just returned, must be counted but not recorded. */
bool ct_selection_skips(const struct ct_producer *self, uint32_t row);

/* Returns the row's function number, after assigning one if necessary. Returns 0 if the directory is full or
 * cannot grow. */
uint16_t ct_row_define(uint32_t row);
/* Clears all rows' function numbers, because numbering starts again in each new segment. */
void ct_rows_forget_numbers(void);

#endif
