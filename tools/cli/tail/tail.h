/* Prints the calls of a trace as they happen, in steps. Called by tail_command.c and printing.c. */
#ifndef CT_TAIL_H
#define CT_TAIL_H

#include "follow.h"

#include <signal.h>

/* AUTO: on a terminal, unless $NO_COLOR is set. */
enum ct_tail_colour { CT_TAIL_COLOUR_AUTO, CT_TAIL_COLOUR_ALWAYS, CT_TAIL_COLOUR_NEVER };

/* Calls are skipped if output lags by more than this, unless the user wants all calls. With the daemon's
 * delay and a pause between two looks, a line appears within a quarter of a second of the call's return. */
#define CT_TAIL_LAG_MAX_NS UINT64_C(100000000)

struct ct_tail_plan {
    const char *command; /* the name in messages */
    struct ct_follow_plan follow;
    bool is_json;
    bool has_threads; /* each line names its thread; false: only lines of threads other than the first */
    int colour;       /* enum ct_tail_colour */
    int fd;           /* takes the lines */
    /* The maximum lag of the output. Beyond that, calls are counted and not printed, until the newest ones
     * are reached. Calls that were stored before ct_tail_begin() are always printed. If it is 0, all calls
     * are printed. */
    uint64_t lag_max_ns;
    const volatile sig_atomic_t *stop; /* ends the output once it is not 0; may be NULL */
    const sigset_t *mask;              /* the signal mask during waits and writes; NULL: unchanged */
};

struct ct_tail;

/* Takes over the connection, which has the files of `series` open. Returns NULL after reporting an error. */
struct ct_tail *ct_tail_begin(sqlite3 *connection, const struct ct_series *series,
                              const struct ct_tail_plan *plan);
enum ct_tail_state {
    CT_TAIL_MORE, /* more calls are stored */
    CT_TAIL_IDLE, /* all stored calls are printed: call ct_tail_wait() */
    CT_TAIL_OVER  /* the output is closed, or the trace cannot be read */
};
/* Prints new calls, at most 64 KiB of lines. Takes some hundredths of a second, or longer if the output
 * blocks. */
enum ct_tail_state ct_tail_step(struct ct_tail *tail);
/* Waits until it is time for the next step. Returns true at once if `fd` is readable or closed (-1: none). */
bool ct_tail_wait(struct ct_tail *tail, int fd);
/* Prints the remaining stored calls, closes the trace, and waits until the output has taken the line that
 * reports calls not shown. After a stop, it prints no calls and does not wait. Reports failures and the
 * number of calls not shown. Frees `tail`. Returns an exit status. */
int ct_tail_finish(struct ct_tail *tail);

#endif
