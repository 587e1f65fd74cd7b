/* Implements `cudatrace probe`, which checks its options and executes cudatrace-probe, the only program that
 * needs privileges. */
#include "probe_options.h"

#include "installed.h"
#include "subcommand.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static int probe(int argc, char **argv)
{
    static struct ct_probe_options options;
    char path[PATH_MAX];
    const int status = ct_probe_options_parse(argc, argv, &options);
    if (status != CT_GO_ON)
        return status;
    if (!ct_installed_probe(path))
        return ct_fail(EXIT_FAILURE, "probe: " CT_PROBE_NOT_FOUND);
    argv[0] = path;
    execv(path, argv);
    return ct_fail(EXIT_FAILURE, "probe: cannot start %s: %s", path, strerror(errno));
}

const struct ct_subcommand ct_subcommand_probe = { "probe",
                                                   "record driver calls of running processes by eBPF",
                                                   probe };
