/* The layout of a visit's area in the process. Shared by area.c and the code copied into the area
 * (area_code_x86_64.S), which finds its data at these offsets from its own start. */
#ifndef CT_ATTACH_AREA_LAYOUT_H
#define CT_ATTACH_AREA_LAYOUT_H

/* The parts of the area are whole pages: the code, its data, an inaccessible guard page, and the stack. The
 * stack has 8 MiB of address space, as most threads have, because the program's allocator runs on it. */
#define CT_AREA_CODE       0x0
#define CT_AREA_THUNKS     0x1000
#define CT_AREA_DATA       0x5000
#define CT_AREA_PAIRS      0x7000
#define CT_AREA_GUARD      0xd000
#define CT_AREA_STACK      0xe000
#define CT_AREA_BYTES      0x80e000
#define CT_AREA_PAIRS_MOST 1024

/* Size of a thunk, which loads the address of its pair's `function` into r11 and jumps to
 * ct_area_code_common. */
#define CT_AREA_THUNK_BYTES 16

/* struct ct_area_pair */
#define CT_PAIR_SLOT     0
#define CT_PAIR_FUNCTION 8
#define CT_PAIR_THUNK    16
#define CT_PAIR_BYTES    24

/* struct ct_area_data */
#define CT_DATA_STATE         8
#define CT_DATA_ANSWER        12
#define CT_DATA_PID           16
#define CT_DATA_FILE          20
#define CT_DATA_PAIR_COUNT    24
#define CT_DATA_LEFT          28
#define CT_DATA_FILE_INODE    32
#define CT_DATA_FILE_DEVICE   40
#define CT_DATA_HOOK          48
#define CT_DATA_HOOK_OFFSET   56
#define CT_DATA_DLOPEN        64
#define CT_DATA_DLERROR       72
#define CT_DATA_CANCEL        80
#define CT_DATA_ERRNO         88
#define CT_DATA_CANCEL_TYPE   96
#define CT_DATA_ATFORK        104
#define CT_DATA_KEPT_OUT      112
#define CT_DATA_SIGNALS       120
#define CT_DATA_ASKED_STACK   128
#define CT_DATA_ASKED_THREAD  136
#define CT_DATA_CANCEL_BEFORE 144
#define CT_DATA_RAN           148
#define CT_DATA_GRANT         152
#define CT_DATA_FORKS_WAIT    156
#define CT_DATA_PATH          160
#define CT_DATA_WHY           256
#define CT_DATA_WHY_BYTES     384
#define CT_DATA_VISIT         640
#define CT_DATA_REQUEST       648 /* a field of the visit */
#define CT_DATA_PRODUCER      664 /* a field of the visit */

/* The saved registers of a thread that asks, relative to its stack pointer: eight vector registers, twelve
 * general registers, and rbp, below the return address of its call. */
#define CT_ASKED_VECTORS   128
#define CT_ASKED_REGISTERS 12
#define CT_ASKED_RBX       144
#define CT_ASKED_RBP       224
#define CT_ASKED_RETURN    232
#define CT_ASKED_BYTES     240

/* The area's states. Thunks are active only while the area is ARMED. */
#define CT_AREA_IDLE   0
#define CT_AREA_ARMED  1
#define CT_AREA_TAKING 2 /* a thread has the grant and is loading the hook */
#define CT_AREA_DONE   3 /* the visit is over and the answer is set */
#define CT_AREA_ASKING 4 /* a thread has entered a thunk and waits for a grant, without a system call */
#define CT_AREA_LATE   5 /* there was no grant, and the call was made; the thunks are still there */
#define CT_AREA_ALONE  6 /* like LATE, but this thread could not have been visited at that time */

/* The command's answer to a thread that asks. Since the command has examined the process, the program may
 * have forbidden the system calls of a visit. */
#define CT_AREA_GRANT_NONE  0
#define CT_AREA_GRANT_YES   1
#define CT_AREA_GRANT_NO    2
#define CT_AREA_GRANT_LATER 3 /* not in this call */

/* Equals CT_VISIT_DONE of enum ct_visit_answer. */
#define CT_AREA_ANSWER_DONE 1
/* Equals CT_VISIT_SILENCED. */
#define CT_AREA_ANSWER_SILENCED 6
/* Equals CT_VISIT_RECORD of enum ct_visit_request. */
#define CT_AREA_REQUEST_RECORD 1
/* A further answer, which is not part of enum ct_visit_answer. */
#define CT_AREA_NOT_LOADED 100 /* `why` has the loader's message */

#endif
