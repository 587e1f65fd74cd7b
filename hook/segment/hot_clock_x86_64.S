/* A reading of CLOCK_MONOTONIC for ct_enter() (hot_clock.h). Returns nanoseconds in rax, and preserves all other
 * general registers and the vector registers that hold arguments. The caller's stack need not be aligned. */
        .section .text.hot, "ax", %progbits

        .globl  ct_hot_clock
        .hidden ct_hot_clock
        .p2align 6
        .type   ct_hot_clock, @function
ct_hot_clock:
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
        subq    $128, %rsp
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  %xmm\n, \n*16(%rsp)
        .endr
        call    ct_now_ns
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  \n*16(%rsp), %xmm\n
        .endr
        leaq    -64(%rbp), %rsp
        .irp    register, r11, r10, r9, r8, rdi, rsi, rdx, rcx
        popq    %\register
        .endr
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   ct_hot_clock, .-ct_hot_clock

        .section .note.GNU-stack, "", %progbits
