/* Finding the database file that a daemon may write: ours, of this boot, of a schema that we know, and nobody
 * else's at the moment. Called by store.c. */
#ifndef CT_DATABASE_H
#define CT_DATABASE_H

#include "private_file.h"
#include "store.h"

#include <sqlite3.h>

struct ct_database {
    sqlite3 *connection;
    int lock_fd; /* holds the lock of the one writer; closed after the connection */
    char path[4096];
};

/* Who may read the databases that are opened from here on: their owner alone unless this is called. */
void ct_database_share(const struct ct_private_readers *readers);
/* Makes the file at `path`, and what SQLite keeps beside it, readable for those alone; refuses what somebody
 * else put there. For each file that is written: before SQLite opens it, and once it has. 0, or -1 with a
 * sentence. */
int ct_database_own(const char *path, char message[CT_STORE_MESSAGE_BYTES]);
/* As ct_store_open() says. */
int ct_database_open(struct ct_database *database, const char *path, const char *session,
                     char message[CT_STORE_MESSAGE_BYTES]);
void ct_database_close(struct ct_database *database);

#endif
