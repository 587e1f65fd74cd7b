#include "list.h"

#include "list_lines.h"
#include "options.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

static int check_pattern(const struct ct_probe_options *options, const char *pattern)
{
    const char *rest;
    if (!ct_list_is_of_kind(pattern, CT_HOOK_UPROBE, &rest) || rest == pattern)
        return CT_GO_ON;
    if (!strchr(rest, ':'))
        return ct_fail(EXIT_USAGE, "probe: --list '%s': expected uprobe:LIBRARY:FUNCTION", pattern);
    if (*rest != '/' && options->pids == 0)
        return ct_fail(
            EXIT_USAGE,
            "probe: --list '%s': expected a path that begins with '/'; with --pid PID, the name of "
            "a library that the process has loaded",
            pattern);
    return CT_GO_ON;
}

int ct_list(const struct ct_probe_options *options)
{
    static void (*const list_kind[])(struct ct_list *) = { ct_list_functions, ct_list_tracepoints,
                                                           ct_list_libraries };
    static struct ct_list list;
    int status = EXIT_SUCCESS;
    list.options = options;
    for (size_t i = 0; i < options->patterns; i++) {
        if (check_pattern(options, options->pattern[i]) != CT_GO_ON)
            return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof(list_kind) / sizeof(list_kind[0]); i++)
        list_kind[i](&list);
    for (size_t i = 0; i < options->patterns; i++) {
        if (!list.is_matched[i])
            status = ct_fail(EXIT_FAILURE, "probe: --list '%s': nothing on this machine matches",
                             options->pattern[i]);
    }
    tdestroy(list.names, free);
    return ct_written(status);
}
