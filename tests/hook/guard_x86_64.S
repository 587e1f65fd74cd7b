/* Defines guard_call(), which guard.h declares. guard_call() replaces the caller's return address on the
 * stack with its own. The stack pointer therefore does not change, and the called function finds its stack
 * arguments. */

#define FUNCTION 0
#define LINK     8
#define SAVED    24
#define WANTED   80
#define SEEN     136

        .text
        .globl  guard_call
        .type   guard_call, @function
guard_call:
        popq    guard+LINK(%rip)
        movq    %rbx, guard+SAVED(%rip)
        movq    %rbp, guard+SAVED+8(%rip)
        movq    %r12, guard+SAVED+16(%rip)
        movq    %r13, guard+SAVED+24(%rip)
        movq    %r14, guard+SAVED+32(%rip)
        movq    %r15, guard+SAVED+40(%rip)
        movq    %rsp, guard+WANTED+48(%rip)
        movq    guard+WANTED(%rip), %rbx
        movq    guard+WANTED+8(%rip), %rbp
        movq    guard+WANTED+16(%rip), %r12
        movq    guard+WANTED+24(%rip), %r13
        movq    guard+WANTED+32(%rip), %r14
        movq    guard+WANTED+40(%rip), %r15
        call    *guard+FUNCTION(%rip)
        movq    %rbx, guard+SEEN(%rip)
        movq    %rbp, guard+SEEN+8(%rip)
        movq    %r12, guard+SEEN+16(%rip)
        movq    %r13, guard+SEEN+24(%rip)
        movq    %r14, guard+SEEN+32(%rip)
        movq    %r15, guard+SEEN+40(%rip)
        movq    %rsp, guard+SEEN+48(%rip)
        movq    guard+WANTED+48(%rip), %rsp
        movq    guard+SAVED(%rip), %rbx
        movq    guard+SAVED+8(%rip), %rbp
        movq    guard+SAVED+16(%rip), %r12
        movq    guard+SAVED+24(%rip), %r13
        movq    guard+SAVED+32(%rip), %r14
        movq    guard+SAVED+40(%rip), %r15
        jmp     *guard+LINK(%rip)
        .size   guard_call, .-guard_call

        .section .note.GNU-stack, "", @progbits
