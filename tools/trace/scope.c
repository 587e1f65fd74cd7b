#include "scope.h"

#include "trace_file.h"

struct ct_scope ct_scope_all(void)
{
    return (struct ct_scope){ .only.selection = ct_selection_everything(), .to_ns = INT64_MAX };
}

bool ct_scope_is_all(const struct ct_scope *scope)
{
    return !scope->pid && !scope->from && !scope->to && !scope->only.layers && !scope->only.calls;
}

int ct_scope_settle(struct ct_scope *scope, const char *command, const struct ct_extent *extent)
{
    scope->from_ns = 0;
    scope->to_ns = INT64_MAX;
    if ((scope->from && !ct_moment_take(command, "from", scope->from, extent, &scope->from_ns)) ||
        (scope->to && !ct_moment_take(command, "to", scope->to, extent, &scope->to_ns)))
        return EXIT_USAGE;
    if (scope->from_ns >= scope->to_ns)
        return ct_fail(EXIT_USAGE, "%s: the window ends before it begins: --from %s, --to %s", command,
                       scope->from ? scope->from : "0", scope->to ? scope->to : "the end");
    return CT_GO_ON;
}

bool ct_scope_has_process(const struct ct_scope *scope, const char *command, sqlite3 *connection)
{
    if (!scope->pid || ct_ask_number(connection, "SELECT 1 FROM processes WHERE pid = ?1", scope->pid, 0))
        return true;
    ct_fail(0, "%s: the trace has no process %lld: `cudatrace report processes` lists them", command,
            (long long)scope->pid);
    return false;
}

int ct_scope_say_empty(int status, const char *command, const struct ct_extent *extent)
{
    return ct_fail(status, "%s: no calls in this window: the trace lasts %.3f seconds", command,
                   (double)(extent->end_ns - extent->begin_ns) / 1e9);
}
