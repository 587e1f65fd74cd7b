/* The stubs, the trampolines that they jump to, and dlsym, for x86-64 (System V ABI).
 *
 * A stub loads the address of its row into r11 and jumps to a trampoline. If the function has a wrapper
 * (wrap.c), the stub jumps to the wrapper's trampoline. For all other functions, the general trampoline
 * builds a struct ct_frame (frame.h) on the stack and calls ct_enter() to find the function to call. It
 * forwards the register arguments and as many stack words as the function takes, and passes the result to
 * ct_leave(). The stack is 16-byte aligned at every call, even if the caller has not aligned it. ct_enter()
 * is compiled for general registers only, so xmm0-7 reach the function unchanged. The slow path saves and
 * restores xmm0-7. The return address stays where the caller pushed it, and CFI lets exceptions and
 * cancellation unwind the trampoline. */

#define FRAME_BYTES  96
#define FRAME_STACK  48
#define FRAME_ROW    72
#define FRAME_RESULT 80

/* struct ct_row, struct ct_producer */
#define ROWS_SHIFT     5
#define ROW_ENTER_ID   18
#define PRODUCER_LANE  0
#define PRODUCER_IS_COUNTER 42
#define PRODUCER_DEPTH 44
#define DEPTH_MAX      15

        .text

        /* Begins a function with the given name, which other files can see if it is declared .globl. */
        .macro FUNCTION name, align
        .p2align \align
        .type   \name, @function
\name:
        .cfi_startproc
        .endm

        .macro END name
        .cfi_endproc
        .size   \name, .-\name
        .endm

        .macro LOAD_ARGUMENTS base, offset
        movq    \offset+0(\base), %rdi
        movq    \offset+8(\base), %rsi
        movq    \offset+16(\base), %rdx
        movq    \offset+24(\base), %rcx
        movq    \offset+32(\base), %r8
        movq    \offset+40(\base), %r9
        .endm

        .macro SAVE_VECTORS
        subq    $128, %rsp
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  %xmm\n, \n*16(%rsp)
        .endr
        .endm

        .macro RESTORE_VECTORS
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  \n*16(%rsp), %xmm\n
        .endr
        addq    $128, %rsp
        .endm

        .macro ENTER
        leaq    ct_rows(%rip), %rax
        subq    %rax, %r11
        shrq    $ROWS_SHIFT, %r11
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        subq    $FRAME_BYTES, %rsp
        andq    $-16, %rsp
        movq    %rdi, 0-FRAME_BYTES(%rbp)
        movq    %rsi, 8-FRAME_BYTES(%rbp)
        movq    %rdx, 16-FRAME_BYTES(%rbp)
        movq    %rcx, 24-FRAME_BYTES(%rbp)
        movq    %r8, 32-FRAME_BYTES(%rbp)
        movq    %r9, 40-FRAME_BYTES(%rbp)
        leaq    16(%rbp), %rax
        movq    %rax, FRAME_STACK-FRAME_BYTES(%rbp)
        movl    %r11d, FRAME_ROW-FRAME_BYTES(%rbp)
        leaq    -FRAME_BYTES(%rbp), %rdi
        .endm

        .section .text.hot, "ax", @progbits /* compilers put the functions called here into the same
                                             * section */
        FUNCTION ct_trampoline, 6
        ENTER
        call    ct_enter
        testq   %rdx, %rdx
        jnz     .Lspecial
.Lcall:
        LOAD_ARGUMENTS %rbp, -FRAME_BYTES
        call    *%rax
        movq    %rax, FRAME_RESULT-FRAME_BYTES(%rbp)
        leaq    -FRAME_BYTES(%rbp), %rdi
        movq    %rdi, %rsp
        andq    $-16, %rsp
        call    ct_leave
        movq    FRAME_RESULT-FRAME_BYTES(%rbp), %rax
        .cfi_remember_state
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_restore_state

