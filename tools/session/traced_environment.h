/* Sets up a traced command's environment. Called by run and doctor. */
#ifndef CT_TRACED_ENVIRONMENT_H
#define CT_TRACED_ENVIRONMENT_H

#include "session_choice.h"

/* Sets the environment variables of this process, which will execute the command. The hook at path `hook`
 * will be preloaded and will record for the session in `choice`. Returns false if out of memory. */
bool ct_traced_environment_set(const char *hook, const struct ct_session_choice *choice);

enum { CT_EXEC_WHY_BYTES = 256 };
/* Writes the reason why execvp() failed in this environment with `error`, and returns `why`. */
const char *ct_traced_environment_why(int error, char why[CT_EXEC_WHY_BYTES]);

#endif
