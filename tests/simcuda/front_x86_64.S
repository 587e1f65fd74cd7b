/* The exported functions of a driver that calls its own functions through a table of entry points, as real
 * drivers do (`docs/decisions/0037-the-drivers-own-table.md`). Each exported function first tests a word that
 * is nonzero once the driver has shut down. The function then either jumps through its slot (SIMCUDA_FRONT
 * 535) or makes a call through the slot (580). Before making a call through the slot, the function copies the
 * arguments that are on the stack. */
#ifdef SIMCUDA_UNKNOWN /* a table that the hook does not recognize, with another magic number and endbr64 */
#define GONE        0x321cba01
#else
#define GONE        0x321cba00
#endif
#define WAS_ENDED   4 /* CUDA_ERROR_DEINITIALIZED */

        .data
        .type   front_gone, @object
front_gone:
        .long   0
        .size   front_gone, 4

        .text
        .macro FRONT_OF name, words
        .pushsection .data.slots, "aw", @progbits
        .p2align 3
.Lslot_\name:
        .quad   front_\name
        .popsection

        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
#ifdef SIMCUDA_UNKNOWN
        endbr64
#endif
#if SIMCUDA_FRONT == 535
        cmpl    $GONE, front_gone(%rip)
        je      1f
        jmp     *.Lslot_\name(%rip)
1:      movl    $WAS_ENDED, %eax
        ret
#else
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %r12
        .cfi_offset %r12, -24
        subq    $8, %rsp
        cmpl    $GONE, front_gone(%rip)
        je      1f
        .if     (\words) & 1
        subq    $8, %rsp
        .endif
        .set    front_word, \words
        .rept   \words
        .set    front_word, front_word - 1
        pushq   16+8*front_word(%rbp)
        .endr
        call    *.Lslot_\name(%rip)
2:      leaq    -8(%rbp), %rsp
        popq    %r12
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_def_cfa %rbp, 16
1:      movl    $WAS_ENDED, %eax
        jmp     2b
#endif
        .cfi_endproc
        .size   \name, .-\name
        .endm

#define FRONT(name, words) FRONT_OF name, words
#include "front.h"

#ifdef SIMCUDA_UNKNOWN /* a function whose first instructions cannot be relocated */
        .text
        .globl  cuSimcudaCalls
        .type   cuSimcudaCalls, @function
        .p2align 4
cuSimcudaCalls:
        endbr64
        call    1f
1:      popq    %rax
        ret
        .size   cuSimcudaCalls, .-cuSimcudaCalls
#endif

        .section .note.GNU-stack, "", @progbits
