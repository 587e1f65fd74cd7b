/* cuSimcudaRegisters() saves the argument registers (see simcuda_verify.h), and then overwrites them, as any
 * function may. */
        .text
        .globl  cuSimcudaRegisters
        .type   cuSimcudaRegisters, @function
cuSimcudaRegisters:
        leaq    registers(%rip), %rax
        movq    %rdi, (%rax)
        movq    %rsi, 8(%rax)
        movq    %rdx, 16(%rax)
        movq    %rcx, 24(%rax)
        movq    %r8, 32(%rax)
        movq    %r9, 40(%rax)
        leaq    8(%rsp), %rcx
        movq    %rcx, 72(%rax)
        movups  %xmm0, 80(%rax)
        movups  %xmm1, 96(%rax)
        movups  %xmm2, 112(%rax)
        movups  %xmm3, 128(%rax)
        movups  %xmm4, 144(%rax)
        movups  %xmm5, 160(%rax)
        movups  %xmm6, 176(%rax)
        movups  %xmm7, 192(%rax)
        xorl    %edx, %edx
1:      movq    (%rcx,%rdx,8), %rsi
        movq    %rsi, 208(%rax,%rdx,8)
        incl    %edx
        cmpl    $16, %edx
        jb      1b
        pxor    %xmm0, %xmm0
        movabsq $0x1122334455667788, %rax
        ret
        .size   cuSimcudaRegisters, .-cuSimcudaRegisters

        .globl  simcuda_registers
        .type   simcuda_registers, @function
simcuda_registers:
        leaq    registers(%rip), %rax
        ret
        .size   simcuda_registers, .-simcuda_registers

        .local  registers
        .comm   registers, 336, 16

        .section .note.GNU-stack, "", @progbits
