/* Protects a process from side files of databases (FILE-wal, FILE-shm, FILE-journal) that another user has
 * put next to a database, and from links that another user puts into a database's path. SQLite reads any
 * file of that name as a part of the database, and as root, gives it to the database's owner. */
#ifndef CT_SIDE_FILES_H
#define CT_SIDE_FILES_H

#include <stdbool.h>

enum { CT_DATABASE_PARTS = 4 };
/* What SQLite appends to a database's name for each of the database's files. First comes "", the database
 * itself. The last file, -shm, is a cache, which has no content of its own. */
extern const char *const ct_database_parts[CT_DATABASE_PARTS];

/* Makes SQLite use only side files that belong to the database's owner or, unless this process is root's, to
 * its own user, and have no second name (a hard link). Others do not exist for SQLite, and cannot be created.
 * SQLite resolves the links in a database's path when it opens the database. From then on, only links that
 * belong to root or to this user are followed. Applies to all databases that are opened from now on. May be
 * called several times, by any thread. */
void ct_side_files_guard(void);

/* Returns whether a side file exists for SQLite. `path` is the side file's. */
bool ct_side_file_exists(const char *path);

/* Returns the suffix of the first side file of the database that does not exist for SQLite, although it is
 * there, or NULL if there is none. */
const char *ct_side_file_of_other(const char *database);

#endif
