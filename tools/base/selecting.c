#include "selecting.h"

#include <string.h>

bool ct_take_layers(const struct ct_option *option, const char *value)
{
    struct ct_selecting *selecting = option->to;
    selecting->layers = value;
    return ct_selection_set_layers(&selecting->selection, value);
}

bool ct_take_hook_layers(const struct ct_option *option, const char *value)
{
    const struct ct_selecting *selecting = option->to;
    const uint32_t of_probes = 1U << CT_LAYER_KERNEL | 1U << CT_LAYER_HOOK;
    return ct_take_layers(option, value) &&
           (strcmp(value, "all") == 0 || !(selecting->selection.layers & of_probes));
}

bool ct_take_calls(const struct ct_option *option, const char *value)
{
    struct ct_selecting *selecting = option->to;
    selecting->calls = value;
    return ct_selection_set_calls(&selecting->selection, value);
}

bool ct_take_sample(const struct ct_option *option, const char *value)
{
    struct ct_selecting *selecting = option->to;
    selecting->sample = value;
    return ct_selection_set_sample(&selecting->selection, value);
}
