/* simcupti_work.h: between the two files of the simulated CUPTI. */
#ifndef SIMCUPTI_WORK_H
#define SIMCUPTI_WORK_H

#include "simcuda_observe.h"
#include "simcupti.h"

#include <stdbool.h>

#define EXPORTED __attribute__((visibility("default")))

/* Returns true if the variable SIMCUPTI_REFUSE gives another result for the function, and stores the result.
 */
bool simcupti_refuses(const char *function, int32_t *result);
#define REFUSABLE                                                                                            \
    do {                                                                                                     \
        int32_t result_;                                                                                     \
        if (simcupti_refuses(__func__, &result_))                                                            \
            return result_;                                                                                  \
    } while (0)

/* Appends a line to the file of SIMCUPTI_LOG, if there is one. */
void simcupti_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Exits with status 2 because an environment variable is invalid. */
_Noreturn void simcupti_invalid(const char *variable, const char *value);

/* Begins and ends observing the driver. Returns false if there is no simulated driver. */
bool simcupti_watch(bool on);

/* Takes the work of an observed call. */
void simcupti_add_work(const struct sim_work *work);
/* Forgets all settings and records. */
void simcupti_forget_work(void);

#endif
