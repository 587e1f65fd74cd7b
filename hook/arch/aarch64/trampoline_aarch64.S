/* The stubs, the trampoline that they jump to, and dlsym, for aarch64 (AAPCS64).
 *
 * A stub loads its row number into w17 and jumps to the trampoline. The trampoline builds a struct ct_frame
 * (frame.h) on the stack and calls ct_enter() to find the function to call. It forwards the register
 * arguments, including x8, and as many stack words as the function takes, and passes the function's result to
 * ct_leave(). The stack is always 16-byte aligned. ct_enter() is compiled for general registers only, so v0-7
 * reach the function unchanged. The slow path saves the low 128 bits of each vector register, as the base ABI
 * requires. No driver function takes a scalable vector. The return address stays in x30 and in the frame
 * record, and CFI lets exceptions and cancellation unwind the trampoline.
 *
 * The ABI reserves x16 and x17 for code between a call and its target. A jump through x16 may land on `bti
 * c`, just as a call may. Each entry point that can be reached through a pointer begins with `bti c`, written
 * as a hint, which older assemblers accept and older processors execute as a nop. */

#define FRAME_BYTES    112
#define FRAME_STACK    64
#define FRAME_ROW      88
#define FRAME_RESULT   96
#define FRAME_INDIRECT 104

#define BTI_C hint #34

        .text

        /* Begins a function with the given name, which other files can see if it is declared .globl. */
        .macro FUNCTION name, align
        .p2align \align
        .type   \name, %function
