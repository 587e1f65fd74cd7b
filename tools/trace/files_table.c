#include "files_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A statement that reads the rows. After use, another cursor may use it, because SQLite opens a cursor each
 * time it executes a subquery. */
struct reader {
    struct reader *next;
    sqlite3_stmt *statement;
};

/* What a module is created with. */
struct definition {
    const char *key;
    char *select;
};

struct table {
    sqlite3_vtab base;
    sqlite3 *connection;
    const struct definition *definition;
    char **column;    /* names, quoted */
    int columns, key; /* the key's column, -1 if there is none */
    struct reader *idle;
    sqlite3_stmt *held; /* see hold() */
    int cursors;
};
struct cursor {
    sqlite3_vtab_cursor base;
    struct reader *reader;
    const char *tail; /* of the reader's query, and its columns */
    int columns;
    bool has_row;
    sqlite3_int64 number;
};

/* ---- the table ---- */

static void free_columns(struct table *table)
{
    for (int c = 0; table->column && c < table->columns; c++)
        sqlite3_free(table->column[c]);
    sqlite3_free(table->column);
}

/* Declares the columns with the types that they have in the files, because comparisons depend on them. */
static int declare(struct table *table, sqlite3_stmt *statement)
{
    sqlite3_str *declaration = sqlite3_str_new(table->connection);
    table->columns = sqlite3_column_count(statement);
    table->column = sqlite3_malloc64(sizeof(*table->column) * (size_t)table->columns);
    for (int c = 0; table->column && c < table->columns; c++) {
        const char *name = sqlite3_column_name(statement, c), *type = sqlite3_column_decltype(statement, c);
        if (table->definition->key && name && strcmp(name, table->definition->key) == 0)
            table->key = c;
        table->column[c] = sqlite3_mprintf("\"%w\"", name ? name : "");
        sqlite3_str_appendf(declaration, "%s%s %s", c > 0 ? ", " : "CREATE TABLE x (", table->column[c],
                            type ? type : "");
    }
    sqlite3_str_appendall(declaration, ")");
    char *text = sqlite3_str_finish(declaration);
    const int rc = table->column && text ? sqlite3_declare_vtab(table->connection, text) : SQLITE_NOMEM;
    sqlite3_free(text);
    return rc;
}

static int table_disconnect(sqlite3_vtab *base)
{
    struct table *table = (struct table *)base;
    while (table->idle) {
        struct reader *reader = table->idle;
        table->idle = reader->next;
        sqlite3_finalize(reader->statement);
        sqlite3_free(reader);
    }
    sqlite3_finalize(table->held);
    free_columns(table);
    sqlite3_free(table);
    return SQLITE_OK;
}

static int table_connect(sqlite3 *connection, void *definition, int argc, const char *const *argv,
                         sqlite3_vtab **result, char **error)
{
    (void)argc, (void)argv;
    sqlite3_stmt *statement = NULL;
    struct table *table = sqlite3_malloc(sizeof(*table));
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct table){ .connection = connection, .definition = definition, .key = -1 };
    int rc = sqlite3_prepare_v2(connection, table->definition->select, -1, &statement, NULL);
    if (rc != SQLITE_OK)
        *error = sqlite3_mprintf("%s", sqlite3_errmsg(connection));
    if (rc == SQLITE_OK)
        rc = declare(table, statement);
    sqlite3_finalize(statement);
    sqlite3_vtab_config(connection, SQLITE_VTAB_INNOCUOUS); /* views may read it; it only reads views */
    if (rc != SQLITE_OK) {
        table_disconnect(&table->base);
        return rc;
    }
    *result = &table->base;
    return SQLITE_OK;
}

/* Writes the conditions on the key, and the order, into the index's name, which is a part of the query, and
 * the set of columns into its number. Other conditions are left to SQLite: for `process_id IN (…)`, it would
 * read the table once for each process. */