.Lspecial:
        cmpq    $-2, %rdx
        jne     1f
        SAVE_VECTORS
        leaq    -FRAME_BYTES(%rbp), %rdi
        call    ct_enter_slow
        RESTORE_VECTORS
.Lchosen:
        testq   %rdx, %rdx
        jz      .Lcall
1:      cmpq    $-1, %rdx
        je      .Lstraight

        /* Copies rdx stack words (rounded up to an even number), starting at the highest address. */
        leaq    1(%rdx), %rcx
        andq    $-2, %rcx
        shlq    $3, %rcx
        subq    %rcx, %rsp
2:      movq    8(%rbp,%rdx,8), %rcx
        movq    %rcx, -8(%rsp,%rdx,8)
        decq    %rdx
        jnz     2b
        jmp     .Lcall

.Lstraight:
        movq    %rax, %r11
        LOAD_ARGUMENTS %rbp, -FRAME_BYTES
        leave
        .cfi_def_cfa %rsp, 8
        jmp     *%r11
        END     ct_trampoline

/* The trampolines for the wrappers, which are written in C. A wrapper runs only if the thread has a lane, the
 * function has been assigned a number, there is room for another open call, and the caller has aligned the
 * stack. The trampoline passes the thread's producer in r10 and the call's address (ct_frame_address()) in
 * rax. */
        .macro WRAPPER name
        FUNCTION ct_trampoline_\name, 6
        movq    ct_self@gottpoff(%rip), %r10
        movq    %fs:(%r10), %r10
        cmpq    $0, PRODUCER_LANE(%r10)
        je      ct_trampoline
        cmpw    $0, ROW_ENTER_ID(%r11)
        je      ct_trampoline
        cmpl    $DEPTH_MAX, PRODUCER_DEPTH(%r10)
        ja      ct_trampoline
        leal    8(%rsp), %eax
        testb   $15, %al
        jnz     ct_trampoline
        movq    %rsp, %rax
        cmpb    $0, PRODUCER_IS_COUNTER(%r10)
        je      ct_wrap_clock_\name
        jmp     ct_wrap_\name
        END     ct_trampoline_\name
        .endm
        WRAPPER plain
        WRAPPER plain_2
        WRAPPER launch
        WRAPPER launch_ex
        .set    ct_trampoline_general, ct_trampoline

/* Stubs of versioned runtime functions jump to RUNTIME_TRAMPOLINE. A call from a page listed in
 * ct_runtime_callers proceeds like a driver call. For a call from any other page, ct_enter_careful()
 * determines the library. */
#define RUNTIME_CALLERS 1024

        FUNCTION ct_trampoline_careful, 6
        ENTER
        SAVE_VECTORS
        movq    8(%rbp), %rsi
        call    ct_enter_careful
        RESTORE_VECTORS
        jmp     .Lchosen
        END     ct_trampoline_careful

/* Fallback stubs jump here. It is unknown how many stack words the function takes. */
        FUNCTION ct_trampoline_fallback, 6
        ENTER
        SAVE_VECTORS
        call    ct_enter_fallback
        RESTORE_VECTORS
        jmp     .Lchosen
        END     ct_trampoline_fallback

        .macro RUNTIME_TRAMPOLINE version, wrapper
        FUNCTION ct_runtime_\version\()_\wrapper, 6
        movq    (%rsp), %rax
        shrq    $12, %rax
        andl    $(RUNTIME_CALLERS - 1), %eax
        leaq    ct_runtime_callers + \version * RUNTIME_CALLERS * 8(%rip), %r10
        leaq    (%r10,%rax,8), %r10
        movq    (%rsp), %rax
        shrq    $12, %rax
        cmpq    %rax, (%r10)
        je      ct_trampoline_\wrapper
        jmp     ct_trampoline_careful
        END     ct_runtime_\version\()_\wrapper
        .endm
        .irp    version, 0, 1, 2
        RUNTIME_TRAMPOLINE \version, general
        RUNTIME_TRAMPOLINE \version, plain
        RUNTIME_TRAMPOLINE \version, plain_2
        .endr
        .text

