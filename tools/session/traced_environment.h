/* Sets up the environment of a traced command. Called by run and doctor. */
#ifndef CT_TRACED_ENVIRONMENT_H
#define CT_TRACED_ENVIRONMENT_H

#include "session_choice.h"

/* Sets the variables in this process, which will execute the command. The hook at `hook` is preloaded, and
 * records for the session in `choice`. Returns false if memory is short. */
bool ct_traced_environment_set(const char *hook, const struct ct_session_choice *choice);

#endif
