/* Reads a trace of several files as one. Finds the files, and creates temporary views that replace those of
 * the newest file. */
#include "series.h"

#include "confine.h"
#include "files_table.h"
#include "side_files.h"
#include "trace_file.h"

#include "schema_sql.h"
#include "schema_version.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the name of a file's series from its meta table. Returns false if the file has none. */
static bool read_series(const char *path, char series[CT_SERIES_BYTES])
{
    struct ct_trace_facts facts;
    ct_trace_inspect(path, &facts, NULL, 0);
    memcpy(series, facts.series, CT_SERIES_BYTES);
    return series[0] != '\0';
}

/* Adds the files of the trace at `path` that belong to the series, from number `from` on. If `series` is
 * empty, sets it to the newest file's series. Leaves out files of another owner than the file at `path`, or
 * if there is none, than the newest file: anyone may put a file into a folder such as /tmp. */
static void collect(struct ct_series *found, const char *path, uint32_t from, char series[CT_SERIES_BYTES])
{
    char file[sizeof(found->path[0])], of_file[CT_SERIES_BYTES];
    const uint32_t had = found->files;
    uint32_t owner;
    bool is_owned = ct_trace_file_owner(path, &owner);
    for (uint32_t number = UINT32_MAX;
         (number = ct_trace_file_before(path, number, is_owned ? &owner : NULL)) >= from && number > 0;) {
        if (!ct_trace_file(file, sizeof(file), path, number) || !read_series(file, of_file))
            continue;
        is_owned = is_owned || ct_trace_file_owner(file, &owner);
        if (!*series)
            memcpy(series, of_file, CT_SERIES_BYTES);
        const bool ours = strcmp(series, of_file) == 0;
        if (!ours && found->files > had)
            return;
        if (ours && found->files == CT_SERIES_FILES_MAX)
            found->left_out++;
        else if (ours)
            memcpy(found->path[found->files++], file, sizeof(file));
    }
}

static bool is_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

bool ct_series_find(const char *path, struct ct_series *found)
{
    char series[CT_SERIES_BYTES] = "", first[sizeof(found->path[0])], target[PATH_MAX];
    uint32_t number;
    *found = (struct ct_series){ 0 };
    if (is_link(path) && realpath(path, target)) /* the other files are next to the link's target */
        path = target;
    const bool there = access(path, F_OK) == 0;
    if (there && !read_series(path, series)) {
        snprintf(found->path[found->files++], sizeof(found->path[0]), "%s", path);
        return true;
    }
    collect(found, path, 1, series);
    if (found->files + found->left_out <= 1 && ct_trace_split(path, first, sizeof(first), &number)) {
        found->files = 0;
        collect(found, first, number, series);
    }
    return found->files > 0;
}

/* Resolves symbolic links in the path of a file's folder. The file itself may no longer exist. */
static bool resolve_folder(const char *path, char folder[PATH_MAX])
{
    char named[PATH_MAX];
    ct_trace_folder(path, named);
    return realpath(named, folder) != NULL;
}

