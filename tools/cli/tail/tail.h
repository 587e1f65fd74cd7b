/* Prints a trace's calls as they happen, one step at a time. Called by tail_command.c and printing.c. */
#ifndef CT_TAIL_H
#define CT_TAIL_H

#include "follow.h"

#include <signal.h>

/* AUTO uses colours on a terminal, unless $NO_COLOR is set. */
enum ct_tail_colour { CT_TAIL_COLOUR_AUTO, CT_TAIL_COLOUR_ALWAYS, CT_TAIL_COLOUR_NEVER };

/* The default lag after which calls are skipped, unless the user wants to see all calls. Including the
 * daemon's delay and the polling interval, a line appears within a quarter of a second of the call's
 * return. */
#define CT_TAIL_LAG_MAX_NS UINT64_C(100000000)

struct ct_tail_plan {
    const char *command; /* the name in messages */
    struct ct_follow_plan follow;
    bool is_json;
    bool is_relative; /* lines of text have the seconds since the first line instead of the time of day */
    bool has_threads; /* each line names its thread; if false, only lines of threads other than the first
                       * do */
    int colour;       /* enum ct_tail_colour */
    int fd;           /* the descriptor to which lines are written */
    /* The maximum lag of the output, or 0 to print all calls. If the output lags more, calls are only counted
     * until the newest ones are reached. Calls that were stored before ct_tail_begin() are always printed. */
    uint64_t lag_max_ns;
    const volatile sig_atomic_t *stop; /* ends the output when nonzero; may be NULL */
    const sigset_t *mask;              /* the signal mask during waits and writes; NULL if unchanged */
};

struct ct_tail;

/* Starts to print a trace. Takes ownership of the connection, on which the files of `series` are open.
 * Returns NULL after reporting an error. */
struct ct_tail *ct_tail_begin(sqlite3 *connection, const struct ct_series *series,
                              const struct ct_tail_plan *plan);
enum ct_tail_state {
    CT_TAIL_MORE, /* more calls are stored */
    CT_TAIL_IDLE, /* all stored calls have been printed, so call ct_tail_wait() */
    CT_TAIL_OVER  /* the output is closed, or the trace cannot be read */
};
/* Prints new calls, up to 64 KiB of lines. Takes a few hundredths of a second, or longer if the output
 * blocks. */
enum ct_tail_state ct_tail_step(struct ct_tail *tail);
/* Waits until it is time for the next step. Returns true at once if `fd` is readable or closed (-1: none). */
bool ct_tail_wait(struct ct_tail *tail, int fd);
/* Prints the remaining stored calls, closes the trace, and waits until the output has taken the line that
 * reports skipped calls. If `stop` is set, prints no more calls and does not wait. Reports failures and the
 * number of calls not shown. Frees `tail` and returns an exit status. */
int ct_tail_finish(struct ct_tail *tail);

#endif
