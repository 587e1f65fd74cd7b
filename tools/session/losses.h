/* Explains to users, for each cause, why calls or processes are missing from a trace. */
#ifndef CT_LOSSES_H
#define CT_LOSSES_H

#include "names.h"
#include "unrecorded_report.h"

struct ct_cause {
    const char *name, *explanation;
};
static const struct ct_cause ct_losses[CT_LOSS_COUNT] = {
#define LOSS(constant, name, explanation) [CT_LOSS_##constant] = { #name, explanation },
#include "loss_cause.def"
#undef LOSS
};
static const struct ct_cause ct_unrecorded_causes[CT_UNRECORDED_COUNT] = {
#define UNRECORDED(constant, name, explanation) [CT_UNRECORDED_##constant] = { #name, explanation },
#include "unrecorded.def"
#undef UNRECORDED
};

#endif
