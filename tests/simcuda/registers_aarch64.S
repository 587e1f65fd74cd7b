/* cuSimcudaRegisters() saves the argument registers (see simcuda_verify.h), and then overwrites them, as any
 * function may. */
        .text
        .globl  cuSimcudaRegisters
        .type   cuSimcudaRegisters, %function
cuSimcudaRegisters:
        adrp    x16, registers
        add     x16, x16, #:lo12:registers
        stp     x0, x1, [x16]
        stp     x2, x3, [x16, #16]
        stp     x4, x5, [x16, #32]
        stp     x6, x7, [x16, #48]
        mov     x9, sp
        stp     x8, x9, [x16, #64]
        stp     q0, q1, [x16, #80]
        stp     q2, q3, [x16, #112]
        stp     q4, q5, [x16, #144]
        stp     q6, q7, [x16, #176]
        mov     x1, #0
1:      ldr     x2, [x9, x1, lsl #3]
        add     x3, x16, x1, lsl #3
        str     x2, [x3, #208]
        add     x1, x1, #1
        cmp     x1, #16
        b.lo    1b
        mov     x8, #0
        movi    v0.2d, #0
        movz    x0, #0x7788
        movk    x0, #0x5566, lsl #16
        movk    x0, #0x3344, lsl #32
        movk    x0, #0x1122, lsl #48
        ret
        .size   cuSimcudaRegisters, .-cuSimcudaRegisters

        .globl  simcuda_registers
        .type   simcuda_registers, %function
simcuda_registers:
        adrp    x0, registers
        add     x0, x0, #:lo12:registers
        ret
        .size   simcuda_registers, .-simcuda_registers

        .local  registers
        .comm   registers, 336, 16

        .section .note.GNU-stack, "", %progbits
