/* A visit's code, which area.c copies into the process. It addresses its data relative to %rip, and needs no
 * relocations.
 *
 * Thunks replace functions in the driver's table of entry points. While the area is ARMED, the process's
 * first call asks the command for a grant. With the grant, it removes all thunks, loads the hook and calls
 * cudatrace_visit() on the area's own stack. The call then continues at the new address in its slot. All
 * other calls jump straight to their functions. */
#include "area_layout.h"

#include <asm/unistd.h>

#define DATA(field)  (code_begin + CT_AREA_DATA + CT_DATA_##field)(%rip)
#define PAIRS        (code_begin + CT_AREA_PAIRS)(%rip)
#define STACK_TOP    (code_begin + CT_AREA_BYTES)(%rip)

#define SIG_BLOCK            0
#define SIG_SETMASK          2
#define SIGNAL_BYTES         8
#define RTLD_NOW             2
#define CANCEL_DISABLE       1
#define CANCEL_DEFERRED      0
#define CANCEL_ASYNCHRONOUS  1
#define STAT_BYTES           144
#define STAT_DEVICE          0
#define STAT_INODE           8
#define PAGE_BITS            12
#define WAKE_OP_PRIVATE      133
#define ADD_NOTHING          0x10000000
#define GRANT_TURNS          20000000 /* from some 50 ms to a second, depending on the processor */

        .macro RESTORE_REGISTERS
        .irp    name, r13, r12, rbx, r11, r10, rax, r9, r8, rcx, rdx, rsi, rdi, rbp
        popq    %\name
        .endr
        .endm

        .macro SAVE_REGISTERS
        .irp    name, rdi, rsi, rdx, rcx, r8, r9, rax, r10, r11, rbx, r12, r13
        pushq   %\name
        .endr
        .endm

        .macro RESTORE_VECTORS
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  \n*16(%rsp), %xmm\n
        .endr
        addq    $CT_ASKED_VECTORS, %rsp
        .endm

        .section .rodata.area_code, "a", @progbits
        .p2align 6
        .globl  ct_area_code_begin, ct_area_code_end
        .globl  ct_area_code_common, ct_area_code_arm, ct_area_code_disarm, ct_area_code_leave
        .hidden ct_area_code_begin, ct_area_code_end
        .hidden ct_area_code_common, ct_area_code_arm, ct_area_code_disarm, ct_area_code_leave
ct_area_code_begin:
code_begin:

/* ---- run by a thread stopped by ptrace, without a stack ---- */

/* Writes each thunk to its slot if the slot still holds the expected function. Sets ARMED last, because
 * thunks jump to their functions until the area is ARMED. */
ct_area_code_arm:
        leaq    PAIRS, %rsi
        movl    DATA(PAIR_COUNT), %ecx
        jmp     2f
1:      movq    CT_PAIR_SLOT(%rsi), %rdi
        movq    CT_PAIR_FUNCTION(%rsi), %rax
        movq    CT_PAIR_THUNK(%rsi), %rdx
        lock cmpxchgq %rdx, (%rdi)
        addq    $CT_PAIR_BYTES, %rsi
        decl    %ecx
2:      testl   %ecx, %ecx
        jnz     1b
        movl    $CT_AREA_ARMED, DATA(STATE)
        jmp     stop

/* Removes the thunks, unless a thread asks or is already doing so. */
ct_area_code_disarm:
        movl    DATA(STATE), %eax
        cmpl    $CT_AREA_LATE, %eax     /* only the command changes LATE and ALONE */
        jae     1f
        movl    $CT_AREA_ARMED, %eax
1:
        movl    $CT_AREA_IDLE, %ecx
        lock cmpxchgl %ecx, DATA(STATE)
        jne     stop
        leaq    stop(%rip), %r9
        jmp     take_out

/* Calls cudatrace_visit() on the area's stack. The process may be visited again after the hook has ended its
 * recording. */
ct_area_code_leave:
        leaq    DATA(VISIT), %rdi
        call    *DATA(HOOK)
        movl    %eax, DATA(LEFT)
        cmpl    $CT_AREA_ANSWER_DONE, %eax
        jne     stop
        movl    $CT_AREA_IDLE, DATA(STATE)

/* The loop at the end of each routine. The tracer polls the word RAN until the routine has set it, and then
 * stops the thread in this loop. The routine cannot end with a system call, which a seccomp filter might
 * forbid, or with a trap, which would raise a signal. */
stop:
        movl    $1, DATA(RAN)
1:      pause
        jmp     1b

/* Restores the function in each slot that still holds its thunk, and then jumps to r9. */
take_out:
        leaq    PAIRS, %rsi
        movl    DATA(PAIR_COUNT), %ecx
        jmp     2f
1:      movq    CT_PAIR_SLOT(%rsi), %rdi
        movq    CT_PAIR_THUNK(%rsi), %rax
        movq    CT_PAIR_FUNCTION(%rsi), %rdx
        lock cmpxchgq %rdx, (%rdi)
        addq    $CT_PAIR_BYTES, %rsi
        decl    %ecx
