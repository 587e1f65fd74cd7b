/* Functions that begin with each kind of instruction. A table in unit_inline_plan.c lists these functions. */
        .data
        .p2align 3
word:   .quad   40
half:   .long   0
byte:   .byte   5
        .p2align 3
target: .quad   inline_sum
number: .double 2.5
spare:  .quad   0

        .macro  ENTRY name, align=16
        .p2align 4, 0xcc
        .if     \align != 16
        .skip   \align, 0xcc
        .endif
        .globl  \name
        .type   \name, @function
\name:
        .endm
        .macro  END name
        .size   \name, .-\name
        .endm

        .text
        .p2align 4
        .type   inline_sum, @function
inline_sum: /* other functions jump to this one; not exported */
        lea     (%rdi,%rsi), %rax
        add     %rdx, %rax
        ret
        .size   inline_sum, .-inline_sum

        ENTRY   pushes
        push    %rbp
        mov     %rsp, %rbp
        push    %rbx
        mov     %rdi, %rbx
        lea     1(%rbx,%rsi,2), %rax
        pop     %rbx
        pop     %rbp
        ret
        END     pushes

        ENTRY   makes_room
        sub     $0x18, %rsp
        mov     %rdi, 8(%rsp)
        mov     8(%rsp), %rax
        add     $0x18, %rsp
        ret
        END     makes_room

        ENTRY   lands
        endbr64
        push    %rbx
        mov     %rdi, %rbx
        mov     %ebx, %eax
        pop     %rbx
        ret
        END     lands

        ENTRY   lands_on_stack
        endbr64
        mov     8(%rsp), %rax
        add     16(%rsp), %rax
        ret
        END     lands_on_stack

        ENTRY   loads
        mov     word(%rip), %rax
        add     %rdi, %rax
        ret
        END     loads

        ENTRY   stores_constant
        movl    $0x12345678, half(%rip)
        mov     half(%rip), %eax
        ret
        END     stores_constant

        ENTRY   compares_byte
        cmpb    $5, byte(%rip)
        sete    %al
        movzbl  %al, %eax
        ret
        END     compares_byte

        ENTRY   loads_second
        push    %rbx
        lea     word(%rip), %rbx
        mov     (%rbx), %rax
        pop     %rbx
        ret
        END     loads_second

        ENTRY   loads_last
        nop
        nop
        nop
        nop
        movq    $77, spare(%rip)
        movq    $0, spare(%rip)
        mov     %rdi, %rax
        ret
        END     loads_last

        ENTRY   loads_float
        movsd   number(%rip), %xmm1
        addsd   %xmm1, %xmm0
        cvttsd2si %xmm0, %rax
        ret
        END     loads_float

        ENTRY   branches
        test    %rdi, %rdi
        je      1f
        mov     %rsi, %rax
        ret
1:      mov     $99, %eax
        ret
        END     branches

        ENTRY   branches_twice
        cmp     %edi, %edi
        jb      1f
        jae     2f
1:      mov     $1, %eax
        ret
2:      mov     $2, %eax
        ret
        END     branches_twice

        ENTRY   branches_far
        test    %edi, %edi
        jne     1f
        mov     $5, %eax
        ret
        .skip   200, 0x90
1:      mov     $6, %eax
        ret
        END     branches_far

        ENTRY   calls_itself
        push    %rbx
        mov     %rdi, %rbx
        and     $7, %ebx
        xor     %eax, %eax
        test    %ebx, %ebx
        je      1f
        lea     -1(%rbx), %rdi
        call    calls_itself
        add     %rbx, %rax
1:      pop     %rbx
        ret
        END     calls_itself

        ENTRY   loops_behind
        xor     %eax, %eax
        and     $15, %edi
        inc     %edi
1:      add     %rsi, %rax
        dec     %edi
        jne     1b
        ret
        END     loops_behind

        ENTRY   returns_zero
        xor     %eax, %eax
        ret
        END     returns_zero

        .p2align 4 /* nops */
        ENTRY   returns
        ret
        END     returns
        .p2align 4

        ENTRY   returns_constant
        movabs  $0x1122334455667788, %rax
        ret
        END     returns_constant

        ENTRY   jumps_on
        .byte   0xe9
        .long   inline_sum - . - 4
        END     jumps_on

        ENTRY   jumps_on_short
        jmp     1f
        END     jumps_on_short
        .p2align 4, 0xcc
1:      jmp     inline_sum

        ENTRY   jumps_by_table
        jmp     *target(%rip)
        END     jumps_by_table

        ENTRY   jumps_by_import
        mov     %rsi, %rdi
        jmp     *labs@GOTPCREL(%rip)
        END     jumps_by_import

        ENTRY   jumps_by_register
        lea     inline_sum(%rip), %rax
        jmp     *%rax
        END     jumps_by_register

        ENTRY   waits
        .byte   0x0f, 0x1f, 0x44, 0, 0 /* nop of five bytes */
        mov     %rdi, %rax
        ret
        END     waits

        ENTRY   waits_patchable
        nop
        nop
        nop
        nop
        nop
        mov     %rdi, %rax
        ret
        END     waits_patchable

        ENTRY   traps
        ud2
        END     traps

        /* The first instructions of libcuda 535's and 580's functions (proto/slot_shape.h). For 535, there is
         * also a version with an endbr64 that a compiler would add. */
        .macro  COMPARES
        cmpl    $0x321cba00, half(%rip)
        je      1f
        .endm
        ENTRY   begins_as_535
        COMPARES
        jmp     *target(%rip)
