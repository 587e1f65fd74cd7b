/* The screen of `cudatrace top`. */
#ifndef CT_TOP_SCREEN_H
#define CT_TOP_SCREEN_H

#include "top_sample.h"

/* The terminal, until the user leaves; the exit status. */
int ct_top_screen(struct ct_top *top);
/* NULL for a terminal that a screen can be drawn on; else the rest of a sentence about it. */
const char *ct_top_terminal_problem(void);

#endif