static int table_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    enum { COLUMNS_MOST = 31 };
    static const struct {
        int op;
        const char *name;
    } operators[] = {
        { SQLITE_INDEX_CONSTRAINT_EQ, "=" },  { SQLITE_INDEX_CONSTRAINT_GT, ">" },
        { SQLITE_INDEX_CONSTRAINT_GE, ">=" }, { SQLITE_INDEX_CONSTRAINT_LT, "<" },
        { SQLITE_INDEX_CONSTRAINT_LE, "<=" },
    };
    const struct table *table = (const struct table *)base;
    sqlite3_str *tail = sqlite3_str_new(table->connection);
    int arguments = 0;
    bool is_one = false;
    for (int i = 0; i < info->nConstraint; i++) {
        for (size_t o = 0; o < sizeof(operators) / sizeof(operators[0]); o++) {
            if (!info->aConstraint[i].usable || table->key < 0 ||
                info->aConstraint[i].iColumn != table->key || info->aConstraint[i].op != operators[o].op)
                continue;
            sqlite3_str_appendf(tail, "%s %s %s ?", arguments > 0 ? " AND" : " WHERE", table->definition->key,
                                operators[o].name);
            info->aConstraintUsage[i].argvIndex = ++arguments;
            is_one |= operators[o].op == SQLITE_INDEX_CONSTRAINT_EQ;
        }
    }
    if (info->nOrderBy == 1 && table->key >= 0 && info->aOrderBy[0].iColumn == table->key && !is_one) {
        sqlite3_str_appendf(tail, " ORDER BY %s%s", table->definition->key,
                            info->aOrderBy[0].desc ? " DESC" : "");
        info->orderByConsumed = 1;
    }
    const bool is_failed = sqlite3_str_errcode(tail) != SQLITE_OK;
    info->idxStr = sqlite3_str_finish(tail);
    info->needToFreeIdxStr = info->idxStr != NULL;
    info->idxNum = table->columns <= COLUMNS_MOST ? (int)(info->colUsed & INT32_MAX) : -1;
    info->estimatedRows = is_one ? 1 : arguments > 1 ? 10000 : arguments > 0 ? 250000 : 1000000;
    info->estimatedCost = 20 + (double)info->estimatedRows;
    return is_failed ? SQLITE_NOMEM : SQLITE_OK;
}

/* ---- reading ---- */

/* Starts or ends a read transaction. As long as it lasts, all statements read the same state of the newest
 * file. A statement that only reads tables like this one has no transaction of its own. */
static int hold(struct table *table)
{
    int rc = SQLITE_OK;
    if (!table->held)
        rc =
            sqlite3_prepare_v2(table->connection, "SELECT 1 FROM main.sqlite_master", -1, &table->held, NULL);
    if (rc == SQLITE_OK && sqlite3_step(table->held) != SQLITE_ROW)
        rc = sqlite3_reset(table->held);
    return rc;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **result)
{
    struct table *table = (struct table *)base;
    struct cursor *cursor = sqlite3_malloc(sizeof(*cursor));
    if (!cursor)
        return SQLITE_NOMEM;
    const int rc = table->cursors == 0 ? hold(table) : SQLITE_OK;
    if (rc != SQLITE_OK) {
        sqlite3_free(cursor);
        return rc;
    }
    table->cursors++;
    *cursor = (struct cursor){ 0 };
    *result = &cursor->base;
    return SQLITE_OK;
}

/* Makes the cursor's statement available to other cursors. */
static void put_back(struct cursor *cursor)
{
    struct table *table = (struct table *)cursor->base.pVtab;
    if (!cursor->reader)
        return;
    sqlite3_reset(cursor->reader->statement);
    cursor->reader->next = table->idle;
    table->idle = cursor->reader;
    cursor->reader = NULL;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
    struct table *table = (struct table *)base->pVtab;
    put_back((struct cursor *)base);
    sqlite3_free(base);
    if (--table->cursors == 0)
        sqlite3_reset(table->held);
    return SQLITE_OK;
}

