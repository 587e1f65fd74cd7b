/* Uses SQLite's authorizer to restrict queries. Only listed actions are allowed, so that new actions in
 * later versions of SQLite are denied until they have been reviewed. */
#include "confine.h"

#include <stdbool.h>
#include <string.h>

/* The allowed pragmas, which only report something. An argument is allowed only if it names a table. For all
 * other pragmas, an argument would set a value, so it is denied. */
static const struct {
    const char *name;
    bool takes_argument;
} pragmas[] = {
    { "table_info", true },       { "table_xinfo", true },     { "table_list", true },
    { "index_list", true },       { "index_info", true },      { "index_xinfo", true },
    { "foreign_key_list", true }, { "integrity_check", true }, { "quick_check", true },
    { "application_id", false },  { "user_version", false },   { "schema_version", false },
    { "page_size", false },       { "page_count", false },     { "freelist_count", false },
    { "encoding", false },        { "journal_mode", false },   { "compile_options", false },
    { "function_list", false },   { "module_list", false },    { "pragma_list", false },
    { "collation_list", false },  { "data_version", false },   { "database_list", false },
};

/* The functions that are denied. The first function gives access to the process's memory, and the others give
 * access to files. Most SQLite builds lack or disable these functions. */
static const char *const functions_denied[] = { "fts3_tokenizer", "load_extension", "readfile", "writefile",
                                                "edit",           "fsdir",          "lsmode" };

static bool pragma_is_harmless(const char *name, const char *argument)
{
    for (size_t i = 0; i < sizeof(pragmas) / sizeof(pragmas[0]); i++) {
        if (sqlite3_stricmp(pragmas[i].name, name) == 0)
            return pragmas[i].takes_argument || !argument;
    }
    return false;
}

static bool function_is_harmless(const char *name)
{
    for (size_t i = 0; i < sizeof(functions_denied) / sizeof(functions_denied[0]); i++) {
        if (sqlite3_stricmp(functions_denied[i], name) == 0)
            return false;
    }
    return true;
}

static int authorize(void *data, int action, const char *first, const char *second, const char *database,
                     const char *trigger)
{
    (void)data, (void)database, (void)trigger;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
    case SQLITE_TRANSACTION: /* several queries on the same snapshot */
        return SQLITE_OK;
    case SQLITE_UPDATE:
        /* SQLite reports SQLITE_UPDATE when it declares the columns of a table-valued function. A real update
         * would still fail, because the connection is defensive and the file is opened read-only. */
        return strcmp(first, "sqlite_master") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_PRAGMA:
        return pragma_is_harmless(first, second) ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION:
        return function_is_harmless(second) ? SQLITE_OK : SQLITE_DENY;
    default:
        return SQLITE_DENY;
    }
}

static int give_up(void *data)
{
    (void)data;
    return 1;
}

void ct_trace_hurry(sqlite3 *connection)
{
    enum { STEPS_MAX = 1000000 }; /* SQLite's virtual machine instructions; a trace needs a few dozen */
    sqlite3_progress_handler(connection, STEPS_MAX, give_up, NULL);
}

void ct_trace_confine(sqlite3 *connection)
{
    static const struct {
        int option, value;
    } settings[] = {
        { SQLITE_DBCONFIG_DEFENSIVE, 1 },
        { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
        { SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0 },
        { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
        { SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0 },
        { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 },
    };
    /* These limits are far above what a trace needs, but keep a forged file from causing huge allocations. */
    static const struct {
        int limit, value;
    } limits[] = {
        { SQLITE_LIMIT_LENGTH, 64 * 1024 * 1024 },
        { SQLITE_LIMIT_SQL_LENGTH, 8 * 1024 * 1024 },
        { SQLITE_LIMIT_ATTACHED, 0 },
        { SQLITE_LIMIT_WORKER_THREADS, 0 },
        { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
        { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10000 },
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        sqlite3_db_config(connection, settings[i].option, settings[i].value, NULL);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        sqlite3_limit(connection, limits[i].limit, limits[i].value);
    /* Without mmap, a read fails instead of raising SIGBUS if another process truncates the file. */
    sqlite3_exec(connection, "PRAGMA mmap_size = 0; PRAGMA cell_size_check = 1", NULL, NULL, NULL);
    sqlite3_set_authorizer(connection, authorize, NULL);
}
