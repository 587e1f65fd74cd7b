/* Readings of CLOCK_MONOTONIC for the hot path (hot_clock.h). The functions return nanoseconds in rax, and
 * preserve all other general registers. The caller's stack need not be aligned. ct_hot_clock_with_vectors() also
 * preserves the vector registers that hold arguments. */
        .section .text.hot, "ax", %progbits

        .macro CLOCK_READ name, vectors
        .globl  \name
        .hidden \name
        .p2align 6
        .type   \name, @function
\name:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        .irp    register, rcx, rdx, rsi, rdi, r8, r9, r10, r11
        pushq   %\register
        .endr
        andq    $-16, %rsp
        .if \vectors
        subq    $128, %rsp
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  %xmm\n, \n*16(%rsp)
        .endr
        .endif
        call    ct_now_ns
        .if \vectors
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  \n*16(%rsp), %xmm\n
        .endr
        .endif
        leaq    -64(%rbp), %rsp
        .irp    register, r11, r10, r9, r8, rdi, rsi, rdx, rcx
        popq    %\register
        .endr
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   \name, .-\name
        .endm
        CLOCK_READ ct_hot_clock_with_vectors, 1
        CLOCK_READ ct_hot_clock, 0

        .section .note.GNU-stack, "", %progbits