1:      mov     $4, %eax
        ret
        END     begins_as_535

        ENTRY   begins_as_535_with_landing
        endbr64
        COMPARES
        jmp     *target(%rip)
1:      mov     $4, %eax
        ret
        END     begins_as_535_with_landing

        ENTRY   begins_as_580
        push    %rbp
        mov     %rsp, %rbp
        push    %r12
        sub     $8, %rsp
        COMPARES
        call    *target(%rip)
2:      add     $8, %rsp
        pop     %r12
        pop     %rbp
        ret
1:      mov     $4, %eax
        jmp     2b
        END     begins_as_580

        /* For each function below, the plan must refuse to make a slot. */
        ENTRY   repeats
1:      add     %rsi, %rax
        dec     %rdi
        jg      1b
        ret
        END     repeats

        ENTRY   repeats_behind_landing
        endbr64
1:      add     %rsi, %rax
        dec     %rdi
        jg      1b
        ret
        END     repeats_behind_landing

        /* The only jump to this function's loop is in the function's cold part, which is outside the
         * function's symbol. */
        ENTRY   has_cold_part
        sub     $8, %rsp
1:      dec     %rdi
        jg      cold
        mov     %rsi, %rax
        add     $8, %rsp
        ret
        END     has_cold_part
        .type   cold, @function
        .skip   200, 0xcc
cold:   add     %rdi, %rsi
        .byte   0xe9
        .long   1b - . - 4
        .size   cold, .-cold

        /* The register could have been loaded from a jump table that leads to the function's loop. */
        ENTRY   chooses
        xor     %eax, %eax
1:      add     %rsi, %rax
        dec     %rdi
        jle     2f
        lea     1b(%rip), %rcx
        jmp     *%rcx
2:      ret
        END     chooses

        ENTRY   chooses_by_memory
        lea     target(%rip), %rcx
        jmp     *(%rcx)
        END     chooses_by_memory

        ENTRY   repeats_within
        xor     %eax, %eax
1:      add     %rsi, %rax
        dec     %rdi
        jg      1b
        ret
        END     repeats_within

        ENTRY   begins_in_the_middle
        jmp     1f
2:      add     %rsi, %rax
1:      dec     %rdi
        jg      2b
        ret
        END     begins_in_the_middle

        ENTRY   calls
        call    inline_sum
        ret
        END     calls

        ENTRY   calls_by_table
        sub     $8, %rsp
        call    *target(%rip)
        add     $8, %rsp
        ret
        END     calls_by_table

        ENTRY   calls_by_table_at_once
        nop
        call    *target(%rip)
        ret
        END     calls_by_table_at_once

        ENTRY   counts
        mov     %rdi, %rcx
        jrcxz   1f
1:      mov     %rcx, %rax
        ret
        END     counts

        ENTRY   counts_and_loops
        loop    1f
        nop
        nop
        nop
        nop
1:      ret
        END     counts_and_loops

        ENTRY   jumps_by_sixteen
        .byte   0x66, 0xe9, 0, 0, 0, 0
        nop
        nop
        ret
        END     jumps_by_sixteen

        ENTRY   loads_by_half
        .byte   0x67, 0x8b, 0x05, 0, 0, 0, 0 /* mov 0(%eip), %eax */
        ret
        END     loads_by_half

        ENTRY   is_short
        xor     %eax, %eax
        ret
        END     is_short
        .type   follows, @function
follows: /* not exported, in the place where filler would be */
        nop
        nop
        nop
        mov     %rdi, %rax
        ret

        ENTRY   falls_through
        nop
        nop
        END     falls_through
        .type   below, @function
below:  mov     %rdi, %rax
        ret

        ENTRY   has_gap_at_the_end, 12
        xor     %eax, %eax
        ret
        END     has_gap_at_the_end
        .skip   17, 0xcc

        ENTRY   is_before
        xor     %eax, %eax
        ret
        END     is_before
        .globl  is_behind
        .type   is_behind, @function
is_behind:
        mov     $4, %eax
        ret
        END     is_behind

        ENTRY   has_two_names
        .globl  is_the_other_name
        .type   is_the_other_name, @function
is_the_other_name:
        mov     $4, %eax
        ret
        END     has_two_names
        END     is_the_other_name

        ENTRY   has_no_size
        mov     $4, %eax
        ret

        ENTRY   has_no_code
        mov     $4, %eax
        ret
        .byte   0x06, 0x06
        END     has_no_code

        ENTRY   has_breakpoint
        int3
        mov     $4, %eax
        ret
        END     has_breakpoint

        ENTRY   has_breakpoint_behind_landing
        endbr64
        int3
        mov     $4, %eax
        ret
        END     has_breakpoint_behind_landing

        ENTRY   has_jump_with_address
        jmp     *1f(%rip)
1:      .quad   0x7000000000
        END     has_jump_with_address

        ENTRY   has_jump_by_register
        movabs  $0x7000000000, %rax
        jmp     *%rax
        END     has_jump_by_register

        ENTRY   has_jump_by_high_register
        movabs  $0x7000000000, %r11
        jmp     *%r11
        END     has_jump_by_high_register

        ENTRY   has_pushed_address
        push    $0x12345678
        movl    $0x7fff, 4(%rsp)
        ret
        END     has_pushed_address

        .section .note.GNU-stack, "", @progbits
