#ifndef CT_TOP_TERMINAL_H
#define CT_TOP_TERMINAL_H

/* Returns NULL if a screen can be drawn on the terminal. Otherwise returns a predicate for a sentence about
 * the terminal. */
const char *ct_top_terminal_problem(void);

#endif
