/* `cudatrace attach` and `detach` on processors without visits. */
#include "say.h"
#include "subcommand.h"

static int refuse(int argc, char **argv)
{
    (void)argc;
    return ct_fail(EXIT_FAILURE,
                   "%s: only processes on x86-64 can be attached to: start them with `cudatrace run`",
                   argv[0]);
}

const struct ct_subcommand ct_subcommand_attach = { "attach", "trace processes that run already", refuse };
const struct ct_subcommand ct_subcommand_detach = { "detach", "end what attach began", refuse };
