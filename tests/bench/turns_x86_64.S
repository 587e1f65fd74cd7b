/* Forwards calls from the trampolines of libcudatrace-turns.so to the wrapper for the current way. No
 * register is free here. */
#include "turns.h"

#define ROW_REAL 0

        .section .text.hot, "ax", @progbits
        .macro TURN name
        TURN_OF \name, \name
        TURN_OF clock_\name, \name
        .endm
        .macro TURN_OF name, reads
        .p2align 6
        .globl  ct_wrap_\name
        .hidden ct_wrap_\name
        .type   ct_wrap_\name, @function
ct_wrap_\name:
        .cfi_startproc
        cmpl    $TURN_READS, ct_bench_turn(%rip)
        ja      traced_wrap_\name
        je      reads_wrap_\reads
        jmp     *ROW_REAL(%r11)
        .cfi_endproc
        .size   ct_wrap_\name, .-ct_wrap_\name
        .endm

        TURN plain
        TURN plain_2
        TURN launch
        TURN launch_ex

        .section .note.GNU-stack, "", @progbits
