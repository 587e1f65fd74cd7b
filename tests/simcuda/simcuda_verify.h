/* simcuda_verify.h: the additional exports of this folder's libcuda.so.1, for tests that check that a call's
 * arguments and result pass unchanged.
 *
 * Under SIMCUDA_VERIFY=checksum no function does its work. Each computes a checksum over its arguments, as
 * wide as they are declared in tests/signatures.def, and keeps it for its thread. It returns a result derived
 * from it, which is never CUDA_SUCCESS, so that no caller reads an out parameter. The test computes the same
 * checksum with the functions below. Under SIMCUDA_VERIFY=STATUS they return STATUS, and out parameters keep
 * the test's values. */
#ifndef SIMCUDA_VERIFY_H
#define SIMCUDA_VERIFY_H

#include <stddef.h>
#include <stdint.h>

enum { SIMCUDA_PAST_CALLS = 16 };

/* A call of the calling thread: back is 0 for its latest, and below SIMCUDA_PAST_CALLS. misaligned is 1 if
 * the stack was not 16-byte aligned at the call. Its arguments are then not read and the checksum is 0.
 * Returns 0, or -1 if the thread made no such call. Any pointer may be NULL. */
int simcuda_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned);

/* A function that no table knows, as in a newer driver. It saves everything that can carry an argument, of
 * any number and type, for simcuda_registers(), and returns a result of 64 bits. Usable by one thread at a
 * time. */
uint64_t cuSimcudaRegisters(void);
#define SIMCUDA_REGISTERS_RESULT UINT64_C(0x1122334455667788)

struct simcuda_registers {
    uint64_t integers[8]; /* x86-64: rdi, rsi, rdx, rcx, r8, r9; aarch64: x0 to x7 */
    uint64_t indirect;    /* aarch64: x8 */
    uint64_t stack;       /* the stack pointer at the call */
    uint64_t vectors[8][2];
    uint64_t stack_words[16];
};
const struct simcuda_registers *simcuda_registers(void);

/* Returns the driver's own function of that name, as used by libraries that know the tables of
 * cuGetExportTable: no tracer sees its calls. NULL if there is none. */
typedef void *simcuda_inner_of(const char *name);
simcuda_inner_of simcuda_inner_function;

static inline uint64_t simcuda_checksum_start(const char *function_name)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (const char *at = function_name; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
    return sum;
}

/* One argument: a pointer or 64-bit integer unchanged, a narrower integer zero-extended, a float as its 32
 * bits. */
static inline uint64_t simcuda_checksum_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}

/* An argument passed by value as a struct: 8-byte words in memory order. */
static inline uint64_t simcuda_checksum_words(uint64_t sum, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum = simcuda_checksum_word(sum, words[i]);
    return sum;
}

/* The function returns this: 1 to 998. */
static inline int32_t simcuda_checksum_result(uint64_t sum)
{
    return (int32_t)(1 + sum % 998);
}

#endif
