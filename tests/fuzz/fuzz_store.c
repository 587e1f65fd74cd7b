#include "fuzz_store.h"

#include "segment.h"
#include "session_names.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sqlite3 *reader;
static char folder[80], template[96], database[96];

_Noreturn void fuzz_fail(const char *what, const char *more)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, more);
    abort();
}

/* ---- making a database ---- */

static void clean_up(void)
{
    unlink(template);
    unlink(database);
    rmdir(folder);
}

const char *fuzz_folder(void)
{
    char message[CT_MESSAGE_BYTES];
    struct ct_store *store;
    if (folder[0])
        return folder;
    /* Use $TMPDIR, because tools/fuzz removes that folder even if a crash prevents clean_up() from
     * running. */
    const char *const parent = getenv("TMPDIR");
    snprintf(folder, sizeof(folder), "%s/ct-fuzz.XXXXXX",
             parent && strlen(parent) < 60 ? parent : CT_SHM_DIR);
    if (!mkdtemp(folder))
        fuzz_fail(folder, "cannot be made");
    atexit(clean_up);
    snprintf(template, sizeof(template), "%s/template.db", folder);
    snprintf(database, sizeof(database), "%s/fuzz.db", folder);
    if (ct_store_open(template, "fuzz", &store, message) != 0)
        fuzz_fail("the database", message);
    ct_store_close(store);
    return folder;
}

static void copy_template(void)
{
    char bytes[65536];
    const int in = open(template, O_RDONLY | O_CLOEXEC);
    const int out = open(database, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (ssize_t n; (n = read(in, bytes, sizeof(bytes))) > 0;) {
        if (write(out, bytes, (size_t)n) != n)
            fuzz_fail(database, "cannot be written");
    }
    close(in);
    close(out);
}

struct ct_store *fuzz_store_open(void)
{
    char message[CT_MESSAGE_BYTES];
    struct ct_store *store;
    fuzz_folder();
    copy_template();
    if (ct_store_open(database, "fuzz", &store, message) != 0)
        fuzz_fail("the database", message);
    if (sqlite3_open_v2(database, &reader, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        fuzz_fail("the database", "no reader");
    return store;
}

/* Closes the reader first, because the last connection to close must remove the write-ahead log, and a
 * read-only connection cannot remove it. */
void fuzz_store_close(struct ct_store *store)
{
    sqlite3_close(reader);
    ct_store_close(store);
}

/* ---- checking it ---- */

void fuzz_store_check_none(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(reader, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        fuzz_fail(sql, sqlite3_errmsg(reader));
    if (sqlite3_column_int64(statement, 0) != 0)
        fuzz_fail("not 0", sql);
    sqlite3_finalize(statement);
}

/* Queries that each count rows which must not exist. */
static const char *const wrong[] = {
    "SELECT count(*) FROM totals WHERE calls <> stored + lost + skipped",
    "SELECT count(*) FROM (SELECT process_id, layer, name, stored FROM totals WHERE stored > 0 EXCEPT "
    "SELECT process_id, layer, name, count(*) FROM calls GROUP BY process_id, layer, name)",
    "SELECT (SELECT ifnull(sum(stored), 0) FROM totals) - (SELECT count(*) FROM calls)",
    "SELECT (SELECT count(*) FROM call) - (SELECT count(*) FROM calls)",
    "SELECT count(*) FROM call WHERE end_ns <= 0 OR duration_ns < 0 OR duration_ns > end_ns OR bytes < 0 OR "
    "typeof(duration_ns) <> 'integer'",
    "SELECT count(*) FROM totals WHERE min(calls, stored, lost, skipped, total_ns, ifnull(min_ns, 0), "
    "ifnull(max_ns, 0), bytes, failed) < 0 OR typeof(calls) <> 'integer' OR typeof(total_ns) <> 'integer' OR "
    "typeof(bytes) <> 'integer'",
    "SELECT count(*) FROM losses WHERE min(calls, first_ns, last_ns) < 0",
    "SELECT count(*) FROM processes WHERE started_ns < 0 OR ended_ns < 0 OR state NOT IN ('running', "
    "'exited', 'killed', 'detached', 'left')",
    "SELECT count(*) FROM open_call WHERE start_ns < 0",
    "SELECT count(*) FROM launch LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
    "SELECT count(*) FROM transfer LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
    "SELECT count(*) FROM allocation LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
    "SELECT count(*) FROM range LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
    "SELECT count(*) FROM hook_call LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
    "SELECT (SELECT count(*) FROM gpu_work) - (SELECT count(*) FROM gpu_run)",
    "SELECT count(*) FROM gpu_work LEFT JOIN call ON end_ns = call_id WHERE call_id IS NOT NULL AND end_ns "
    "IS "
    "NULL",
    "SELECT count(*) FROM gpu_work WHERE min(gpu_start_ns, duration_ns, ifnull(queued_ns, 0), ifnull(bytes, "
    "0)) "
    "< 0 OR gpu_end_ns - gpu_start_ns <> duration_ns",
    "SELECT count(*) FROM gpu_idle WHERE duration_ns <= 0 OR to_ns - from_ns <> duration_ns",
    "SELECT count(*) FROM streams WHERE busy_ns NOT BETWEEN 0 AND last_ns - first_ns",
    "SELECT (SELECT count(*) FROM hooks) - (SELECT count(*) FROM hook_call)",
    "SELECT count(*) FROM graph_launch LEFT JOIN call ON end_ns = call_id WHERE end_ns IS NULL",
};

static bool is_utf8(const unsigned char *text)
{
    for (size_t i = 0; text[i];) {
        size_t more = text[i] < 0x80 ? 0 : text[i] >= 0xf0 ? 3 : text[i] >= 0xe0 ? 2 : 1;
        if (text[i] >= 0x80 && (text[i] < 0xc2 || text[i] > 0xf4))
            return false;
        for (i++; more > 0; more--, i++) {
            if ((text[i] & 0xc0) != 0x80)
                return false;
        }
    }
    return true;
}

static void check_texts(void)
{
    static const char sql[] =
        "SELECT exe FROM process UNION ALL SELECT cmdline FROM process UNION ALL SELECT name FROM thread "
        "UNION ALL SELECT name FROM function UNION ALL SELECT mangled FROM name UNION ALL "
        "SELECT demangled FROM name UNION ALL SELECT text FROM text";
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(reader, sql, -1, &statement, NULL) != SQLITE_OK)
        fuzz_fail(sql, sqlite3_errmsg(reader));
    while (sqlite3_step(statement) == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(statement, 0);
        if (text && !is_utf8(text))
            fuzz_fail("a text is no UTF-8", (const char *)text);
    }
    sqlite3_finalize(statement);
}

void fuzz_store_check(void)
{
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        fuzz_store_check_none(wrong[i]);
    check_texts();
}
