/* What is recorded: `cudatrace set` for a session that runs, and the same options of `cudatrace run`. */
#include "cudatrace.h"

#include "selection.h"

#include <getopt.h>

bool ct_selection_take(struct ct_selection_options *options, const char *command, int option,
                       const char *value)
{
    struct ct_selection scratch;
    switch (option) {
    case CT_OPTION_LAYERS:
        options->layers = value;
        if (ct_selection_set_layers(&scratch, value))
            return true;
        ct_fail(EXIT_USAGE,
                "%s: --layers '%s': the layers are driver, runtime, ioctl and nvtx, separated by commas",
                command, value);
        return false;
    case CT_OPTION_CALLS:
        options->calls = value;
        if (ct_selection_set_calls(&scratch, value))
            return true;
        ct_fail(
            EXIT_USAGE,
            "%s: --calls '%s': patterns are names with * and ?, separated by commas, ! before those to leave "
            "out, %d letters at most",
            command, value, CT_SELECTION_CALLS_BYTES - 1);
        return false;
    default:
        options->sample = value;
        if (ct_selection_set_sample(&scratch, value))
            return true;
        ct_fail(EXIT_USAGE, "%s: --sample '%s': a number from 1 (all) to %d", command, value, CT_SAMPLE_MAX);
        return false;
    }
}

static bool on_option(int option, const char *value, void *data)
{
    return ct_selection_take(data, "set", option, value);
}

int ct_set(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace set [--session NAME] [--shm-dir DIR] [--db FILE] [--layers LIST]\n"
        "                     [--calls LIST] [--sample N]\n"
        "\n"
        "Chooses what the processes of a running session record, from now on and in those that\n"
        "come: running ones follow within a second, at their next call. What is not named stays\n"
        "as it was set last, everything at first. Calls that are left out are counted with their\n"
        "time and bytes, as skipped in the view totals.\n"
        "\n" CT_SELECTION_HELP "  --session NAME  that session, and no other (default: $CUDATRACE_SESSION, "
                               "or as --db says)\n" CT_SHM_DIR_HELP
        "  --db FILE       the session whose daemon writes this database (default: session default;\n"
        "                  else the one that writes ./trace.db; else the only one that there is)\n"
        "\n"
        "  cudatrace set --calls '!cuCtxGet*,!cuDevicePrimaryCtxGetState'\n"
        "  cudatrace set --layers all --calls '*' --sample 1\n";
    static const struct option known[] = { CT_SELECTION_OPTIONS, { 0 } };
    struct ct_options options;
    struct ct_selection_options wishes = { 0 };
    bool done;
    int status;
    const int first = ct_options_parse(argc, argv, known, help, &options, on_option, &wishes, &done, &status);
    if (done)
        return status;
    if (first < argc)
        return ct_fail(EXIT_USAGE, "set: unexpected argument '%s' (see cudatrace set --help)", argv[first]);
    if (!wishes.layers && !wishes.calls && !wishes.sample)
        return ct_fail(EXIT_USAGE,
                       "set: nothing to set: name --layers, --calls or --sample (see cudatrace set --help)");
    char line[CT_SELECTION_CALLS_BYTES + 256];
    snprintf(line, sizeof(line), "set%s%s%s%s%s%s", wishes.layers ? " layers=" : "",
             wishes.layers ? wishes.layers : "", wishes.calls ? " calls=" : "",
             wishes.calls ? wishes.calls : "", wishes.sample ? " sample=" : "",
             wishes.sample ? wishes.sample : "");
    return ct_client_command(&options, "set", line);
}
