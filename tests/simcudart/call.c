/* Stores the data that the entry points record about each call, separately for each calling thread. */
#include "simcudart.h"

#include <stdlib.h>

struct past_call {
    const char *name;
    uint64_t checksum;
    bool misaligned;
};

static _Thread_local struct past_call past[SIMCUDA_PAST_CALLS];
static _Thread_local uint64_t past_count;

void keep_call(const char *name, uint64_t checksum, bool misaligned)
{
    past[past_count++ % SIMCUDA_PAST_CALLS] =
        (struct past_call){ .name = name, .checksum = checksum, .misaligned = misaligned };
}

bool simcudart_verifies(void)
{
    const char *value = getenv("SIMCUDA_VERIFY");
    return value && *value;
}

EXPORTED int simcudart_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned)
{
    if (back >= SIMCUDA_PAST_CALLS || back >= past_count)
        return -1;
    const struct past_call *call = &past[(past_count - 1 - back) % SIMCUDA_PAST_CALLS];
    *name = call->name;
    *checksum = call->checksum;
    *misaligned = call->misaligned;
    return 0;
}
