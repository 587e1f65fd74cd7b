/* Decodes the properties of an x86-64 instruction that the planner needs in order to move the instruction.
 * Only this module calls the Zydis decoder. */
#ifndef CT_INSTRUCTION_H
#define CT_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CT_INSTRUCTION_BYTES = 15 }; /* the maximum length of an instruction */

enum ct_instruction_kind {
    CT_INSTRUCTION_PLAIN,    /* execution continues with the next instruction */
    CT_INSTRUCTION_JUMP,     /* it jumps to `target` */
    CT_INSTRUCTION_BRANCH,   /* it jumps to `target` or continues, depending on `condition` */
    CT_INSTRUCTION_CALL,     /* it pushes a return address, so it must not be moved */
    CT_INSTRUCTION_BOUND,    /* its distance has no 32-bit form, as with loop and jrcxz */
    CT_INSTRUCTION_END,      /* a return, a trap, or a jump through a fixed memory address */
    CT_INSTRUCTION_COMPUTED, /* a jump through a register, or through memory addressed by a register */
    CT_INSTRUCTION_BREAK,    /* int3 */
};

struct ct_instruction {
    uint8_t length;
    uint8_t kind;      /* enum ct_instruction_kind */
    uint8_t condition; /* the low half of a branch's opcode */
    uint8_t distance;  /* offset of the rip-relative displacement (int32_t) of a memory operand; 0: none */
    bool has_target;
    bool is_filler;  /* nop or int3, with which compilers fill gaps */
    bool is_landing; /* endbr64 */
    uint64_t target; /* target of a jump, branch, call or bound instruction */
};

/* Decodes the instruction at address `at` from a copy of its code. Returns false if the code is not a valid
 * instruction or is longer than `bytes`. */
bool ct_instruction_read(const uint8_t *code, size_t bytes, uint64_t at, struct ct_instruction *instruction);

#endif