/* Expands `macro` with the name of the function's wrapper and the remaining arguments. */
        .macro CHOOSE macro, words, decoder, rest:vararg
        .ifc    \decoder,launch
        \macro launch, \rest
        .exitm
        .endif
        .ifc    \decoder,launch_ex
        \macro launch_ex, \rest
        .exitm
        .endif
        .ifc    \decoder\()\words,none0
        \macro plain, \rest
        .exitm
        .endif
        .ifc    \decoder\()\words,none2
        \macro plain_2, \rest
        .exitm
        .endif
        \macro general, \rest
        .endm

/* The stubs, two instructions each, and a table of their locations in row order (ct_row_stub()). */
        .set    ct_stub_row, 0
        .macro STUB label, wrapper
\label:
        .cfi_startproc
        leaq    ct_rows + (ct_stub_row << ROWS_SHIFT)(%rip), %r11
        jmp     ct_trampoline_\wrapper
        .cfi_endproc
        .pushsection ct_stubs, "a"
        .long   \label - .
        .popsection
        .set    ct_stub_row, ct_stub_row + 1
        .endm

        .macro DRIVER_STUB wrapper, name
        .type   ct_stub_\name, @function
        .p2align 4
        STUB    ct_stub_\name, \wrapper
        .size   ct_stub_\name, .-ct_stub_\name
        .endm

        /* Defines two entry points: the exported one, and another for ct_row_stub() that does not check the
         * caller. */
        .macro RUNTIME_STUB wrapper, name, version, soname
        .globl  ct_runtime_\version\()_\name
        .type   ct_runtime_\version\()_\name, @function
        .symver ct_runtime_\version\()_\name, \name@\soname
        .p2align 4
ct_runtime_\version\()_\name:
        .cfi_startproc
        leaq    ct_rows + (ct_stub_row << ROWS_SHIFT)(%rip), %r11
        jmp     ct_runtime_\version\()_\wrapper
        END     ct_runtime_\version\()_\name
        .p2align 4
        STUB    .Lstub_\version\()_\name, \wrapper
        .endm

        .pushsection ct_stubs, "a"
        .p2align 2
        .popsection

/* A function that takes a struct by value gets no wrapper, since `many` matches neither 0 nor 2 in CHOOSE. */
#define BY_VALUE(bytes) many

#define ROW(name, category, stack_words, decoder) CHOOSE DRIVER_STUB, stack_words, decoder, name
#include "driver_api.def"
#undef ROW

/* The versions of libcudart, in the order used in runtime_functions.c. */
#define ROW(name, category, stack_words, decoder) CHOOSE RUNTIME_STUB, stack_words, decoder, name, 0, libcudart.so.11.0
#include "runtime_api.def"
#undef ROW
#define ROW(name, category, stack_words, decoder) CHOOSE RUNTIME_STUB, stack_words, decoder, name, 1, libcudart.so.12
#include "runtime_api.def"
#undef ROW
#define ROW(name, category, stack_words, decoder) CHOOSE RUNTIME_STUB, stack_words, decoder, name, 2, libcudart.so.13
#include "runtime_api.def"
#undef ROW

/* The functions of a second driver image. Few of them have a decoder, and none has a wrapper. */
        .macro SECOND_STUB name
        .p2align 4
        STUB    .Lsecond_\name, general
        .endm
#define ROW(name, category, stack_words, decoder) SECOND_STUB name
#include "driver_api.def"
#undef ROW

        .altmacro
        .macro FALLBACK_STUB number
        .p2align 4
        STUB    .Lfallback_\number, fallback
        .endm
        .set    ct_fallback, 0
        .rept   128
        FALLBACK_STUB %ct_fallback
        .set    ct_fallback, ct_fallback + 1
        .endr
        .noaltmacro

        /* Saves an even number of argument registers around a call. */
        .macro KEEP registers:vararg
        .irp    register, \registers
        pushq   \register
        .cfi_adjust_cfa_offset 8
        .endr
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        .endm

        .macro BACK registers:vararg
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        .irp    register, \registers
        popq    \register
        .cfi_adjust_cfa_offset -8
        .endr
        .endm

