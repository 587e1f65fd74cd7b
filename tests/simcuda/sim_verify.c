/* sim_verify.c: the checksum mode. The entry points pass their arguments to this file's functions one by one.
 * The checksum of each call is kept for the calling thread. Each call's result is derived from the checksum,
 * so that a test can also check whether results are passed back unchanged. */
#include "sim_entry.h"
#include "simcuda_verify.h"

#include <string.h>

struct past_call {
    uint32_t row;
    uint64_t sum;
    bool misaligned;
};

/* Several calls are kept in a ring, because a tracer may itself make a call to look up a kernel's name after
 * a launch. */
static _Thread_local struct past_call past[SIMCUDA_PAST_CALLS];
static _Thread_local uint64_t past_count;

void verify_start(struct verify *verify, uint32_t row)
{
    verify->row = row;
    verify->sum = simcuda_checksum_start(sim_functions[row].name);
}

void verify_word(struct verify *verify, uint64_t word)
{
    verify->sum = simcuda_checksum_word(verify->sum, word);
}

void verify_words(struct verify *verify, const void *words, uint32_t count)
{
    verify->sum = simcuda_checksum_words(verify->sum, words, count);
}

void verify_float(struct verify *verify, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    verify_word(verify, bits);
}

static int32_t answer;
static bool answers;

void verify_answer(int32_t status)
{
    answer = status;
    answers = true;
}

static int32_t keep(uint32_t row, uint64_t sum, bool misaligned)
{
    past[past_count++ % SIMCUDA_PAST_CALLS] =
        (struct past_call){ .row = row, .sum = sum, .misaligned = misaligned };
    return answers ? answer : simcuda_checksum_result(sum);
}

int32_t verify_finish(struct verify *verify)
{
    return keep(verify->row, verify->sum, false);
}

int32_t verify_misaligned(uint32_t row)
{
    return keep(row, 0, true);
}

EXPORTED int simcuda_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned)
{
    if (back >= SIMCUDA_PAST_CALLS || back >= past_count)
        return -1;
    const struct past_call *call = &past[(past_count - 1 - back) % SIMCUDA_PAST_CALLS];
    if (name)
        *name = sim_functions[call->row].name;
    if (checksum)
        *checksum = call->sum;
    if (misaligned)
        *misaligned = call->misaligned;
    return 0;
}
