#include "selecting.h"

bool ct_take_layers(const struct ct_option *option, const char *value)
{
    struct ct_selecting *selecting = option->to;
    selecting->layers = value;
    return ct_selection_set_layers(&selecting->selection, value);
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
