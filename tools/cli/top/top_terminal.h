#ifndef CT_TOP_TERMINAL_H
#define CT_TOP_TERMINAL_H

/* Returns NULL if a screen can be drawn on the terminal. If not, returns the predicate of a message whose
 * subject is the terminal. */
const char *ct_top_terminal_problem(void);

#endif
