/* Enumerations (such as CT_CATEGORY_launch) and names, generated from this folder's .def files. */
#ifndef CT_PROTO_NAMES_H
#define CT_PROTO_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ct_category {
#define CATEGORY(name) CT_CATEGORY_##name,
#include "category.def"
#undef CATEGORY
    CT_CATEGORY_COUNT
};

/* True if calls in the category may be important because they affect the device. */
static inline bool ct_category_says_more(uint32_t category)
{
    const uint32_t says_more = 1U << CT_CATEGORY_module | 1U << CT_CATEGORY_memory | 1U << CT_CATEGORY_copy |
                               1U << CT_CATEGORY_set | 1U << CT_CATEGORY_launch | 1U << CT_CATEGORY_sync |
                               1U << CT_CATEGORY_graph | 1U << CT_CATEGORY_range;
    return says_more >> category & 1;
}

/* True if a function only queries and changes nothing. In the driver and the runtime, query functions have
 * names like cuKernelGetName, cuStreamIsCapturing and cudaEventQuery. */
static inline bool ct_name_asks(const char *name)
{
    return strstr(name, "Get") || strstr(name, "Query") || strstr(name, "Is");
}

enum ct_role {
#define ROLE(name) CT_ROLE_##name,
#include "role.def"
#undef ROLE
    CT_ROLE_COUNT
};

enum ct_loss_cause {
#define LOSS(constant, name, explanation) CT_LOSS_##constant,
#include "loss_cause.def"
#undef LOSS
    CT_LOSS_COUNT,
    CT_LANE_LOSS_COUNT = CT_LOSS_PROBE /* lanes count only the causes before CT_LOSS_PROBE */
};

/* Why a thread without a lane loses calls. */
enum ct_unlaned {
    CT_UNLANED_MEMORY, /* there was no room for a lane; in a probe's segment, see CT_LOSS_PROBE */
    CT_UNLANED_CLOCK,  /* hook: the thread may not read a clock */
    CT_UNLANED_COUNT
};

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
