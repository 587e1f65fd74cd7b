#include "copy_table.h"

#include <stddef.h>

static int make_table(sqlite3 *to, const char *table, sqlite3_stmt *from, sqlite3_stmt **insert)
{
    sqlite3_str *create = sqlite3_str_new(to), *fill = sqlite3_str_new(to);
    sqlite3_str_appendf(create, "DROP TABLE IF EXISTS %s; CREATE TABLE %s (", table, table);
    sqlite3_str_appendf(fill, "INSERT INTO %s VALUES (", table);
    for (int c = 0; c < sqlite3_column_count(from); c++) {
        sqlite3_str_appendf(create, "%s%Q", c ? ", " : "", sqlite3_column_name(from, c));
        sqlite3_str_appendf(fill, "%s?", c ? ", " : "");
    }
    sqlite3_str_appendall(create, ")");
    sqlite3_str_appendall(fill, ")");
    char *create_sql = sqlite3_str_finish(create), *fill_sql = sqlite3_str_finish(fill);
    int rc = create_sql && fill_sql ? sqlite3_exec(to, create_sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(to, fill_sql, -1, insert, NULL);
    sqlite3_free(create_sql);
    sqlite3_free(fill_sql);
    return rc;
}

int ct_copy_table(sqlite3_stmt *from, sqlite3 *to, const char *name, sqlite3 **blamed)
{
    sqlite3_stmt *insert = NULL;
    sqlite3 *trace = sqlite3_db_handle(from);
    int rc = make_table(to, name, from, &insert);
    *blamed = rc == SQLITE_OK ? trace : to;
    while (rc == SQLITE_OK && (rc = sqlite3_step(from)) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(from); c++)
            sqlite3_bind_value(insert, c + 1, sqlite3_column_value(from, c));
        rc = sqlite3_step(insert) == SQLITE_DONE ? sqlite3_reset(insert) : SQLITE_ERROR;
        *blamed = rc == SQLITE_OK ? trace : to;
    }
    sqlite3_finalize(insert);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
