/* Explains to users, for each cause, why calls are missing from a trace. */
#ifndef CT_LOSSES_H
#define CT_LOSSES_H

#include "names.h"

static const struct {
    const char *name, *explanation;
} ct_losses[CT_LOSS_COUNT] = {
#define LOSS(constant, name, explanation) [CT_LOSS_##constant] = { #name, explanation },
#include "loss_cause.def"
#undef LOSS
};

#endif
