/* Reads the facts about an x86-64 instruction that the planner needs to move it. Only this module calls
 * Zydis, the decoder. */
#ifndef CT_INSTRUCTION_H
#define CT_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_INSTRUCTION_BYTES = 15 }; /* the length of the longest instruction */

enum ct_instruction_kind {
    CT_INSTRUCTION_PLAIN,    /* the next instruction follows */
    CT_INSTRUCTION_JUMP,     /* it jumps to `target` */
    CT_INSTRUCTION_BRANCH,   /* it jumps to `target`, or to the next instruction, depending on `condition` */
    CT_INSTRUCTION_CALL,     /* it pushes its own address, so it must not move */
    CT_INSTRUCTION_BOUND,    /* its distance has no 32-bit form, as in loop and jrcxz */
    CT_INSTRUCTION_END,      /* a return, a trap, or a jump through memory at a fixed distance */
    CT_INSTRUCTION_COMPUTED, /* a jump through a register, or through memory that a register chooses */
    CT_INSTRUCTION_BREAK,    /* int3 */
};

struct ct_instruction {
    uint8_t length;
    uint8_t kind;      /* enum ct_instruction_kind */
    uint8_t condition; /* for a branch: the low half of its opcode */
    uint8_t distance;  /* offset of its rip-relative distance (int32_t) to memory; 0: none */
    bool has_target;
    bool is_filler;  /* nop or int3: compilers fill gaps with them */
    bool is_landing; /* endbr64 */
    uint64_t target; /* target of a jump, a branch, a call, or a bound instruction */
};

/* Reads the instruction at address `at` from a copy of the code there. Returns false if it is not an
 * instruction, or longer than `bytes`. */
bool ct_instruction_read(const uint8_t *code, size_t bytes, uint64_t at, struct ct_instruction *instruction);

#endif
