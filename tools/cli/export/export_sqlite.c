/* Implements `cudatrace export --format sqlite`. Writes the trace itself as a single plain file. Without a
 * write-ahead log, the file can be opened on read-only media, and by clients that cannot share memory. */
#include "export_format.h"

/* Copies the pages of a consistent snapshot, even while a daemon is writing. The copied file header still
 * requires a write-ahead log until the journal mode is changed. */
static bool begin(struct ct_export *to)
{
    sqlite3 **file = to->state;
    if (sqlite3_open_v2(to->path, file, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(*file, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF", NULL, NULL, NULL) !=
            SQLITE_OK)
        return false;
    sqlite3_backup *backup = sqlite3_backup_init(*file, "main", to->connection, "main");
    if (!backup)
        return false;
    sqlite3_backup_step(backup, -1);
    return sqlite3_backup_finish(backup) == SQLITE_OK &&
           sqlite3_exec(*file, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE", NULL, NULL,
                        NULL) == SQLITE_OK;
}

static void finish(struct ct_export *to)
{
    sqlite3 **file = to->state;
    ct_export_note_error(*file);
    sqlite3_close(*file);
}

const struct ct_export_format ct_export_sqlite = {
    .name = "sqlite",
    .about = "the whole trace as one plain file, for read-only media and SQLite clients\n"
             "            without shared memory; also while it is being written",
    .is_file = true,
    .is_whole = true,
    .state_bytes = sizeof(sqlite3 *),
    .begin = begin,
    .finish = finish,
};
