/* The causes of proto/loss_cause.def: CT_LOSS_FULL and so on. */
#ifndef CT_PROTO_LOSS_CAUSE_H
#define CT_PROTO_LOSS_CAUSE_H

enum ct_loss_cause {
#define LOSS(constant, name) CT_LOSS_##constant,
#include "loss_cause.def"
#undef LOSS
    CT_LOSS_COUNT
};

#endif
