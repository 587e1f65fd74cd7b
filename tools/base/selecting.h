/* Parses the options --layers, --calls and --sample, which select the calls to record, or the recorded calls
 * to show. Also parses --gpu-graphs, which selects how graphs are represented in recordings of GPU work. */
#ifndef CT_SELECTING_H
#define CT_SELECTING_H

#include "options.h"

#include "selection.h"

struct ct_selecting {
    struct ct_selection selection;
    const char *layers, *calls, *sample; /* as given; NULL: not given */
};

bool ct_take_layers(const struct ct_option *option, const char *value);
/* Accepts only layers that the hook can record. */
bool ct_take_hook_layers(const struct ct_option *option, const char *value);
bool ct_take_calls(const struct ct_option *option, const char *value);
bool ct_take_sample(const struct ct_option *option, const char *value);

#define CT_OPTION_LAYERS(selecting_, help_)                                                                  \
    {                                                                                                        \
        "layers", "LIST", help_, selecting_, ct_take_layers,                                                 \
            "expected driver, runtime, ioctl, nvtx, kernel, hook, separated by commas, or all"               \
    }
#define CT_OPTION_CALLS(selecting_, help_)                                                                   \
    {                                                                                                        \
        "calls", "LIST", help_, selecting_, ct_take_calls,                                                   \
            "expected names with * and ?, separated by commas, ! before those to exclude, at most 1023 "     \
            "characters"                                                                                     \
    }
static_assert(CT_SELECTION_CALLS_BYTES == 1024 && CT_SAMPLE_MAX == 1000000000, "stated in the messages");

/* The options of commands that let the user select the calls to record. */
#define CT_OPTIONS_OF_RECORDING(selecting_)                                                                  \
    { "layers",                                                                                              \
      "LIST",                                                                                                \
      "record these layers: driver, runtime, ioctl, nvtx, or all",                                           \
      selecting_,                                                                                            \
      ct_take_hook_layers,                                                                                   \
      "expected driver, runtime, ioctl, nvtx, separated by commas, or all" },                                \
        CT_OPTION_CALLS(selecting_,                                                                          \
                        "record driver and runtime functions by pattern, with '!' before\n"                  \
                        "those to exclude; the last match decides: 'cuMem*,!cuMemGetInfo*'; '*' is all"),    \
    {                                                                                                        \
        .name = "sample", .value = "N", .help = "record 1 in N outermost calls, with the calls inside it",   \
        .to = selecting_, .take = ct_take_sample, .wrong = "expected a number from 1 (all) to 1000000000"    \
    }

/* Sets an int, which must be CT_GPU_GRAPHS_NONE beforehand, meaning that the option has not been given. */
enum { CT_GPU_GRAPHS_NONE = -1, CT_GPU_GRAPHS_NODES, CT_GPU_GRAPHS_WHOLE };
#define CT_OPTION_GPU_GRAPHS(to_)                                                                            \
    {                                                                                                        \
        .name = "gpu-graphs", .value = "FORM",                                                               \
        .help = "with --gpu: record each node of a graph (default), or the graph as a whole,\n"              \
                "which makes launches of graphs faster",                                                     \
        .to = to_, .take = ct_take_choice, .choices = "nodes|whole"                                          \
    }

#endif
