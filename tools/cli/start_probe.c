/* Implements `cudatrace probe`, which checks its options and executes cudatrace-probe, the only program that
 * needs privileges. Commands are run by `cudatrace run --probe`. */
#include "probe_options.h"

#include "installed.h"
#include "subcommand.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct ct_subcommand ct_subcommand_run;

/* Adds --probe to the arguments, which are also options of `run`. */
static int run_command(int argc, char **argv)
{
    char **of_run = calloc((size_t)argc + 2, sizeof(*of_run));
    if (!of_run)
        return ct_fail(EXIT_FAILURE, "probe: out of memory");
    of_run[0] = argv[0];
    of_run[1] = (char *)(uintptr_t) "--probe";
    memcpy(of_run + 2, argv + 1, ((size_t)argc - 1) * sizeof(*of_run));
    const int status = ct_subcommand_run.run(argc + 1, of_run);
    free(of_run);
    return status;
}

static int probe(int argc, char **argv)
{
    static struct ct_probe_options options;
    char path[PATH_MAX];
    const int status = ct_probe_options_parse(argc, argv, &options);
    if (status != CT_GO_ON)
        return status;
    if (options.command && !options.discover)
        return run_command(argc, argv);
    if (!ct_installed_probe(path))
        return ct_fail(EXIT_FAILURE, "probe: " CT_PROBE_NOT_FOUND);
    argv[0] = path;
    execv(path, argv);
    return ct_fail(EXIT_FAILURE, "probe: cannot start %s: %s", path, strerror(errno));
}

const struct ct_subcommand ct_subcommand_probe = { "probe",
                                                   "record driver calls of running processes by eBPF",
                                                   probe };
