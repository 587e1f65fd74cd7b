/* Names of a session's files that another user has taken. In a directory that all users can write to, any
 * user can create a file with any name. No function here follows a link. */
#ifndef CT_TAKEN_NAME_H
#define CT_TAKEN_NAME_H

#include "session_names.h"

#include <stdbool.h>
#include <stddef.h>

/* Removes whatever has the name. A directory that is not empty cannot be removed. It gets another name, which
 * no component uses and which is written to `aside`. Otherwise, `aside` becomes "". Returns 0, also if
 * nothing has the name, or -errno. */
int ct_taken_remove(const char *path, char aside[CT_NAME_BYTES]);
/* Returns whether the name belongs to something other than a regular file of this user. */
bool ct_taken_is_foreign(const char *path);
/* Describes what has the name, its owner, and what the user can do. `error` (errno) is the reason why it
 * could not be removed or replaced. */
void ct_taken_explain(const char *path, int error, char *text, size_t bytes);

#endif