\name:
        .cfi_startproc
        .endm

        .macro END name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .macro LOAD_ARGUMENTS base, offset
        ldp     x6, x7, [\base, #\offset+48]
        ldp     x4, x5, [\base, #\offset+32]
        ldp     x2, x3, [\base, #\offset+16]
        ldp     x0, x1, [\base, #\offset]
        ldr     x8, [\base, #\offset+FRAME_INDIRECT]
        .endm

        .macro SAVE_VECTORS
        sub     sp, sp, #128
        stp     q0, q1, [sp]
        stp     q2, q3, [sp, #32]
        stp     q4, q5, [sp, #64]
        stp     q6, q7, [sp, #96]
        .endm

        .macro RESTORE_VECTORS
        ldp     q0, q1, [sp]
        ldp     q2, q3, [sp, #32]
        ldp     q4, q5, [sp, #64]
        ldp     q6, q7, [sp, #96]
        add     sp, sp, #128
        .endm

        /* Restores the caller's stack pointer, frame pointer and return address. */
        .macro LEAVE
        mov     sp, x29
        .cfi_def_cfa_register sp
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .endm

        .macro ENTER
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        mov     x29, sp
        .cfi_def_cfa_register x29
        sub     sp, sp, #FRAME_BYTES
        stp     x0, x1, [sp]
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        add     x9, x29, #16
        str     x9, [sp, #FRAME_STACK]
        str     w17, [sp, #FRAME_ROW]
        str     x8, [sp, #FRAME_INDIRECT]
        mov     x0, sp
        .endm

        FUNCTION ct_trampoline, 6
        ENTER
        bl      ct_enter
        cbnz    x1, .Lspecial
.Lcall:
        mov     x16, x0
        LOAD_ARGUMENTS x29, -FRAME_BYTES
        blr     x16
        str     x0, [x29, #FRAME_RESULT-FRAME_BYTES]
        sub     x0, x29, #FRAME_BYTES
        mov     sp, x0
        bl      ct_leave
        ldr     x0, [x29, #FRAME_RESULT-FRAME_BYTES]
        .cfi_remember_state
        LEAVE
        ret
        .cfi_restore_state

.Lspecial:
        cmn     x1, #2
        b.ne    1f
        SAVE_VECTORS
        sub     x0, x29, #FRAME_BYTES
        bl      ct_enter_slow
        RESTORE_VECTORS
.Lchosen:
        cbz     x1, .Lcall
1:      cmn     x1, #1
        b.eq    .Lstraight

        /* Copies x1 stack words (rounded up to an even number), starting at the highest address. */
        add     x9, x1, #1
        and     x9, x9, #-2
        sub     sp, sp, x9, lsl #3
        mov     x9, sp
        add     x10, x29, #16
2:      sub     x1, x1, #1
        ldr     x11, [x10, x1, lsl #3]
        str     x11, [x9, x1, lsl #3]
        cbnz    x1, 2b
        b       .Lcall

.Lstraight:
        mov     x16, x0
        LOAD_ARGUMENTS x29, -FRAME_BYTES
        LEAVE
        br      x16
        END     ct_trampoline

/* Fallback stubs jump here. It is unknown how many stack words the function takes. */
        FUNCTION ct_trampoline_fallback, 6
        ENTER
        SAVE_VECTORS
        sub     x0, x29, #FRAME_BYTES
        bl      ct_enter_fallback
        RESTORE_VECTORS
        b       .Lchosen
        END     ct_trampoline_fallback

/* The stubs, three instructions each, and a table of their locations in row order (ct_row_stub()). */
        .set    ct_stub_row, 0
        .macro STUB label, trampoline=ct_trampoline
\label:
        .cfi_startproc
        BTI_C
        movz    w17, #ct_stub_row
        b       \trampoline
        .cfi_endproc
        .pushsection ct_stubs, "a"
        .word   \label - .
        .popsection
        .set    ct_stub_row, ct_stub_row + 1
        .endm

        .macro DRIVER_STUB name
        .type   ct_stub_\name, %function
        .p2align 4
        STUB    ct_stub_\name
        .size   ct_stub_\name, .-ct_stub_\name
        .endm

        .pushsection ct_stubs, "a"
        .p2align 2
        .popsection

#define ROW(name, category, stack_words, decoder) DRIVER_STUB name
#include "driver_api.def"
#undef ROW

/* The rows for the runtime. On this architecture, the hook exports no runtime functions, and no lookup
 * returns a stub for one. */
#define ROW(name, category, stack_words, decoder) \
        .pushsection ct_stubs, "a"; .word 0, 0, 0; .popsection; .set ct_stub_row, ct_stub_row + 3
#include "runtime_api.def"
#undef ROW

        .macro SECOND_STUB name
        .p2align 4
        STUB    .Lsecond_\name
        .endm
#define ROW(name, category, stack_words, decoder) SECOND_STUB name
#include "driver_api.def"
#undef ROW

        .altmacro
        .macro FALLBACK_STUB number
        .p2align 4
        STUB    .Lfallback_\number, ct_trampoline_fallback
        .endm
        .set    ct_fallback, 0
        .rept   128
        FALLBACK_STUB %ct_fallback
        .set    ct_fallback, ct_fallback + 1
        .endr
        .noaltmacro

/* LOOK_UP defines dlsym and similar functions. Such a function passes names that begin with "cu" to
 * `handler`, or all names if `ct_dlsym_looks` is set. If a name is not passed on, or `handler` declines it,
 * the function jumps to `next`, which identifies its caller by the return address in x30. `third` is an
 * instruction that sets the handler's third argument. It is omitted if the handler gets the function's own
 * third argument. The lookup functions may run before any constructor, even while malloc initialises
 * itself. */

        /* Pushes a frame record with three arguments above it. */
        .macro KEEP_ARGUMENTS
        stp     x29, x30, [sp, #-48]!
        .cfi_def_cfa_offset 48
        .cfi_offset x29, -48
        .cfi_offset x30, -40
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        str     x2, [sp, #32]
        .endm

        .macro DROP_ARGUMENTS
        ldp     x29, x30, [sp], #48
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .endm

        .macro LOOK_UP name, handler, next, find, third:vararg
        FUNCTION \name, 4
        BTI_C
        cbz     x1, 3f
        ldrb    w9, [x1]
        cmp     w9, #'c'
        b.ne    1f
        ldrb    w9, [x1, #1]
        cmp     w9, #'u'
        b.eq    5f
1:      adrp    x9, ct_dlsym_looks
        ldr     w9, [x9, #:lo12:ct_dlsym_looks]
        cbz     w9, 3f
5:      KEEP_ARGUMENTS
        \third
        bl      \handler
        cbnz    x1, 2f
        .cfi_remember_state
        DROP_ARGUMENTS
        ret
        .cfi_restore_state
2:      ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        DROP_ARGUMENTS
3:      adrp    x16, \next
        ldr     x16, [x16, #:lo12:\next]
        cbz     x16, 4f
        br      x16
4:      KEEP_ARGUMENTS
        bl      \find
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldr     x2, [sp, #32]
        DROP_ARGUMENTS
        br      x16
        END     \name
        .endm

/* void *dlsym(void *handle, const char *name), void *dlvsym(void *handle, const char *name, const char *version). */
        .globl  dlsym, dlvsym
        LOOK_UP dlsym, ct_dlsym, ct_next_dlsym, ct_dlsym_find, mov x2, x30
        LOOK_UP dlvsym, ct_dlvsym, ct_next_dlvsym, ct_dlvsym_find
        LOOK_UP ct_enter_library_dlsym, ct_dlsym_of_library, ct_library_dlsym, ct_library_dlsym_find, mov x2, x30
        .pushsection ct_stubs, "a" /* CT_LIBRARY_DLSYM */
        .word   ct_enter_library_dlsym - .
        .popsection

/* long syscall(long number, ...). Passes calls that may install a filter (SYS_seccomp, SYS_prctl and
 * SYS_landlock_restrict_self) to ct_syscall() (sandbox.c). For any other call, jumps to the next definition
 * of syscall() with the arguments unchanged. */
        .globl  syscall
        FUNCTION syscall, 4
        BTI_C
        cmp     x0, #277
        b.eq    2f
        cmp     x0, #167
        b.eq    2f
        cmp     x0, #446
        b.eq    2f
        adrp    x16, ct_next_syscall
        ldr     x16, [x16, #:lo12:ct_next_syscall]
        cbz     x16, 1f
        br      x16
1:      stp     x29, x30, [sp, #-80]!
        .cfi_def_cfa_offset 80
        .cfi_offset x29, -80
        .cfi_offset x30, -72
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        str     x6, [sp, #64]
        bl      ct_find_syscall
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldr     x6, [sp, #64]
        ldp     x29, x30, [sp], #80
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        br      x16
2:      b       ct_syscall
        END     syscall

/* pid_t vfork(void). Records that the child shares this thread's memory until it exits or executes a program.
 * Jumps to the next vfork() instead of calling it, since vfork() returns twice. */
        .globl  vfork
        FUNCTION vfork, 4
        BTI_C
        adrp    x16, :gottprel:ct_vforked
        ldr     x16, [x16, #:gottprel_lo12:ct_vforked]
        mrs     x17, tpidr_el0
        mov     w9, #1
        str     w9, [x17, x16]
        adrp    x16, ct_next_vfork
        ldr     x16, [x16, #:lo12:ct_next_vfork]
        cbz     x16, 1f
        br      x16
1:      stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset x29, -16
        .cfi_offset x30, -8
        bl      ct_find_vfork
        mov     x16, x0
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        br      x16
        END     vfork

/* If the compiler generates landing pads for other files, marks this object file as having them too. The
 * linker keeps the mark only if every object file has it. */
#ifdef __ARM_FEATURE_BTI_DEFAULT
        .section .note.gnu.property, "a", %note
        .p2align 3
        .word   4, 16, 5        /* size of the name, size of the descriptor, NT_GNU_PROPERTY_TYPE_0 */
        .asciz  "GNU"
        .word   0xc0000000, 4   /* GNU_PROPERTY_AARCH64_FEATURE_1_AND, its bytes */
        .word   1, 0            /* GNU_PROPERTY_AARCH64_FEATURE_1_BTI, padding */
#endif

        .section .note.GNU-stack, "", %progbits
