/* Finds out which other process keeps an SQLite database locked, after a call has failed with SQLITE_BUSY. */
#ifndef CT_DATABASE_LOCK_H
#define CT_DATABASE_LOCK_H

#include "lock_holder.h"

/* Describes the process as ct_lock_holder_describe() does. Returns false if it is not found, for example
 * because it has released the lock. `path` is the database's, without links. */
bool ct_database_lock_describe(const char *path, char text[CT_LOCK_HOLDER_BYTES]);

#endif
