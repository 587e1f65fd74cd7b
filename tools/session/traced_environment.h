/* The environment in which a command is traced. Called by run and doctor. */
#ifndef CT_TRACED_ENVIRONMENT_H
#define CT_TRACED_ENVIRONMENT_H

#include "where.h"

/* Sets the variables in this process, which is to become the command: the hook at `hook` is preloaded, and
 * records for the session of `where`. False when memory is short. */
bool ct_traced_environment_set(const char *hook, const struct ct_where *where);

#endif
