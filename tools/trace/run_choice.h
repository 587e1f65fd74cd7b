/* Parses --run and --last, and restricts a trace to the chosen run. */
#ifndef CT_RUN_CHOICE_H
#define CT_RUN_CHOICE_H

#include "options.h"
#include "series.h"

struct ct_run_choice {
    bool is_last;   /* --last */
    int64_t number; /* --run; 0: not given */
};

#define CT_OPTION_RUN(name_, to_, help_)                                                                     \
    {                                                                                                        \
        .name = name_, .value = "N", .help = help_, .to = to_, .take = ct_take_number,                       \
        .wrong = "expected the number of a run", .least = 1, .most = INT64_MAX                               \
    }
#define CT_OPTIONS_OF_RUN(choice_)                                                                           \
    CT_OPTION_RUN("run", &(choice_)->number,                                                                 \
                  "only the processes of the run with this number: `cudatrace report runs`\nlists them"),    \
    {                                                                                                        \
        .name = "last", .help = "only the processes of the last run", .to = &(choice_)->is_last              \
    }

/* Restricts the trace to the chosen run, if one was chosen. Returns CT_GO_ON, or the exit status after
 * reporting an error. */
int ct_run_choose(const char *command, const struct ct_run_choice *choice, struct ct_series *series,
                  sqlite3 *connection);

#endif
