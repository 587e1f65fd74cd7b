/* The layers of proto/layer.def: CT_LAYER_DRIVER and so on, and their names. */
#ifndef CT_PROTO_LAYER_H
#define CT_PROTO_LAYER_H

enum ct_layer {
#define LAYER(constant, name) CT_LAYER_##constant,
#include "layer.def"
#undef LAYER
    CT_LAYER_COUNT
};

static const char *const ct_layer_names[CT_LAYER_COUNT] = {
#define LAYER(constant, name) [CT_LAYER_##constant] = #name,
#include "layer.def"
#undef LAYER
};

#endif
