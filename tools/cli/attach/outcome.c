#include "outcome.h"

#include "client.h"
#include "say.h"
#include "series.h"
#include "trace_file.h"

bool ct_attach_flush(const char *command, int daemon)
{
    char answer[CT_ANSWER_BYTES];
    const enum ct_answer flushed = ct_client_ask(daemon, "flush", answer, 0);
    if (flushed == CT_ANSWER_NONE)
        ct_fail(
            0,
            "%s: the daemon %s; calls that it has not stored stay in shared memory for the session's next "
            "daemon",
            command, ct_client_why(daemon));
    else if (flushed != CT_ANSWER_OK)
        ct_fail(0,
                "%s: the trace is incomplete; the missing calls stay in shared memory for the session's next "
                "daemon: %s",
                command, answer);
    else if (*answer)
        ct_fail(0, "%s: %s", command, answer);
    return flushed == CT_ANSWER_OK;
}

void ct_attach_tell(const char *command, const struct ct_target *target, const char *database)
{
    static const char sql[] =
        "SELECT coalesce(sum(stored), 0) FROM totals JOIN processes USING (process_id) WHERE pid = ?1";
    static struct ct_series series;
    sqlite3 *connection = NULL;
    int64_t stored = -1;
    if (*database && ct_series_find(database, &series) && ct_series_open(&series, &connection) == SQLITE_OK)
        stored = ct_ask_number(connection, sql, target->inner_pid, -1);
    sqlite3_close(connection);
    if (stored >= 0)
        ct_fail(0, "%s: process %d (%s): %lld of its calls are in %s", command, (int)target->pid,
                target->name, (long long)stored, database);
}
