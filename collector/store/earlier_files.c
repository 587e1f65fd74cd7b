#include "earlier_files.h"

#include "numbered_files.h"

static void close_file(struct ct_earlier_files *earlier, uint32_t i)
{
    sqlite3_finalize(earlier->file[i].find);
    sqlite3_close(earlier->file[i].connection);
}

void ct_earlier_files_begin(struct ct_earlier_files *earlier, uint64_t until_ns)
{
    for (uint32_t i = 0; i < earlier->files; i++)
        close_file(earlier, i);
    *earlier = (struct ct_earlier_files){ .until_ns = until_ns };
}

/* Opens the earlier files. Skips files that cannot be queried, because readers of the whole series cannot
 * read them either. */
static void open_files(struct ct_earlier_files *earlier, const struct ct_database *database)
{
    char path[sizeof(database->path)];
    earlier->open = true;
    for (uint32_t number = database->number; earlier->files < CT_SERIES_FILES_MAX &&
                                             (number = ct_numbered_before(database->trace, number)) != 0;) {
        sqlite3 *connection = ct_database_open_earlier(database, number, false, path);
        sqlite3_stmt *find = NULL;
        if (connection)
            sqlite3_prepare_v2(connection, "SELECT 1 FROM call WHERE end_ns = ?1", -1, &find, NULL);
        if (!find) {
            sqlite3_close(connection);
            continue;
        }
        earlier->file[earlier->files].connection = connection;
        earlier->file[earlier->files++].find = find;
    }
}

bool ct_earlier_files_has(struct ct_earlier_files *earlier, const struct ct_database *database,
                          uint64_t call_id)
{
    if (call_id > earlier->until_ns)
        return false;
    if (!earlier->open)
        open_files(earlier, database);
    int rc = SQLITE_DONE;
    for (uint32_t i = 0; i < earlier->files && rc != SQLITE_ROW; i++) {
        sqlite3_stmt *find = earlier->file[i].find;
        sqlite3_bind_int64(find, 1, (sqlite3_int64)call_id);
        rc = sqlite3_step(find);
        sqlite3_reset(find);
        if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
            close_file(earlier, i);
            earlier->file[i--] = earlier->file[--earlier->files];
        }
    }
    return rc == SQLITE_ROW;
}
