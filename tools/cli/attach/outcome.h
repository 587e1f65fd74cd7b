/* Completes and reports the outcome of a recording, at the end of attach and detach. */
#ifndef CT_OUTCOME_H
#define CT_OUTCOME_H

#include "target.h"

#include <stdbool.h>

/* Makes the daemon store the recorded calls. Returns false after reporting an error. */
bool ct_attach_flush(const char *command, int daemon);
/* Reports how many of the process's calls are in the trace. */
void ct_attach_tell(const char *command, const struct ct_target *target, const char *database);

#endif
