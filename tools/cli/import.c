/* Implements `cudatrace import`, which reads recordings and JSON lines into a new trace by running
 * `cudatraced --replay`. */
#include "installed.h"
#include "session_choice.h"
#include "subcommand.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int import(int argc, char **argv)
{
    struct ct_session_choice choice = { 0 };
    int first;
    const struct ct_option options[] = { CT_OPTION_DB(&choice, "the new trace (default: ./trace.db)"),
                                         { 0 } };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "FILE…",
        .about =
            "Stores recordings of the daemon (see cudatraced(1)) in a new trace, with the same rows,\n"
            "reports and exports as the original session. Also stores calls from JSON lines, which\n"
            "`cudatrace export` and other programs write, and calls and ranges from Chrome's Trace Event\n"
            "Format, which PyTorch's profiler writes. Files may be compressed by gzip. Calls of several\n"
            "files are merged by time. A damaged or truncated recording is stored up to the damage. Lines\n"
            "and events that cannot be stored are counted and printed by reason. In both cases, the exit\n"
            "status is 1. A file without anything to store is rejected.\n",
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
                       "import: cudatraced not found next to cudatrace; set CUDATRACE_DAEMON to its path");
    }
    const char *const common[COMMON] = { path, "--db", choice.database ? choice.database : "trace.db",
                                         "--replay", "--" };
    memcpy(command, common, sizeof(common));
    memcpy(command + COMMON, argv + first, (size_t)(argc - first) * sizeof(*command));
    execv(path, (char *const *)(uintptr_t)command);
    free(command);
    return ct_fail(EXIT_FAILURE, "import: cannot start %s: %s", path, strerror(errno));
}

const struct ct_subcommand ct_subcommand_import = {
    "import", "store recordings and traces of other programs in a new trace", import
};
