/* simcuda_verify.h: additional functions exported by this folder's libcuda.so.1, for tests that check whether
 * a call's arguments and result are passed on unchanged.
 *
 * With SIMCUDA_VERIFY=checksum, the functions do not do their normal work. Instead, each function computes a
 * checksum of its arguments, whose widths are those declared in tests/signatures.def, and keeps the checksum
 * for the calling thread. The function returns a result that is derived from the checksum and never equal to
 * CUDA_SUCCESS, so that no caller reads an out parameter. The test computes the same checksum with the
 * functions in this file. With SIMCUDA_VERIFY=STATUS, all functions return STATUS, and out parameters keep
 * the values that the test gave them. */
#ifndef SIMCUDA_VERIFY_H
#define SIMCUDA_VERIFY_H

#include <stddef.h>
#include <stdint.h>

enum { SIMCUDA_PAST_CALLS = 16 };

/* Looks up a past call of the calling thread. `back` is 0 for the latest call, and must be less than
 * SIMCUDA_PAST_CALLS. `misaligned` is set to 1 if the stack was not 16-byte aligned at the call. If the stack
 * was misaligned, the arguments were not read, and the checksum is 0. Returns 0, or -1 if the thread has made
 * no such call. Any pointer may be NULL. */
int simcuda_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned);

/* A function that is in none of the hook's tables, like the new functions of a newer driver. The function
 * saves all registers and stack words that can contain an argument, however many arguments there are and
 * whatever their types, for simcuda_registers(). The function returns a 64-bit result. Only one thread at a
 * time may call this function. */
uint64_t cuSimcudaRegisters(void);
#define SIMCUDA_REGISTERS_RESULT UINT64_C(0x1122334455667788)

struct simcuda_registers {
    uint64_t integers[8]; /* x86-64: rdi, rsi, rdx, rcx, r8, r9; aarch64: x0 to x7 */
    uint64_t indirect;    /* aarch64: x8 */
    uint64_t stack;       /* the stack pointer at the time of the call */
    uint64_t vectors[8][2];
    uint64_t stack_words[16];
};
const struct simcuda_registers *simcuda_registers(void);

/* Returns the driver's own function with the given name, as libraries find it in the tables of
 * cuGetExportTable. Tracers do not see calls to that function. Returns NULL if there is no such function. */
typedef void *simcuda_inner_of(const char *name);
simcuda_inner_of simcuda_inner_function;

static inline uint64_t simcuda_checksum_start(const char *function_name)
{
    uint64_t sum = 0xcbf29ce484222325u;
    for (const char *at = function_name; *at; at++)
        sum = (sum ^ (unsigned char)*at) * 0x100000001b3u;
    return sum;
}

/* Adds one argument to the checksum: a pointer or 64-bit integer unchanged, a narrower integer zero-extended,
 * or a float as its 32 bits. */
static inline uint64_t simcuda_checksum_word(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    return sum ^ (sum >> 29);
}

/* Adds a by-value struct to the checksum, as 8-byte words in memory order. */
static inline uint64_t simcuda_checksum_words(uint64_t sum, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum = simcuda_checksum_word(sum, words[i]);
    return sum;
}

/* Returns the result, from 1 to 998, that the function must return. */
static inline int32_t simcuda_checksum_result(uint64_t sum)
{
    return (int32_t)(1 + sum % 998);
}

#endif