/* Returns the query for a set of columns. The others are NULL. */
static char *query_for(const struct table *table, int columns, const char *tail)
{
    sqlite3_str *sql = sqlite3_str_new(table->connection);
    for (int c = 0; c < table->columns; c++)
        sqlite3_str_appendf(sql, "%s%s", c > 0 ? ", " : "SELECT ",
                            c == table->key || columns < 0 || columns & 1 << c ? table->column[c] : "NULL");
    sqlite3_str_appendf(sql, " FROM (%s)%s", table->definition->select, tail);
    return sqlite3_str_finish(sql);
}

/* Gives the cursor a statement that executes the query. */
static int take_reader(struct cursor *cursor, const char *sql)
{
    struct table *table = (struct table *)cursor->base.pVtab;
    for (struct reader **idle = &table->idle; *idle; idle = &(*idle)->next) {
        if (strcmp(sqlite3_sql((*idle)->statement), sql) != 0)
            continue;
        cursor->reader = *idle;
        *idle = (*idle)->next;
        return SQLITE_OK;
    }
    cursor->reader = sqlite3_malloc(sizeof(*cursor->reader));
    if (!cursor->reader)
        return SQLITE_NOMEM;
    *cursor->reader = (struct reader){ 0 };
    return sqlite3_prepare_v3(table->connection, sql, -1, SQLITE_PREPARE_PERSISTENT,
                              &cursor->reader->statement, NULL);
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    const int rc = sqlite3_step(cursor->reader->statement);
    cursor->has_row = rc == SQLITE_ROW;
    cursor->number++;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int columns, const char *tail, int argc,
                         sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    struct table *table = (struct table *)base->pVtab;
    int rc = SQLITE_OK;
    if (cursor->reader && cursor->tail == tail && cursor->columns == columns) {
        sqlite3_reset(cursor->reader->statement);
    } else { /* SQLite may use a cursor for several indexes, if a condition contains OR */
        char *sql = query_for(table, columns, tail ? tail : "");
        put_back(cursor);
        rc = sql ? take_reader(cursor, sql) : SQLITE_NOMEM;
        sqlite3_free(sql);
        cursor->tail = tail;
        cursor->columns = columns;
    }
    for (int i = 0; rc == SQLITE_OK && i < argc; i++)
        rc = sqlite3_bind_value(cursor->reader->statement, i + 1, argv[i]);
    if (rc == SQLITE_OK)
        rc = cursor_next(base);
    if (rc != SQLITE_OK && rc != SQLITE_NOMEM) {
        sqlite3_free(table->base.zErrMsg);
        table->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(table->connection));
    }
    return rc;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
    return !((struct cursor *)base)->has_row;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    sqlite3_result_value(context, sqlite3_column_value(((struct cursor *)base)->reader->statement, column));
    return SQLITE_OK;
}

/* SQLite compares the row IDs if it reads a table once for each part of an OR. It does so only for conditions
 * on the key. */
static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const struct cursor *cursor = (struct cursor *)base;
    const struct table *table = (const struct table *)base->pVtab;
    *rowid = table->key < 0 ? cursor->number : sqlite3_column_int64(cursor->reader->statement, table->key);
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .xConnect = table_connect, /* no xCreate: the table exists under the module's name */
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_filter,
    .xNext = cursor_next,
    .xEof = cursor_eof,
    .xColumn = cursor_column,
    .xRowid = cursor_rowid,
};

static void free_definition(void *data)
{
    struct definition *definition = data;
    sqlite3_free(definition->select);
    sqlite3_free(definition);
}

int ct_files_table_add(sqlite3 *connection, const char *name, char *select, const char *key)
{
    struct definition *definition = select ? sqlite3_malloc(sizeof(*definition)) : NULL;
    if (!definition) {
        sqlite3_free(select);
        return SQLITE_NOMEM;
    }
    *definition = (struct definition){ .key = key, .select = select };
    return sqlite3_create_module_v2(connection, name, &module, definition, free_definition);
}
