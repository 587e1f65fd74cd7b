/* Reads the code of functions exported by libcuda 535 and 580 for x86-64. There are two shapes of code. An
 * exported function (export) first compares a word with a constant, which the word equals once the driver has
 * been shut down. It then either jumps through its slot, or copies the function's stack arguments, calls
 * through the slot and returns. The hook reads exports in its own process, whereas the tools read them from
 * outside. The hook and the tools both check the result against the image. */
#ifndef CT_PROTO_SLOT_SHAPE_H
#define CT_PROTO_SLOT_SHAPE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes of an export's code are read. Any bytes after the end of the code are zero. */
enum { CT_SLOT_CODE_BYTES = 96 };

/* The addresses in an export with a known shape. */
struct ct_slot_shape {
    uint64_t ended; /* address of the word that is compared, a uint32_t */
    uint64_t slot;  /* address of the slot, a function pointer */
};

struct ct_slot_prologue {
    uint8_t prologue[12];
    uint8_t prologue_bytes;
    uint8_t through[2]; /* opcode of the jump or call through the slot; followed by the distance */
    uint8_t reach;      /* how far past the branch to search for the jump or call, in bytes */
};

enum { CT_SLOT_COMPARE_BYTES = 10, CT_SLOT_BRANCH_MOST = 6, CT_SLOT_THROUGH_BYTES = 6 };

static inline int32_t ct_slot_distance(const uint8_t *from)
{
    int32_t distance;
    memcpy(&distance, from, sizeof(distance));
    return distance;
}

/* Reads the instructions cmpl $ENDED, word(%rip) and je. Returns their total length, or 0 if the code is
 * different. */
static inline size_t ct_slot_branch(const uint8_t *code, uint64_t at, uint64_t *ended)
{
    enum { ENDED = 0x321cba00, JE_SHORT = 0x74, JE_SHORT_BYTES = 2 };
    if (code[0] != 0x81 || code[1] != 0x3d || ct_slot_distance(code + 6) != ENDED)
        return 0;
    *ended = at + CT_SLOT_COMPARE_BYTES + (uint64_t)(int64_t)ct_slot_distance(code + 2);
    const uint8_t *branch = code + CT_SLOT_COMPARE_BYTES;
    if (branch[0] == JE_SHORT)
        return CT_SLOT_COMPARE_BYTES + JE_SHORT_BYTES;
    return branch[0] == 0x0f && branch[1] == 0x84 ? CT_SLOT_COMPARE_BYTES + CT_SLOT_BRANCH_MOST : 0;
}

/* Reads the export at address `at` from a copy of its code. Returns false if the export's shape is
 * unknown. */
static inline bool ct_slot_shape_read(const uint8_t code[CT_SLOT_CODE_BYTES], uint64_t at,
                                      struct ct_slot_shape *shape)
{
    static const struct ct_slot_prologue known[] = {
        /* jmp *slot(%rip) */
        { { 0 }, 0, { 0xff, 0x25 }, 40 },
        /* push %rbp; mov %rsp, %rbp; push %r12; sub $8, %rsp … call *slot(%rip) */
        { { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x48, 0x83, 0xec, 0x08 }, 10, { 0xff, 0x15 }, 60 },
    };
    static_assert(12 + CT_SLOT_COMPARE_BYTES + CT_SLOT_BRANCH_MOST + 60 + CT_SLOT_THROUGH_BYTES <=
                      CT_SLOT_CODE_BYTES,
                  "an export's bytes");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const size_t prologue = known[i].prologue_bytes;
        if (memcmp(code, known[i].prologue, prologue) != 0)
            continue;
        const size_t branch = ct_slot_branch(code + prologue, at + prologue, &shape->ended);
        const size_t begin = prologue + branch;
        size_t through = begin;
        while (branch && through < begin + known[i].reach &&
               memcmp(code + through, known[i].through, sizeof(known[i].through)) != 0)
            through++;
        if (!branch || through == begin + known[i].reach)
            continue;
        shape->slot = at + through + CT_SLOT_THROUGH_BYTES +
                      (uint64_t)(int64_t)ct_slot_distance(code + through + sizeof(known[i].through));
        return true;
    }
    return false;
}

#endif