2:      testl   %ecx, %ecx
        jnz     1b
        jmp     *%r9

/* ---- run inside a call of the program ---- */

/* All thunks jump here with the address of their pair's `function` in r11. The argument registers still hold
 * the arguments of the program's call. */
        .p2align 4
ct_area_code_common:
        cmpl    $CT_AREA_ARMED, DATA(STATE)
        je      1f
        jmp     *(%r11)
1:      pushq   %rbp
        movq    %rsp, %rbp
        SAVE_REGISTERS
        movl    $CT_AREA_ARMED, %eax
        movl    $CT_AREA_ASKING, %ecx
        lock cmpxchgl %ecx, DATA(STATE)
        jne     go_straight
        subq    $CT_ASKED_VECTORS, %rsp
        .irp    n, 0, 1, 2, 3, 4, 5, 6, 7
        movups  %xmm\n, \n*16(%rsp)
        .endr
        movq    %fs:0, %rax             /* the thread pointer */
        movq    %rax, DATA(ASKED_THREAD)
        movq    %rsp, DATA(ASKED_STACK)
        andq    $-16, %rsp              /* the program may have called with a misaligned stack */
        /* This code has no unwind information, so a cancellation in it would skip the handlers of the
         * program's frames. The type has no effect on other threads, and setting it is no system call. */
        pushq   $CANCEL_DEFERRED
        pushq   $CANCEL_DEFERRED
        movl    $CANCEL_DEFERRED, %edi
        movq    %rsp, %rsi
        call    *DATA(CANCEL_TYPE)
        cmpl    $CANCEL_ASYNCHRONOUS, (%rsp)
        je      leave_alone
        /* The program may have installed a filter that kills it for any system call, so wait without one. The
         * command looks every millisecond. */
        movl    $GRANT_TURNS, %ecx
2:      movl    DATA(GRANT), %eax
        testl   %eax, %eax
        jnz     3f
        pause
        decl    %ecx
        jnz     2b
3:      cmpl    $CT_AREA_GRANT_YES, %eax
        jne     be_late
        /* A child of fork() inherits the thunks, but is not visited. */
        movl    $__NR_getpid, %eax
        syscall
        cmpl    %eax, DATA(PID)
        movl    $CT_AREA_GRANT_NO, %eax
        jne     be_late
        /* A signal handler may have interrupted the wait, and another thread may have asked meanwhile. */
        movl    $CT_AREA_ASKING, %eax
        movl    $CT_AREA_TAKING, %ecx
        lock cmpxchgl %ecx, DATA(STATE)
        jne     go_on

        movl    $SIG_BLOCK, %edi
        leaq    DATA(KEPT_OUT), %rsi
        leaq    DATA(SIGNALS), %rdx
        call    set_signals
        leaq    STACK_TOP, %rsp
        call    take_out_checked
        call    *DATA(ERRNO)
        movq    %rax, %r12
        movl    (%rax), %r13d
        movl    $CANCEL_DISABLE, %edi
        leaq    DATA(CANCEL_BEFORE), %rsi
        call    *DATA(CANCEL)
        call    make_forks_wait
        call    visit
        movl    %r13d, (%r12)
        leaq    -8*CT_ASKED_REGISTERS-CT_ASKED_VECTORS(%rbp), %rsp
        andq    $-16, %rsp
        /* As soon as the state is DONE, another thread may use the area's stack and data. As soon as
         * cancellation and signals are allowed, the thread may leave this code. */
        pushq   DATA(SIGNALS)
        movl    DATA(CANCEL_BEFORE), %edi
        movq    DATA(CANCEL), %rax
        pushq   %rax
        movl    $CT_AREA_DONE, DATA(STATE)
        movq    %rsp, %rsi              /* a place for the state before, which is not needed */
        call    *%rax
        popq    %rax
        movl    $SIG_SETMASK, %edi
        movq    %rsp, %rsi
        xorl    %edx, %edx
        call    set_signals
        leaq    -8*CT_ASKED_REGISTERS-CT_ASKED_VECTORS(%rbp), %rsp
        RESTORE_VECTORS
        RESTORE_REGISTERS
        movq    CT_PAIR_SLOT-CT_PAIR_FUNCTION(%r11), %r11
        jmp     *(%r11)
        /* A pending cancellation acts when the type is set, which is therefore the last step. */
leave_alone:
        movl    $CT_AREA_ASKING, %eax
        movl    $CT_AREA_ALONE, %ecx
        lock cmpxchgl %ecx, DATA(STATE)
        movl    $CANCEL_ASYNCHRONOUS, %edi
        movq    %rsp, %rsi
        call    *DATA(CANCEL_TYPE)
        jmp     go_on
be_late:
        movl    $CT_AREA_LATE, %ecx
        movl    $CT_AREA_ALONE, %edx
        cmpl    $CT_AREA_GRANT_LATER, %eax
        cmovel  %edx, %ecx
        movl    $CT_AREA_ASKING, %eax
        lock cmpxchgl %ecx, DATA(STATE)
