#include "earlier.h"

#include <string.h>

enum { STEPS_MAX = 1000000 }; /* of SQLite's machine, where a look takes a few dozen */

static int give_up(void *data)
{
    (void)data;
    return 1;
}

void ct_earlier_begin(struct ct_earlier *earlier, uint64_t until_ns)
{
    for (uint32_t i = 0; i < earlier->files; i++) {
        sqlite3_finalize(earlier->file[i].find);
        sqlite3_close(earlier->file[i].connection);
    }
    *earlier = (struct ct_earlier){ .until_ns = until_ns };
}

/* A file that cannot be asked has nothing to say: whoever reads all files as one cannot read it either. */
static void open_files(struct ct_earlier *earlier, const struct ct_database *database)
{
    char path[sizeof(database->path)], reason[CT_STORE_MESSAGE_BYTES];
    earlier->open = true;
    for (uint32_t number = database->number; earlier->files < CT_SERIES_FILES_MAX &&
                                             (number = ct_trace_file_before(database->trace, number)) != 0;) {
        sqlite3 *connection = NULL;
        sqlite3_stmt *find = NULL;
        if (ct_trace_file(path, sizeof(path), database->trace, number) &&
            ct_database_own(path, reason) == 0 &&
            sqlite3_open_v2(path, &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK)
            sqlite3_prepare_v2(connection, "SELECT 1 FROM call WHERE end_ns = ?1", -1, &find, NULL);
        if (!find) {
            sqlite3_close(connection);
            continue;
        }
        sqlite3_progress_handler(connection, STEPS_MAX, give_up, NULL);
        earlier->file[earlier->files].connection = connection;
        earlier->file[earlier->files++].find = find;
    }
}

bool ct_earlier_has(struct ct_earlier *earlier, const struct ct_database *database, uint64_t call_id)
{
    if (call_id > earlier->until_ns)
        return false;
    if (!earlier->open)
        open_files(earlier, database);
    bool has = false;
    for (uint32_t i = 0; i < earlier->files && !has; i++) {
        sqlite3_stmt *find = earlier->file[i].find;
        sqlite3_bind_int64(find, 1, (sqlite3_int64)call_id);
        has = sqlite3_step(find) == SQLITE_ROW;
        sqlite3_reset(find);
    }
    return has;
}
