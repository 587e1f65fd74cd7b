/* Replaces sum() in queries of a trace. SQLite's sum() fails if the sum of integers does not fit into 64
 * bits, so that a program with calls of absurd sizes, or a forged trace, would keep a query from showing
 * anything. */
#ifndef CT_BOUNDED_SUM_H
#define CT_BOUNDED_SUM_H

#include <sqlite3.h>

/* Makes sum() of the connection return the greatest or the least integer instead. Returns an SQLite code. */
int ct_bounded_sum_add(sqlite3 *connection);

#endif
