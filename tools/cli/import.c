/* cudatrace import: reads recordings and JSON lines into a new trace, by the daemon's --replay. */
#include "installed.h"
#include "subcommand.h"
#include "where.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int import(int argc, char **argv)
{
    struct ct_where where = { 0 };
    int first;
    const struct ct_option options[] = { CT_OPTION_DB(&where, "the new trace (default: ./trace.db)"), { 0 } };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "FILE…",
        .about =
            "Stores what the daemon has recorded (cudatraced(1)) in a new trace, as if it happened: rows,\n"
            "reports and exports are those of the session. Of traces in JSON lines, which 'cudatrace\n"
            "export' and others write, it stores the calls; of Chrome's Trace Event Format, as PyTorch's\n"
            "profiler writes it, calls and ranges. Files may be packed by gzip. Calls of several files are\n"
            "merged by time. A file that is damaged or cut short is stored up to there, and the exit\n"
            "status is 1. A file of which nothing can be stored is refused.\n",
    };
    const int status = ct_options_parse(argc, argv, &usage, &first);
    if (status != CT_GO_ON)
        return status;
    if (first == argc)
        return ct_fail(EXIT_USAGE, "import: no file given: specify recordings, JSON lines or Chrome traces "
                                   "(see cudatrace import --help)");
    enum { COMMON = 5 };
    char path[PATH_MAX];
    const char **command = calloc((size_t)(argc - first) + COMMON + 1, sizeof(*command));
    if (!command)
        return ct_fail(EXIT_FAILURE, "import: out of memory");
    if (!ct_installed_daemon(path)) {
        free(command);
        return ct_fail(EXIT_FAILURE,
                       "import: cudatraced is not beside cudatrace: set CUDATRACE_DAEMON to its path");
    }
    const char *const common[COMMON] = { path, "--db", where.database ? where.database : "trace.db",
                                         "--replay", "--" };
    memcpy(command, common, sizeof(common));
    memcpy(command + COMMON, argv + first, (size_t)(argc - first) * sizeof(*command));
    execv(path, (char *const *)(uintptr_t)command);
    free(command);
    return ct_fail(EXIT_FAILURE, "import: cannot start %s: %s", path, strerror(errno));
}

const struct ct_subcommand ct_subcommand_import = { "import",
                                                    "store recordings and traces of others in a trace",
                                                    import };
