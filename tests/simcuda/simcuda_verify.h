/* simcuda_verify.h: the additional exports of this folder's libcuda.so.1, for tests that check that a call's
 * arguments and result pass unchanged.
 *
 * Under SIMCUDA_VERIFY=checksum no function does its work. Each function computes a checksum over its
 * arguments, as wide as they are declared in tests/signatures.def, and keeps it for the calling thread. It
 * returns a result derived from the checksum, which is never CUDA_SUCCESS, so that no caller reads an out
 * parameter. The test computes the same checksum with the functions below. Under SIMCUDA_VERIFY=STATUS all
 * functions return STATUS, and out parameters keep the test's values. */
#ifndef SIMCUDA_VERIFY_H
#define SIMCUDA_VERIFY_H

#include <stddef.h>
#include <stdint.h>

enum { SIMCUDA_PAST_CALLS = 16 };

/* Gets a past call of the calling thread. back is 0 for the latest call, and less than SIMCUDA_PAST_CALLS.
 * misaligned is 1 if the stack was not 16-byte aligned at the call. The arguments are then not read, and the
 * checksum is 0. Returns 0, or -1 if the thread made no such call. Any pointer may be NULL. */
int simcuda_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned);

/* A function that is in no table, as in a newer driver. It saves all registers and words that can carry an
 * argument, of any number and type, for simcuda_registers(), and returns a result of 64 bits. Only one thread
 * may use it at a time. */
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

/* Returns the driver's own function of that name, as libraries get it from the tables of cuGetExportTable. No
 * tracer sees its calls. Returns NULL if there is none. */
typedef void *simcuda_inner_of(const char *name);
simcuda_inner_of simcuda_inner_function;

static inline uint64_t simcuda_checksum_start(const char *function_name)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (const char *at = function_name; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
    return sum;
}

/* Adds one argument: a pointer or 64-bit integer unchanged, a narrower integer zero-extended, a float as its
 * 32 bits. */
static inline uint64_t simcuda_checksum_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}

/* Adds a struct that is passed by value, as its 8-byte words in memory order. */
static inline uint64_t simcuda_checksum_words(uint64_t sum, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum = simcuda_checksum_word(sum, words[i]);
    return sum;
}

/* Returns the result that the function must return, from 1 to 998. */
static inline int32_t simcuda_checksum_result(uint64_t sum)
{
    return (int32_t)(1 + sum % 998);
}

#endif