static bool is_same(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool have_same_folder(const char *a, const char *b)
{
    char first[PATH_MAX], second[PATH_MAX];
    return resolve_folder(a, first) && resolve_folder(b, second) && strcmp(first, second) == 0;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool ct_series_has(const char *wanted, const char *served)
{
    return is_same(wanted, served) ||
           (have_same_folder(wanted, served) && ct_trace_file_number(wanted, name_of(served)) > 0);
}

bool ct_series_has_file(const struct ct_series *series, const char *path)
{
    char own[sizeof(series->path[0]) + 16];
    for (size_t i = 0; i < series->files * CT_DATABASE_PARTS; i++) {
        snprintf(own, sizeof(own), "%s%s", series->path[i / CT_DATABASE_PARTS],
                 ct_database_parts[i % CT_DATABASE_PARTS]);
        if (is_same(own, path) || (strcmp(name_of(own), name_of(path)) == 0 && have_same_folder(own, path)))
            return true;
    }
    return false;
}

/* ---- views over all files ---- */

/* Generated from schema/views*.sql. */
static const struct {
    const char *view;
    const char *key, *table; /* the table is set if a row may continue in later files; NULL if each row is
                              * complete in a single file. The key is set if it finds rows in each file, or
                              * in the table */
    const char *select;      /* set if the view reads only other views, so that one query covers all files */
} views[] = {
#define ROW(view_, key_, table_, select_) { view_, key_, table_, select_ },
    CT_VIEWS(ROW)
#undef ROW
};
enum { VIEWS = sizeof(views) / sizeof(views[0]) };

const char *ct_series_schema(uint32_t i)
{
    static const char *const names[CT_SERIES_FILES_MAX] = { "main",      "earlier_1", "earlier_2",
                                                            "earlier_3", "earlier_4", "earlier_5",
                                                            "earlier_6", "earlier_7", "earlier_8",
                                                            "earlier_9" };
    return names[i];
}

/* The views to create. */
struct scope {
    sqlite3 *connection;
    uint32_t files;
    struct ct_run run;
};

/* The columns by which the rows of a run are selected. Rows of a view with none of them belong to all runs.
 */
enum selector { RUN_ID, TIME_NS, PROCESS_ID, CALL_ID, FIRST_NS, START_NS, SELECTORS };
static const char *const selectors[SELECTORS] = { "run_id",  "time_ns",  "process_id",
                                                  "call_id", "first_ns", "start_ns" };

/* Sets `has` for the columns that the view has. */
static void find_selectors(sqlite3 *connection, const char *view, bool has[SELECTORS])
{
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM main.\"%w\"", view);
    if (sql)
        sqlite3_prepare_v2(connection, sql, -1, &statement, NULL);
    for (int c = 0; c < sqlite3_column_count(statement); c++) {
        for (int i = 0; i < SELECTORS; i++)
            has[i] |= strcmp(sqlite3_column_name(statement, c), selectors[i]) == 0;
    }
    sqlite3_finalize(statement);
    sqlite3_free(sql);
}

/* Adds the condition that selects the rows of a run: by the process if the rows have one, and by the time.
 * GPU work is not selected by its call, because it may have none. The unary plus keeps SQLite from using the
 * index of calls for this condition instead of a window in the query. */
static void add_condition(sqlite3_str *sql, const struct scope *scope, const char *view)
{
    bool has[SELECTORS] = { false };
    find_selectors(scope->connection, view, has);
    const bool has_process = has[PROCESS_ID] && !has[TIME_NS];
    const bool has_call = has[CALL_ID] && (has[START_NS] || !has_process);
    const enum selector time = has[TIME_NS] ? TIME_NS : has_call ? CALL_ID : FIRST_NS;
    if (has[RUN_ID]) {
        sqlite3_str_appendf(sql, " WHERE run_id = %lld", scope->run.id);
        return;
    }
    if (has[TIME_NS] || has_call || (has[FIRST_NS] && !has_process))
        sqlite3_str_appendf(sql, " WHERE +%s BETWEEN %lld AND %lld", selectors[time], scope->run.from_ns,
                            scope->run.to_ns);
    if (has_process) /* the view of that name has only the run's processes */
        sqlite3_str_appendf(sql, " %s process_id IN (SELECT process_id FROM processes)",
                            has_call ? "AND" : "WHERE");
}

/* How a statement reads the query of a view over several files. */
enum reading {
    DIRECTLY, /* SQLite combines the query with the statement */
    BY_KEY,   /* through a table (files_table.h), once for each row of a join */
    AT_ONCE,  /* through a table that SQLite copies for a join, with an index */
};

/* Reads rows that continue in later files at once, because there are few of them. There may be many
 * allocations, so they are an exception. */
static enum reading reading_of(size_t view)
{
    if (!views[view].key)
        return DIRECTLY;
    if (!views[view].table)
        return BY_KEY;
    return strcmp(views[view].table, "allocation") == 0 ? DIRECTLY : AT_ONCE;
}

/* Adds the definition of a view that reads all files. Finishes `select`. The limit keeps SQLite from
 * combining the table with the statement, which would read it once for each row of a join. */
static int add_definition(sqlite3_str *sql, const struct scope *scope, const char *view, sqlite3_str *select,
                          enum reading reading, const char *key)
{
    char *query = sqlite3_str_finish(select), table[64];
    int rc = query ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_str_appendf(sql, "CREATE TEMP VIEW %s AS ", view);
    if (scope->files > 1 && reading != DIRECTLY) {
        snprintf(table, sizeof(table), "%s_of_files", view);
        rc = ct_files_table_add(scope->connection, table, query, reading == BY_KEY ? key : NULL);
        sqlite3_str_appendf(sql, "SELECT * FROM %s", table);
    } else {
        sqlite3_str_appendf(sql, scope->run.id ? "SELECT * FROM (%z)" : "%z", query);
    }
    if (scope->run.id)
        add_condition(sql, scope, view);
    sqlite3_str_appendall(sql, scope->files > 1 && reading == AT_ONCE ? " LIMIT -1;" : ";");
    return rc;
}

static int add_view(sqlite3_str *sql, size_t view, const struct scope *scope)
{
    if (views[view].select) { /* reads views that select the run */
        sqlite3_str_appendf(sql, "CREATE TEMP VIEW %s AS %s;", views[view].view, views[view].select);
        return SQLITE_OK;
    }
    sqlite3_str *select = sqlite3_str_new(scope->connection);
    for (uint32_t i = 0; i < scope->files; i++) {
        sqlite3_str_appendall(select, i > 0 ? " UNION ALL " : "");
        if (i > 0 && views[view].table)
            sqlite3_str_appendf(select, ct_sql_series_newest, ct_series_schema(i), views[view].view,
                                views[view].key, views[view].key, ct_series_schema(i - 1), views[view].table);
        else
            sqlite3_str_appendf(select, ct_sql_series_rows, ct_series_schema(i), views[view].view);
    }
    return add_definition(sql, scope, views[view].view, select, reading_of(view), views[view].key);
}

static int add_totals(sqlite3_str *sql, const struct scope *scope)
{
    const uint32_t files = scope->files;
    sqlite3_str *select = sqlite3_str_new(scope->connection);
    for (uint32_t i = 0; i < files; i++) {
        sqlite3_str *earlier = sqlite3_str_new(NULL);
        for (uint32_t j = i + 1; j < files; j++)
            sqlite3_str_appendf(earlier, ct_sql_series_found_earlier, ct_series_schema(j),
                                ct_series_schema(j));
        char *found_earlier = sqlite3_str_finish(earlier);
        const char *less = found_earlier ? found_earlier : "";
        if (i > 0)
            sqlite3_str_appendf(select, " UNION ALL " ct_sql_series_totals, less, ct_series_schema(i),
                                ct_series_schema(i - 1));
        else
            sqlite3_str_appendf(select, ct_sql_series_newest_totals, less, ct_series_schema(i));
        sqlite3_free(found_earlier);
    }
    return add_definition(sql, scope, "totals", select, AT_ONCE, NULL);
}

static int add_gpu_work(sqlite3_str *sql, const struct scope *scope)
{
    const uint32_t files = scope->files;
    const char *oldest = ct_series_schema(files - 1);
    sqlite3_str *select = sqlite3_str_new(scope->connection);
    for (uint32_t i = 0; i < files; i++) {
        sqlite3_str *later = sqlite3_str_new(NULL);
        for (uint32_t j = i; j > 0; j--)
            sqlite3_str_appendf(later, ct_sql_series_gpu_work_call, ct_series_schema(j - 1));
        char *calls = sqlite3_str_finish(later);
        sqlite3_str_appendall(select, i > 0 ? " UNION ALL " : "");
        sqlite3_str_appendf(select, ct_sql_series_gpu_work, calls ? calls : "", oldest, oldest,
                            ct_series_schema(i));
        sqlite3_free(calls);
    }
    return add_definition(sql, scope, "gpu_work", select, AT_ONCE, NULL);
}

/* Executes SQL statements, and frees their text. */
static int execute(sqlite3 *connection, char *statements)
{
    const int rc = statements ? sqlite3_exec(connection, statements, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(statements);
    return rc;
}

static int create_views(const struct scope *scope)
{
    sqlite3_str *sql = sqlite3_str_new(scope->connection);
    int rc = SQLITE_OK;
    for (size_t view = 0; view < VIEWS && rc == SQLITE_OK; view++)
        rc = add_view(sql, view, scope);
    if (rc == SQLITE_OK)
        rc = add_totals(sql, scope);
    if (rc == SQLITE_OK)
        rc = add_gpu_work(sql, scope);
    const int executed = execute(scope->connection, sqlite3_str_finish(sql));
    return rc == SQLITE_OK ? executed : rc;
}

static int drop_views(sqlite3 *connection)
{
    sqlite3_str *sql = sqlite3_str_new(connection);
    for (size_t view = 0; view < VIEWS; view++)
        sqlite3_str_appendf(sql, "DROP VIEW IF EXISTS temp.%s;", views[view].view);
    sqlite3_str_appendall(sql, "DROP VIEW IF EXISTS temp.totals; DROP VIEW IF EXISTS temp.gpu_work;");
    return execute(connection, sqlite3_str_finish(sql));
}

/* Attaches an earlier file to the connection and reads from it. Reading also opens the file's log, so that
 * both files stay readable if a daemon removes them. */
static int attach(sqlite3 *connection, const char *path, const char *schema)
{
    char *uri = ct_trace_file_uri(path);
    const int rc =
        uri ? execute(connection, sqlite3_mprintf("ATTACH %Q AS %s; SELECT count(*) FROM %s.sqlite_master",
                                                  uri, schema, schema))
            : SQLITE_NOMEM;
    sqlite3_free(uri);
    if (rc != SQLITE_OK)
        execute(connection, sqlite3_mprintf("DETACH %s", schema));
    return rc;
}

/* Attaches the earlier files that still exist, and creates views over all files. The daemon removes the
 * oldest file first, so the search stops at the first missing file. */
static int attach_all(sqlite3 *connection, const struct ct_series *series)
{
    uint32_t files = 1;
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, CT_SERIES_FILES_MAX);
    for (; files < series->files; files++) {
        const int rc = attach(connection, series->path[files], ct_series_schema(files));
        if (rc != SQLITE_OK && access(series->path[files], F_OK) != 0)
            break;
        if (rc != SQLITE_OK)
            return rc;
    }
    return create_views(&(struct scope){ connection, files, series->run });
}

/* Creates the views that a trace of an older version lacks, if they read only other views. A view whose
 * tables are missing, too, cannot be read. */
static int add_newer_views(sqlite3 *connection)
{
    sqlite3_str *sql = sqlite3_str_new(connection);
    for (size_t view = 0; view < VIEWS; view++) {
        char *find = sqlite3_mprintf("SELECT count(*) FROM sqlite_master WHERE name = %Q", views[view].view);
        if (find && views[view].select && ct_ask_number(connection, find, 0, -1) == 0)
            add_view(sql, view, &(struct scope){ connection, 1, { 0 } });
        sqlite3_free(find);
    }
    char *statements = sqlite3_str_finish(sql);
    return statements ? execute(connection, statements) : SQLITE_OK;
}

bool ct_series_has_views(sqlite3 *connection)
{
    return ct_ask_number(connection, "SELECT count(*) FROM temp.sqlite_master WHERE name = 'gpu_work'", 0,
                         0) > 0;
}

uint32_t ct_series_files(sqlite3 *connection)
{
    uint32_t files = 1;
    while (files < CT_SERIES_FILES_MAX && sqlite3_db_filename(connection, ct_series_schema(files)))
        files++;
    return files;
}

int ct_series_prepare(sqlite3 *connection, const char *sql, uint32_t i, sqlite3_stmt **statement)
{
    sqlite3_str *text = sqlite3_str_new(connection);
    for (const char *name; (name = strstr(sql, "%s")) != NULL; sql = name + strlen("%s")) {
        sqlite3_str_append(text, sql, (int)(name - sql));
        sqlite3_str_appendall(text, ct_series_schema(i));
    }
    sqlite3_str_appendall(text, sql);
    char *query = sqlite3_str_finish(text);
    *statement = NULL;
    const int rc = query ? sqlite3_prepare_v2(connection, query, -1, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(query);
    return rc;
}

int ct_series_open(const struct ct_series *series, sqlite3 **connection)
{
    int rc = ct_trace_file_open(series->path[0], connection);
    if (rc != SQLITE_OK)
        return rc;
    sqlite3_set_authorizer(*connection, NULL, NULL);
    if (series->files > 1)
        rc = attach_all(*connection, series);
    else if (series->run.id)
        rc = create_views(&(struct scope){ *connection, 1, series->run });
    else if (ct_ask_number(*connection, "PRAGMA user_version", 0, 0) < CT_SCHEMA_VERSION)
        rc = add_newer_views(*connection);
    ct_trace_confine(*connection);
    return rc;
}

int ct_series_choose_run(struct ct_series *series, sqlite3 *connection, int64_t run_id)
{
    const struct ct_run run = { .id = run_id,
                                .from_ns = ct_ask_number(connection, ct_sql_series_run_from, run_id, -1),
                                .to_ns = ct_ask_number(connection, ct_sql_series_run_to, run_id, INT64_MAX) };
    if (run.from_ns < 0)
        return SQLITE_NOTFOUND;
    series->run = run;
    sqlite3_set_authorizer(connection, NULL, NULL);
    int rc = drop_views(connection);
    if (rc == SQLITE_OK)
        rc = create_views(&(struct scope){ connection, ct_series_files(connection), run });
    ct_trace_confine(connection);
    return rc;
}
