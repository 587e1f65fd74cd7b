#include "run_choice.h"

#include "schema_version.h"
#include "trace_file.h"

/* The first schema with runs. */
enum { SCHEMA_OF_RUNS = 18 };

int ct_run_choose(const char *command, const struct ct_run_choice *choice, struct ct_series *series,
                  sqlite3 *connection)
{
    if (!choice->is_last && !choice->number)
        return CT_GO_ON;
    if (choice->is_last && choice->number)
        return ct_fail(EXIT_USAGE, "%s: --last cannot be combined with --run (see cudatrace %s --help)",
                       command, command);
    const int64_t schema = ct_ask_number(connection, "PRAGMA user_version", 0, 0);
    if (schema < SCHEMA_OF_RUNS)
        return ct_fail(EXIT_FAILURE,
                       "%s: the trace has no numbers of runs: it was written by an older cudatrace (schema "
                       "%lld, this one reads %d)",
                       command, (long long)schema, CT_SCHEMA_VERSION);
    const int64_t last = ct_ask_number(connection, "SELECT max(run_id) FROM runs", 0, 0);
    if (last == 0)
        return CT_GO_ON; /* the trace has no processes */
    const int rc = ct_series_choose_run(series, connection, choice->is_last ? last : choice->number);
    if (rc == SQLITE_NOTFOUND)
        return ct_fail(EXIT_FAILURE, "%s: the trace has no run %lld: `cudatrace report runs` lists them",
                       command, (long long)choice->number);
    if (rc != SQLITE_OK)
        return ct_fail(EXIT_FAILURE, "%s: %s", command, ct_sqlite_why(connection, rc));
    return CT_GO_ON;
}
