#include "trace_open.h"

#include "call_sums.h"
#include "gpu_queue.h"
#include "gpu_sums.h"
#include "launch_around.h"
#include "launch_sums.h"
#include "own_time.h"
#include "say.h"
#include "schema_version.h"
#include "side_files.h"
#include "trace_file.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* Reports that the trace continues in a later file. After a reboot, the daemon begins the next numbered file,
 * which users who name the first file may not know about. */
static void note_successor(const char *path, const struct ct_series *series)
{
    char newest[sizeof(series->path[0])];
    uint32_t owner;
    ct_trace_file_owner(series->path[0], &owner);
    const uint32_t number = ct_trace_file_before(path, UINT32_MAX, &owner);
    if (number > 1 && ct_trace_file(newest, sizeof(newest), path, number) &&
        strcmp(newest, series->path[0]) != 0)
        ct_fail(0, "%s is the trace of an earlier boot or of an older version; the newest one is %s", path,
                newest);
    if (series->left_out > 0)
        ct_fail(
            0, "the trace has %u files, of which only the newest %u are read; select earlier files with --db",
            series->files + series->left_out, series->files);
}

/* Returns whether the file is an empty database whose content is in a write-ahead log that is not next to it.
 * In such a database's header, the version for writing is 2 (https://www.sqlite.org/fileformat.html, "File
 * format version numbers"). */
static bool lacks_log(const char *path, sqlite3 *connection)
{
    enum { WRITE_VERSION_AT = 18, WRITE_VERSION_LOG = 2 };
    char log[PATH_MAX];
    uint8_t version = 0;
    const int n = snprintf(log, sizeof(log), "%s-wal", path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_read = fd >= 0 && pread(fd, &version, 1, WRITE_VERSION_AT) == 1;
    if (fd >= 0)
        close(fd);
    return is_read && version == WRITE_VERSION_LOG && (size_t)n < sizeof(log) && access(log, F_OK) != 0 &&
           ct_ask_number(connection, "SELECT count(*) FROM sqlite_master", 0, -1) == 0;
}

/* Returns whether the file is a trace that this version can read. If not, reports the reason. */
static bool is_ours(const char *path, sqlite3 *connection)
{
    const int64_t version = ct_ask_number(connection, "PRAGMA user_version", 0, -1);
    const bool is_trace = ct_ask_number(connection, "PRAGMA application_id", 0, -1) == CT_APPLICATION_ID;
    if (!is_trace && lacks_log(path, connection))
        return ct_fail(false,
                       "'%s' is empty without its write-ahead log, %s-wal: copy or move both files together",
                       path, path);
    if (!is_trace)
        return ct_fail(false, "'%s' is not a cudatrace trace; specify one with --db", path);
    if (version > CT_SCHEMA_VERSION)
        return ct_fail(
            false, "'%s' was written by a newer cudatrace (schema %lld, this one reads %d): update cudatrace",
            path, (long long)version, CT_SCHEMA_VERSION);
    return true;
}

/* Reports files next to the trace that are not read, although their names make them parts of it. */
static void note_ignored(const struct ct_series *series)
{
    for (uint32_t i = 0; i < series->files; i++) {
        const char *suffix = ct_side_file_of_other(series->path[i]);
        if (suffix)
            ct_fail(
                0,
                "'%s%s' is ignored, because it does not belong to the trace's owner, or is a link; remove it",
                series->path[i], suffix);
    }
}

int ct_trace_add_functions(sqlite3 *connection, struct ct_computed_cache *cache)
{
    static int (*const adds[])(sqlite3 *,
                               struct ct_computed_cache *) = { ct_call_sums_add,     ct_own_time_add,
                                                               ct_gpu_queue_add,     ct_gpu_sums_add,
                                                               ct_launch_around_add, ct_launch_sums_add };
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < sizeof(adds) / sizeof(adds[0]); i++)
        rc = adds[i](connection, cache);
    return rc;
}

sqlite3 *ct_trace_open(const char *path, struct ct_series *found)
{
    struct ct_series ours, *series = found ? found : &ours;
    if (!ct_series_find(path, series)) {
        const char *why = access(path, F_OK) != 0 && errno != ENOENT ? strerror(errno) : NULL;
        ct_fail(0,
                "no trace at '%s'%s%s: specify one with --db, or with --session the daemon that writes it, "
                "or make one with `cudatrace run -- COMMAND`",
                path, why ? ", " : "", why ? why : "");
        return NULL;
    }
    sqlite3 *connection = NULL;
    const bool is_open = ct_series_open(series, &connection) == SQLITE_OK &&
                         ct_trace_add_functions(connection, NULL) == SQLITE_OK;
    if (!is_open)
        ct_fail(0, "cannot read '%s': %s", path, ct_trace_file_problem(series->path[0], connection));
    if (!is_open || !is_ours(path, connection)) {
        sqlite3_close(connection);
        return NULL;
    }
    note_successor(path, series);
    note_ignored(series);
    return connection;
}
