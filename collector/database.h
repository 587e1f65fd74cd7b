/* Finding the database file that a daemon may write: ours, of this boot, of a schema that we know, and nobody
 * else's at the moment. Called by store.c. */
#ifndef CT_DATABASE_H
#define CT_DATABASE_H

#include "store.h"

#include <sqlite3.h>

struct ct_database {
    sqlite3 *connection;
    int lock_fd; /* holds the lock of the one writer; closed after the connection */
    char path[4096];
};

/* As ct_store_open() says. */
int ct_database_open(struct ct_database *database, const char *path, const char *session,
                     char message[CT_STORE_MESSAGE_BYTES]);
void ct_database_close(struct ct_database *database);
/* Whether the file that is written still is the one of that name. */
bool ct_database_in_place(const struct ct_database *database);
/* What SQLite says is wrong, with the system's reason where there is one: errno, which the caller has set to
 * 0 before. Valid until the thread's next call. */
const char *ct_database_problem(sqlite3 *connection);

#endif
