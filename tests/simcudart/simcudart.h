/* Declarations shared by the files of the simulated runtime. */
#ifndef SIMCUDART_H
#define SIMCUDART_H

#include "sim_entry.h"
#include "simcudart_past_call.h"

/* Structs that are passed by value, and are named after their sizes. */
struct bytes8 {
    uint64_t word;
};
struct bytes12 {
    uint32_t words[3];
};
struct bytes20 {
    uint32_t words[5];
};
struct bytes24 {
    uint64_t words[3];
};
struct bytes32 {
    uint64_t words[4];
};
struct bytes64 {
    uint64_t words[8];
};
struct bytes280 {
    uint64_t words[35];
};

/* Returns whether functions with a model must behave like those without one. */
bool simcudart_verifies(void);

void keep_call(const char *name, uint64_t checksum, bool misaligned);

static inline uint64_t checksum_bytes(uint64_t sum, const void *bytes, size_t count)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++)
        sum = simcuda_checksum_word(sum, at[i]);
    return sum;
}

#endif