go_on:
        leaq    -8*CT_ASKED_REGISTERS-CT_ASKED_VECTORS(%rbp), %rsp
        RESTORE_VECTORS
go_straight:
        RESTORE_REGISTERS
        jmp     *(%r11)

/* Restores the functions as take_out does, but in a running thread, where no tracer catches a fault. The
 * driver may have write-protected pages since the thunks were installed. Like the hook's
 * ct_system_writable(), makes the kernel check each page, and skips slots on protected pages. The thunk in a
 * skipped slot jumps to the slot's original function. */
take_out_checked:
        leaq    PAIRS, %rbx
        movl    DATA(PAIR_COUNT), %r12d
        xorl    %r13d, %r13d            /* the page last found to be writable */
        jmp     4f
1:      movq    CT_PAIR_SLOT(%rbx), %r8
        movq    %r8, %rax
        shrq    $PAGE_BITS, %rax
        cmpq    %rax, %r13
        je      2f
        leaq    DATA(PAIR_COUNT), %rdi
        movl    $WAKE_OP_PRIVATE, %esi
        xorl    %edx, %edx
        xorl    %r10d, %r10d
        movl    $ADD_NOTHING, %r9d
        movl    $__NR_futex, %eax
        syscall
        testq   %rax, %rax
        js      3f
        movq    %r8, %r13
        shrq    $PAGE_BITS, %r13
2:      movq    CT_PAIR_THUNK(%rbx), %rax
        movq    CT_PAIR_FUNCTION(%rbx), %rdx
        lock cmpxchgq %rdx, (%r8)
3:      addq    $CT_PAIR_BYTES, %rbx
        decl    %r12d
4:      testl   %r12d, %r12d
        jnz     1b
        ret

/* Registers a handler of fork(), unless an earlier visit has. */
make_forks_wait:
        subq    $8, %rsp
        movl    $1, %eax
        xchgl   %eax, DATA(FORKS_WAIT)
        testl   %eax, %eax
        jnz     1f
        leaq    fork_begins(%rip), %rdi
        xorl    %esi, %esi
        xorl    %edx, %edx
        xorl    %ecx, %ecx
        call    *DATA(ATFORK)
1:      addq    $8, %rsp
        ret

/* Runs in a thread that is about to fork. A child that is made while another thread is loading a library could
 * not load any. */
fork_begins:
        movl    $GRANT_TURNS, %ecx
1:      cmpl    $CT_AREA_TAKING, DATA(STATE)
        jne     2f
        pause
        decl    %ecx
        jnz     1b
2:      ret

/* Changes the signal mask by *rsi, as edi determines, and stores the old mask in *rdx unless rdx is 0. */
set_signals:
        movl    $SIGNAL_BYTES, %r10d
        movl    $__NR_rt_sigprocmask, %eax
        syscall
        ret

/* Loads the hook if it is not loaded yet, and calls cudatrace_visit(). */
visit:
        pushq   %rbx
        movq    DATA(HOOK), %rax
        testq   %rax, %rax
        jnz     4f
        call    is_our_file
        jne     3f
        leaq    DATA(PATH), %rdi
        movl    $RTLD_NOW, %esi
        call    *DATA(DLOPEN)
        movq    %rax, %rbx
        movl    DATA(FILE), %edi
        movl    $__NR_close, %eax
        syscall
        testq   %rbx, %rbx
        jz      1f
        movq    (%rbx), %rax            /* struct link_map begins with l_addr */
        addq    DATA(HOOK_OFFSET), %rax
        movq    %rax, DATA(HOOK)
        jmp     4f
        /* Clear the dlerror() message, so that the program does not see our error. */
1:      call    *DATA(DLERROR)
        testq   %rax, %rax
        jz      3f
        leaq    DATA(WHY), %rdi
        movl    $CT_DATA_WHY_BYTES-1, %ecx
2:      movb    (%rax), %dl
        movb    %dl, (%rdi)
        testb   %dl, %dl
        jz      3f
        incq    %rax
        incq    %rdi
        decl    %ecx
        jnz     2b
3:      movl    $CT_AREA_NOT_LOADED, DATA(ANSWER)
        popq    %rbx
        ret
4:      leaq    DATA(VISIT), %rdi
        call    *%rax
        movl    %eax, DATA(ANSWER)
        popq    %rbx
        ret

/* Sets ZF if the descriptor still refers to the library's file. The program may have closed all descriptors
 * that it did not open itself. */
is_our_file:
        subq    $STAT_BYTES, %rsp
        movl    DATA(FILE), %edi
        movq    %rsp, %rsi
        movl    $__NR_fstat, %eax
        syscall
        testl   %eax, %eax
        jnz     1f
        movq    STAT_INODE(%rsp), %rax
        cmpq    %rax, DATA(FILE_INODE)
        jne     1f
        movq    STAT_DEVICE(%rsp), %rax
        cmpq    %rax, DATA(FILE_DEVICE)
1:      leaq    STAT_BYTES(%rsp), %rsp
        ret
ct_area_code_end:

        .section .note.GNU-stack, "", @progbits