/* LOOK_UP defines dlsym and similar functions. Such a function passes names that begin with "cu" to
 * `handler`, or all names if `ct_dlsym_looks` is set. If a name is not passed on, or `handler` declines it,
 * the function jumps to `next`, which identifies its caller by the return address. `third` is an instruction
 * that sets the handler's third argument. It is omitted if the handler gets the function's own third
 * argument. The lookup functions may run before any constructor, even while malloc initialises itself. */
        .macro LOOK_UP name, handler, next, find, third:vararg
        FUNCTION \name, 4
        testq   %rsi, %rsi
        jz      3f
        cmpb    $'c', (%rsi)
        jne     1f
        cmpb    $'u', 1(%rsi)
        je      2f
1:      cmpl    $0, ct_dlsym_looks(%rip)
        je      3f
2:      KEEP    %rdi, %rsi, %rdx, %rcx
        \third
        call    \handler
        movl    %edx, %r11d
        BACK    %rcx, %rdx, %rsi, %rdi
        testl   %r11d, %r11d
        jnz     3f
        ret
3:      movq    \next(%rip), %rax
        testq   %rax, %rax
        jz      4f
        jmp     *%rax
4:      KEEP    %rdi, %rsi, %rdx, %rcx
        call    \find
        BACK    %rcx, %rdx, %rsi, %rdi
        jmp     *%rax
        END     \name
        .endm

/* void *dlsym(void *handle, const char *name), void *dlvsym(void *handle, const char *name, const char *version). */
        .globl  dlsym, dlvsym
        LOOK_UP dlsym, ct_dlsym, ct_next_dlsym, ct_dlsym_find, movq 40(%rsp), %rdx
        LOOK_UP dlvsym, ct_dlvsym, ct_next_dlvsym, ct_dlvsym_find
        LOOK_UP ct_enter_library_dlsym, ct_dlsym_of_library, ct_library_dlsym, ct_library_dlsym_find, movq 40(%rsp), %rdx
        .pushsection ct_stubs, "a" /* CT_LIBRARY_DLSYM */
        .long   ct_enter_library_dlsym - .
        .popsection

/* long syscall(long number, ...). Passes calls that may install a filter (SYS_seccomp, SYS_prctl and
 * SYS_landlock_restrict_self) to ct_syscall() (sandbox.c). For any other call, jumps to the next definition
 * of syscall() with the arguments unchanged. */
        .globl  syscall
        FUNCTION syscall, 4
        cmpq    $317, %rdi
        je      2f
        cmpq    $157, %rdi
        je      2f
        cmpq    $446, %rdi
        je      2f
        movq    ct_next_syscall(%rip), %rax
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      KEEP    %rdi, %rsi, %rdx, %rcx, %r8, %r9
        call    ct_find_syscall
        BACK    %r9, %r8, %rcx, %rdx, %rsi, %rdi
        jmp     *%rax
2:      jmp     ct_syscall
        END     syscall

/* pid_t vfork(void). Records that the child shares this thread's memory until it exits or executes a program.
 * Jumps to the next vfork() instead of calling it, since vfork() returns twice. */
        .globl  vfork
        FUNCTION vfork, 4
        movq    ct_vforked@gottpoff(%rip), %rax
        movl    $1, %fs:(%rax)
        movq    ct_next_vfork(%rip), %rax
        testq   %rax, %rax
        jz      1f
        jmp     *%rax
1:      subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    ct_find_vfork
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        jmp     *%rax
        END     vfork

        .section .note.GNU-stack, "", @progbits
