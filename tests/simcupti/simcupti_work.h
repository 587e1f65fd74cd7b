/* simcupti_work.h: the interface between the simulated CUPTI's two files. */
#ifndef SIMCUPTI_WORK_H
#define SIMCUPTI_WORK_H

#include "simcuda_observe.h"
#include "simcupti.h"

#include <stdbool.h>

#define EXPORTED __attribute__((visibility("default")))

/* If SIMCUPTI_REFUSE gives another result for the function, stores the result and returns true. */
bool simcupti_refuses(const char *function, int32_t *result);
#define REFUSABLE                                                                                            \
    do {                                                                                                     \
        int32_t result_;                                                                                     \
        if (simcupti_refuses(__func__, &result_))                                                            \
            return result_;                                                                                  \
    } while (0)

/* Appends a line to the file named by SIMCUPTI_LOG, if that variable is set. */
void simcupti_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reads a variable whose value is a number. Returns 0 if it is not set. */
long simcupti_number(const char *variable);

/* Exits with status 2 because an environment variable is invalid. */
_Noreturn void simcupti_invalid(const char *variable, const char *value);

/* Begins or ends observing the driver. Returns false if there is no simulated driver. */
bool simcupti_watch(bool on);

/* Adds work that the observed driver has reported. */
void simcupti_add_work(const struct sim_work *work);
/* True if some kind of activity was enabled, and none is any more. */
bool simcupti_has_ended(void);
/* True if graphs are recorded as a whole. */
bool simcupti_has_whole_graphs(void);
/* True if some work of the driver ends in the future. */
bool simcupti_has_unfinished_work(void);
/* Forgets all settings and records. */
void simcupti_forget_work(void);

#endif
