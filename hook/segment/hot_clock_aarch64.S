/* A reading of CLOCK_MONOTONIC for ct_enter() (hot_clock.h). Returns nanoseconds in x0, and preserves all
 * other general registers except x30, and the vector registers that hold arguments. */
        .section .text.hot, "ax", %progbits

        .globl  ct_hot_clock
        .hidden ct_hot_clock
        .p2align 6
        .type   ct_hot_clock, %function
ct_hot_clock:
        .cfi_startproc
        stp     x29, x30, [sp, #-160]!
        .cfi_def_cfa_offset 160
        .cfi_offset x29, -160
        .cfi_offset x30, -152
        mov     x29, sp
        .cfi_def_cfa_register x29
        str     x1, [sp, #16]
        stp     x2, x3, [sp, #24]
        stp     x4, x5, [sp, #40]
        stp     x6, x7, [sp, #56]
        stp     x8, x9, [sp, #72]
        stp     x10, x11, [sp, #88]
        stp     x12, x13, [sp, #104]
        stp     x14, x15, [sp, #120]
        stp     x16, x17, [sp, #136]
        str     x18, [sp, #152]
        sub     sp, sp, #128
        stp     q0, q1, [sp]
        stp     q2, q3, [sp, #32]
        stp     q4, q5, [sp, #64]
        stp     q6, q7, [sp, #96]
        bl      ct_now_ns
        ldp     q0, q1, [sp]
        ldp     q2, q3, [sp, #32]
        ldp     q4, q5, [sp, #64]
        ldp     q6, q7, [sp, #96]
        add     sp, sp, #128
        ldr     x1, [sp, #16]
        ldp     x2, x3, [sp, #24]
        ldp     x4, x5, [sp, #40]
        ldp     x6, x7, [sp, #56]
        ldp     x8, x9, [sp, #72]
        ldp     x10, x11, [sp, #88]
        ldp     x12, x13, [sp, #104]
        ldp     x14, x15, [sp, #120]
        ldp     x16, x17, [sp, #136]
        ldr     x18, [sp, #152]
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #160
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        ret
        .cfi_endproc
        .size   ct_hot_clock, .-ct_hot_clock

        .section .note.GNU-stack, "", %progbits
