#ifndef CT_TOP_TERMINAL_H
#define CT_TOP_TERMINAL_H

/* NULL for a terminal that a screen can be drawn on; else the rest of a sentence about it. */
const char *ct_top_terminal_problem(void);

#endif
