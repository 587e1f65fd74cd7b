/* Replaces `cudatrace attach` and `detach` on processors that do not support visits. `top` lists no processes
 * to attach to on such a processor. */
#include "say.h"
#include "subcommand.h"
#include "untraced.h"

static int refuse(int argc, char **argv)
{
    (void)argc;
    return ct_fail(EXIT_FAILURE,
                   "%s: only processes on x86-64 can be attached to: start them with `cudatrace run`",
                   argv[0]);
}

bool ct_untraced_look(struct ct_untraced *untraced)
{
    untraced->count = 0;
    return true;
}

void ct_untraced_free(struct ct_untraced *untraced)
{
    (void)untraced;
}

const struct ct_subcommand ct_subcommand_attach = { "attach", "trace running processes", refuse };
const struct ct_subcommand ct_subcommand_detach = { "detach", "stop tracing processes that were attached to",
                                                    refuse };
