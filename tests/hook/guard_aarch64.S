/* Defines guard_call(), which guard.h declares. guard_call() does not change the stack pointer, so that the
 * called function finds its stack arguments. guard_call() may use x16 and x17, because the ABI allows these
 * registers to be overwritten between a call instruction and the called function. */

#define FUNCTION 0
#define LINK     8
#define INDIRECT 16
#define SAVED    24
#define WANTED   184
#define SEEN     344

        .macro EACH_PAIR operation, place
        \operation x19, x20, [x16, #\place]
        \operation x21, x22, [x16, #\place+16]
        \operation x23, x24, [x16, #\place+32]
        \operation x25, x26, [x16, #\place+48]
        \operation x27, x28, [x16, #\place+64]
        \operation d8, d9, [x16, #\place+96]
        \operation d10, d11, [x16, #\place+112]
        \operation d12, d13, [x16, #\place+128]
        \operation d14, d15, [x16, #\place+144]
        .endm

        .macro GUARD
        adrp    x16, guard
        add     x16, x16, #:lo12:guard
        .endm

        .text
        .globl  guard_call
        .type   guard_call, %function
guard_call:
        GUARD
        str     x30, [x16, #LINK]
        EACH_PAIR stp, SAVED
        str     x29, [x16, #SAVED+80]
        mov     x17, sp
        str     x17, [x16, #WANTED+88]
        EACH_PAIR ldp, WANTED
        ldr     x29, [x16, #WANTED+80]
        ldr     x8, [x16, #INDIRECT]
        ldr     x17, [x16, #FUNCTION]
        blr     x17
        GUARD
        EACH_PAIR stp, SEEN
        str     x29, [x16, #SEEN+80]
        mov     x17, sp
        str     x17, [x16, #SEEN+88]
        ldr     x17, [x16, #WANTED+88]
        mov     sp, x17
        EACH_PAIR ldp, SAVED
        ldr     x29, [x16, #SAVED+80]
        ldr     x30, [x16, #LINK]
        ret
        .size   guard_call, .-guard_call

        .section .note.GNU-stack, "", %progbits
