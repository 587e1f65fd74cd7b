/* Defines the part of a trace that a command uses, as selected with --pid, --from, --to, --layers and
 * --calls. */
#ifndef CT_SCOPE_H
#define CT_SCOPE_H

#include "moment.h"
#include "selecting.h"

struct ct_scope {
    int64_t pid;              /* 0: all */
    int64_t recorded_ns;      /* only processes whose recording began at this time or later; 0: all
                               * processes */
    struct ct_selecting only; /* layers and functions */
    const char *from, *to;    /* as given; NULL: not given */
    int64_t from_ns,
        to_ns;      /* bounds on return times, set by ct_scope_settle(); 0 and INT64_MAX if not given */
    int64_t now_ns; /* CLOCK_MONOTONIC, if a daemon writes the trace; otherwise 0 */
};
/* Returns a scope that covers the whole trace. */
struct ct_scope ct_scope_all(void);
/* Returns whether the scope covers the whole trace. */
bool ct_scope_is_all(const struct ct_scope *scope);

#define CT_OPTIONS_OF_WINDOW(scope_, help_)                                                                  \
    { .name = "from", .value = "T", .help = help_, .to = &(scope_)->from },                                  \
    {                                                                                                        \
        .name = "to", .value = "T", .to = &(scope_)->to,                                                     \
        .help = "up to T. Times are seconds since the trace began (12.5, 350ms) or before its end\n"         \
                "(-10s), times of day (14:03:02), or @NANOSECONDS as in the database"                        \
    }
/* Converts --from and --to into times. Returns CT_GO_ON, or the exit status after reporting an error. */
int ct_scope_settle(struct ct_scope *scope, const char *command, const struct ct_extent *extent);
/* Returns false after reporting that the trace has no process with the scope's pid. */
bool ct_scope_has_process(const struct ct_scope *scope, const char *command, sqlite3 *connection);
/* Reports that the scope contains no calls, and how long the trace is. Returns `status`. */
int ct_scope_say_empty(int status, const char *command, const struct ct_extent *extent);

#endif
