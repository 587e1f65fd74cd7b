/* Sentences about a database that cannot be used. */
#ifndef CT_DATABASE_PROBLEM_H
#define CT_DATABASE_PROBLEM_H

#include "message.h"

#include <sqlite3.h>
#include <sys/types.h>

/* Returns SQLite's error message, followed by the system's reason from errno if there is one. If
 * another process has locked the database, names that process. The caller must set errno to 0 before the
 * SQLite call. The message is valid until this thread's next call. */
const char *ct_database_problem(sqlite3 *connection);
/* Writes a sentence about a database that another process has locked with flock(2), which names the process.
 * Who may read the file can lock it, for example a member of --group. Always returns -1. */
int ct_database_refuse_locked(const char *path, ino_t inode, char message[CT_MESSAGE_BYTES]);

#endif
