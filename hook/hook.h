/* What the files of hook/ share. The way of a call: stub and trampoline (trampoline_<cpu>.S) → entry.c →
 * the real driver → entry.c, which writes the record (record.c when it is not a plain one).
 *
 *   wrap.c       the same way in one function, for plain calls and launches on x86-64; what the two share
 *                is in hot_record.h
 *   functions.c  the row of each driver function: its real address, its number in the segment, its decoder
 *   runtime.c    the same for the runtime's functions, of which a process may hold several libraries
 *   lookup.c     the ways in: dlsym and cuGetProcAddress hand out stubs
 *   process.c    the process: having a segment, forking, letting go; segment_file.c is the segment,
 *                program.c what it says of the program
 *   daemon.c     the daemon: looking for it, ringing
 *   thread.c     a thread's lane: taking and giving back
 *   lock.c       the one kind of lock
 *   system.c     when system calls may be made; sandbox.c sees filters come, filter.c runs them
 *   symbol.c     symbols of loaded objects; spare.c calls of functions that the table lacks
 *   bound.c      how much of the program's memory the hook takes; descriptor.c its files
 *   selection.c  which calls are recorded, and counting the others
 *   decode.c     what arguments mean; decode_copy.c those of copies and sets, decode_graph.c of graphs,
 *                decode_memory.c of memory that is got otherwise, decode_objects.c of calls that are about
 *                objects, decode_image.c of code, decode_runtime.c of the runtime's functions
 *   names.c      kernels' names by handle
 *   graphs.c     what graphs consist of, and which streams are being captured
 *   memory.c     which addresses are the device's
 *   nvtx.c       what applications say: the entry points of NVTX; range.c does ranges, named.c names of
 *                threads and of CUDA's objects
 *   texts.c      texts that records name by number; pool.c objects by number
 *   table.c      what is remembered by handle or address
 *   ioctl.c      calls of ioctl() on the driver's devices; ioctl_layout.c reads their structs
 *
 * Rules for everything here: the traced program's registers, errno, dlerror and results are its own; no exit,
 * no abort, no stdio streams, no malloc; no system call but between ct_system_begin() and end (system.h); on
 * the hot path (entry.c) no lock, no system call, no locked instruction. */
#ifndef CT_HOOK_H
#define CT_HOOK_H

#include "category.h"
#include "control.h"
#include "segment.h"
#include "session_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nothing of this is for others; known to be local, it needs no look-up through the global offset table. */
#pragma GCC visibility push(hidden)

#define CT_LIKELY(x)       __builtin_expect(!!(x), 1)
#define CT_UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define CT_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

/* The runtime's functions, in the order of the table, and the versions of libcudart that have a stub of
 * each. */
enum {
#define ROW(name, category, stack_words, decoder) CT_RUNTIME_##name,
#include "runtime_api.def"
#undef ROW
    CT_RUNTIME_FUNCTIONS,
    CT_RUNTIME_VERSIONS = 3
};

/* Numbers of rows: the driver's functions in order, the runtime's in order for each version, then the spare
 * stubs. */
enum {
#define ROW(name, category, stack_words, decoder) CT_ROW_##name,
#include "driver_api.def"
#undef ROW
    CT_ROW_COUNT, /* of the driver */
    CT_NAMED_COUNT = CT_ROW_COUNT + CT_RUNTIME_VERSIONS * CT_RUNTIME_FUNCTIONS,
    CT_SPARE_COUNT = 128,
    CT_STUB_COUNT = CT_NAMED_COUNT + CT_SPARE_COUNT,
    /* Rows without a stub, for what is traced by other means than the trampoline. */
    CT_EXTRA_COUNT = 768,
    CT_ROWS_ALL = CT_STUB_COUNT + CT_EXTRA_COUNT
};

/* Integer arguments that travel in registers. The tables of functions count, in 8-byte words, what a call has
 * beyond the six of x86-64, and name structs that are passed by value and have more than 16 bytes: these lie
 * on the stack on x86-64 (System V ABI, section 3.2.3), and are passed by reference on aarch64 (AAPCS64,
 * section 6.8.2, stage B). CT_STACK_WORDS() makes of that the words that this architecture has on the stack,
 * or more: words that are passed on without need harm nobody. */
#if defined(__x86_64__)
#define CT_REGISTER_ARGS 6
#define BY_VALUE(bytes)  (((bytes) + 7) / 8)
#elif defined(__aarch64__)
#define CT_REGISTER_ARGS 8
#define BY_VALUE(bytes)  1
#endif
#define CT_STACK_WORDS(beyond_six)                                                                           \
    ((beyond_six) + 6 > CT_REGISTER_ARGS ? (beyond_six) + 6 - CT_REGISTER_ARGS : 0)
#define CT_RUNTIME_ROW(version, function) (CT_ROW_COUNT + (version)*CT_RUNTIME_FUNCTIONS + (function))

/* Stack words that are passed on for a function whose signature nobody told us, where the caller has them. */
enum { CT_SPARE_STACK_WORDS = 16 };

typedef int32_t ct_status; /* CUresult */

/* A call in flight, on the application's stack. The trampoline knows the offsets. */
struct ct_frame {
    uint64_t args[CT_REGISTER_ARGS];
    const uint64_t *stack_args; /* the words that the caller passed on its stack */
    uint64_t start;             /* ticks at entry; meaningful while producer is set */
    struct ct_producer *producer;
    uint32_t row;
    uint32_t depth;
    uint64_t result;   /* what the real function left in the return register */
    uint64_t indirect; /* aarch64: x8, where the caller wants a result that fits no register */
};
#define CT_FRAME_REST (8 * CT_REGISTER_ARGS)
static_assert(sizeof(struct ct_frame) == CT_FRAME_REST + 48, "trampoline");
static_assert(sizeof(struct ct_frame) % 16 == 0, "the trampoline keeps the stack aligned");
static_assert(offsetof(struct ct_frame, stack_args) == CT_FRAME_REST, "trampoline");
static_assert(offsetof(struct ct_frame, row) == CT_FRAME_REST + 24, "trampoline");
static_assert(offsetof(struct ct_frame, result) == CT_FRAME_REST + 32, "trampoline");
static_assert(offsetof(struct ct_frame, indirect) == CT_FRAME_REST + 40, "trampoline");

/* Argument `i`, counted from 0 among integers, pointers and structs of up to 8 bytes. A float has no number,
 * having registers of its own; a larger struct by value has one on aarch64, where it is a reference, and none
 * on x86-64. `frame->args` is right for the first six. Of an argument narrower than 64 bits the upper bits
 * are not the caller's; on the stack, too, each takes 8 bytes on both architectures. */
static inline uint64_t ct_argument(const struct ct_frame *frame, unsigned int i)
{
    return i < CT_REGISTER_ARGS ? frame->args[i] : frame->stack_args[i - CT_REGISTER_ARGS];
}

/* What the trampoline does next, returned in two registers. */
struct ct_target {
    void *function;
    uint64_t mode; /* stack words to pass on (0 to 255), or one of the two below */
};
#define CT_MODE_STRAIGHT UINT64_MAX       /* jump to function as if the stub were not there */
#define CT_MODE_SLOW     (UINT64_MAX - 1) /* save the vector registers and call ct_enter_slow() */

/* ---- entry.c: called by the trampoline ---- */
struct ct_target ct_enter(struct ct_frame *frame);
void ct_leave(struct ct_frame *frame);
/* Their slow ways, in record.c; the trampoline saves the vector registers around the first. */
struct ct_target ct_enter_slow(struct ct_frame *frame);
/* Instead of both enters for a runtime function whose caller, a return address, is not among
 * ct_runtime_callers. */
struct ct_target ct_enter_careful(struct ct_frame *frame, const void *caller);
/* Instead of both enters for a function of which nothing is known but its name. */
struct ct_target ct_enter_spare(struct ct_frame *frame);
void ct_leave_slow(struct ct_frame *frame);
/* wrap.c, in place of ct_enter() and ct_leave() for the functions that have a wrapper; x86-64. */
uint64_t ct_wrap_plain(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t ct_wrap_plain_2(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
uint64_t ct_wrap_launch(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                        uint64_t, uint64_t, uint64_t);
uint64_t ct_wrap_launch_ex(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
/* The same for a call of a row without a stub: whoever has it fills in row, args and result, and makes the
 * call between the two. The frame lies on the stack, below those of the calls that it is made in. */
void ct_call_begin(struct ct_frame *frame);
void ct_call_end(struct ct_frame *frame);

/* ---- functions.c ---- */

/* What a decoder says of a returned call. Zeroed before. */
struct ct_decoded {
    uint8_t kind;          /* enum ct_kind; CT_KIND_CALL when nothing else fits */
    uint8_t flags;         /* CT_FLAG_… */
    uint8_t payload_slots; /* length of the payload, 0 to 2 */
    int32_t status;        /* the result's lower half, unless the decoder knows better */
    uint64_t value;
    union {
        struct ct_launch launch;
        struct ct_transfer transfer;
        struct ct_alloc alloc;
        struct ct_graph_launch graph;
        struct ct_graph_nodes nodes;
        struct ct_objects objects;
        struct ct_range range;
    } payload;
};

/* Reads a returned call's arguments and result. Runs on the application's thread; may call the real driver
 * only for look-ups that neither synchronise nor break a stream capture. */
typedef void ct_decoder(const struct ct_frame *frame, struct ct_decoded *decoded);

enum ct_row_flags {
    CT_ROW_ALWAYS = 1,     /* the decoder is wanted even while nothing is recorded: it learns or hands out */
    CT_ROW_PER_THREAD = 2, /* a _ptsz or _ptds form: the null stream is the thread's own */
};

/* A row: one cache line holds two. `enter_id` and `leave_id` are `id` where the short way in entry.c may be
 * taken, else 0. */
struct ct_row {
    void *real;         /* NULL when the driver lacks it */
    ct_decoder *decode; /* NULL for a plain call */
    /* Stored with release when the directory entry is there, loaded with acquire by ct_enter(). */
    _Atomic uint16_t id;       /* index in the segment's directory, 0 while the process has not called it */
    _Atomic uint16_t enter_id; /* 0 unless the counter is the clock */
    _Atomic uint16_t leave_id; /* 0 unless, besides, there is no decoder, and every call is recorded */
    uint8_t stack_words;
    uint8_t flags; /* enum ct_row_flags */
    uint8_t category;
    uint8_t layer;            /* enum ct_layer */
    _Atomic uint8_t left_out; /* 1: counted and not recorded */
    uint8_t reserved0[1];
    _Atomic uint16_t wrap_id; /* as leave_id, decoder or not: for a wrapper that reads the arguments itself */
    uint8_t reserved1[2];
};
static_assert(sizeof(struct ct_row) == 32, "trampoline; two rows a cache line");
static_assert(offsetof(struct ct_row, enter_id) == 18, "trampoline");

extern struct ct_row ct_rows[CT_ROWS_ALL];

/* CUlaunchConfig, as far as it is read. */
struct ct_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    uint64_t stream;
};

/* The stubs' addresses, in the order of the rows; defined beside the trampoline. Of a runtime function, the
 * entry that does not look at the caller. */
extern void *const ct_stubs[CT_STUB_COUNT];

/* Finds the real functions if libcuda is loaded; true once they are known. Cheap when they are. */
bool ct_functions_resolve(void);
/* The stub for a real driver function, or NULL when `real` is none that the table knows. */
void *ct_functions_stub(const void *real);
/* A spare stub for `real`, named `name`; NULL when they are used up. The same for the same pointer. */
void *ct_functions_spare(void *real, const char *name);
/* The row of that layer and name among those without a stub, made if need be; CT_ROWS_ALL when they are used
 * up. The caller remembers it: names are compared one by one. `name` is copied. */
uint32_t ct_functions_extra(enum ct_layer layer, uint8_t category, const char *name, ct_decoder *decode);
const char *ct_functions_name(uint32_t row);
/* Gives every row its number back to zero: a new segment numbers anew. */
void ct_functions_forget_ids(void);
/* What the program would have got for `row` without the hook, when the driver is not loaded or lacks the
 * function: another library's, or NULL. */
void *ct_functions_fallback(uint32_t row);
/* Whether the table has a function of that name. */
bool ct_functions_known(const char *name);
/* The flags that a function's name tells. */
uint8_t ct_functions_form(const char *name);
/* The real function of a row, for the hook's own calls; NULL when the driver lacks it. */
static inline void *ct_real(uint32_t row)
{
    return ct_rows[row].real;
}

/* ---- runtime.c ---- */

/* By version, pages of code whose references are bound to the library that the rows have, each at the place
 * of its number modulo the length. The trampoline knows the layout. */
enum { CT_RUNTIME_CALLERS = 1024 };
extern _Atomic uint64_t ct_runtime_callers[CT_RUNTIME_VERSIONS][CT_RUNTIME_CALLERS];

/* The real function for a call of `row` that returns to `caller`; NULL when no library of the row's version
 * is loaded or it lacks the function. */
void *ct_runtime_real(uint32_t row, const void *caller);
const char *ct_runtime_name(uint32_t row);
/* Whether the table has a function of that name. */
bool ct_runtime_known(const char *name);
/* The stub for a function that dlsym found under `name`; NULL when it is not one of the rows. */
void *ct_runtime_stub(const void *real, const char *name);

/* ---- daemon.c ---- */
extern struct ct_control *ct_control; /* of the session in use; NULL before the first attachment */

/* What a control segment says, read once. */
struct ct_wishes {
    uint64_t ring_bytes;
    bool clock_is_counter, system;
};
/* Where a session's files are. */
struct ct_place {
    const char *dir, *session; /* the environment's */
    uint32_t uid;              /* in their names */
};
/* False where the environment names no session or directory that can be. */
bool ct_daemon_place(struct ct_place *place);
/* Maps the control segment of the daemon there, a user's own before the system's; NULL when none serves. */
struct ct_control *ct_daemon_find(const struct ct_place *place, struct ct_wishes *wishes);
/* Goes by that one from now on; false where it cannot be put in its place. */
bool ct_daemon_take(struct ct_control *control, const struct ct_wishes *wishes);
void ct_daemon_drop(struct ct_control *control);
/* Wakes the collector if it sleeps; true when it did. */
bool ct_daemon_ring(void);
/* In a fork's child: what its parent did is not done by it. */
void ct_daemon_forget(void);

/* ---- process.c ---- */
extern bool ct_clock_is_counter;

/* No system call. */
static inline uint64_t ct_coarse_ns(void)
{
    struct timespec coarse;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &coarse);
    return (uint64_t)coarse.tv_sec * 1000000000 + (uint64_t)coarse.tv_nsec;
}

static inline uint64_t ct_now(void)
{
    return ct_clock_is_counter ? ct_counter_read() : ct_monotonic_ns();
}

/* The process's segment, looking for a daemon and creating it where needed; NULL while dormant. */
struct ct_segment *ct_process_segment(void);
/* The same without looking: NULL when there is none. */
struct ct_segment *ct_process_current(void);
/* Counts segments of this process, their beginnings and ends: what was defined in an earlier one must be defined again. */
uint32_t ct_process_epoch(void);
/* Lets go of a segment that the collector gave up; the process is dormant afterwards. */
void ct_process_detach(void);
/* The lock of what makes the segment (lock.h). */
bool ct_process_lock(void);
void ct_process_unlock(void);
/* Whose the memory is that the calling thread works in: the child of a fork that ran no handlers has its
 * parent's state in it, the child of vfork() its parent's memory itself. */
enum ct_memory { CT_MEMORY_OWN, CT_MEMORY_BORROWED, CT_MEMORY_INHERITED };
enum ct_memory ct_process_memory(void);
/* Whether the thread has called vfork(), and may be its child; whether that has put a filter on. */
extern __thread uint32_t ct_vforked;
enum { CT_VFORK_CALLED = 1, CT_VFORK_FILTERED = 2 };
/* The last of these, asked of the kernel: between ct_system_begin() and end. It takes and changes nothing of
 * the process's, which would stay behind in its parent. */
bool ct_process_is_borrower(void);

/* ---- program.c ---- */

/* Fills in what /proc tells of the process `pid`, which is this one. */
void ct_program_describe(struct ct_segment *segment, int32_t pid);

/* ---- thread.c ---- */

/* A kernel that this lane has launched, with its name's number, which was sent. It holds as long as
 * ct_names_version is what it was. */
struct ct_kernel_memo {
    uint64_t handle;
    uint32_t version; /* 0: none */
    uint32_t number;
};
enum { CT_KERNEL_MEMO_BITS = 7, CT_KERNEL_MEMOS = 1 << CT_KERNEL_MEMO_BITS };

/* A lane as its owner sees it: private to the process, in memory that the kernel wipes in
 * a fork's child, so that not even a raw clone() can write into its parent's lane. All zero means "not mine".
 */
struct ct_producer {
    /* A lane begins on a page, and so does every second of these: without a distance the loads from here
     * would have the low twelve bits of the stores there, and processors let them wait. */
    _Alignas(2048) uint8_t apart[192];
    struct ct_lane *lane; /* NULL: nothing is recorded */
    uint8_t *ring;
    uint64_t mask;     /* slots - 1 */
    uint64_t position; /* next slot to write */
    uint64_t limit; /* slots up to here may be written without asking; 0 when its thread has let go of it */
    uint64_t rung;  /* the value of `wake` at which the doorbell was rung last: a collector that was awake
                     * then, and may have looked too early, is tried again with the next call */
    uint32_t idle;  /* 1 except while a record is being written: a signal handler then finds 0 */
    uint32_t depth;
    uint32_t index;                /* of the lane */
    uint32_t epoch;                /* of the process when the lane was mapped */
    uintptr_t frames[CT_OPEN_MAX]; /* ct_frame_place() of the open calls; ranges have none, see range.c */
    struct ct_segment *segment;
    uint64_t trees; /* outermost calls that have returned: sampling takes some of them */
    struct ct_kernel_memo kernels[CT_KERNEL_MEMOS];
    uintptr_t act; /* place of the act that is being recorded (ct_record_act()), 0 for none */

    /* thread.c's own. */
    _Atomic uint32_t owner;        /* enum slot_owner */
    uint32_t slot;                 /* which of these it is */
    uintptr_t around;              /* left: the outermost call that was open then, 0 for none */
    struct ct_producer *next_left; /* left by the same thread before */
};
static_assert(sizeof(struct ct_producer) == 4096, "slots of thread.c");
static_assert(offsetof(struct ct_producer, lane) == 192, "trampoline");

extern __thread struct ct_producer *ct_self; /* never NULL: &ct_dormant when nothing is recorded */
extern struct ct_producer ct_dormant;
extern struct ct_producer
    ct_unlaned; /* a frame's producer when the process records and its thread has no lane */

/* Whether the collector asked to be woken by now. Once it was, the next call need not do it again: it drains
 * before it names another position. Position 0 asks for every call's attention (ct_record_wake()). */
static inline bool ct_wants_doorbell(const struct ct_producer *self, struct ct_lane *lane, uint64_t position)
{
    const uint64_t wake = ct_lane_wake(lane);
    return position >= wake && (wake != self->rung || wake == 0);
}

/* Where a call stands on its thread's stack: the same for one place in the program, whichever way its calls
 * take through the hook. On x86-64 that is where the return address lies. */
static inline uintptr_t ct_frame_place(const struct ct_frame *frame)
{
    return (uintptr_t)frame->stack_args - 8;
}

/* How many calls are open around one at `frame`. One that stands there or below was left by longjmp, an
 * exception or cancellation: it is not open any more. */
static inline uint32_t ct_depth_around(const struct ct_producer *self, uintptr_t frame)
{
    uint32_t depth = self->depth;
    while (CT_UNLIKELY(depth > 0)) {
        const uint32_t top = depth < CT_OPEN_MAX ? depth : CT_OPEN_MAX;
        if (self->frames[top - 1] > frame)
            break;
        depth = top - 1;
    }
    return depth;
}

/* Puts a call that stands there on the thread's stack of open calls; its depth. */
static inline uint32_t ct_depth_enter(struct ct_producer *self, uintptr_t frame)
{
    const uint32_t depth = ct_depth_around(self, frame);
    if (CT_LIKELY(depth < CT_OPEN_MAX))
        self->frames[depth] = frame;
    self->depth = depth + 1;
    return depth;
}

/* Whether the call at that depth is not inside another one. Ranges have no frame and enclose trees of calls
 * without being part of them. */
static inline bool ct_outermost(const struct ct_producer *self, uint32_t depth)
{
    /* A range's place holds a number above all addresses, or 0: no frame's address. */
    return depth == 0 || (depth <= CT_OPEN_MAX && (intptr_t)self->frames[depth - 1] <= 0);
}

/* Takes a lane for the calling thread if the process has a segment; true when it holds one. `place` is where its call
 * stands on the stack (ct_frame_place()), 0 where that is not known. */
bool ct_thread_attach(uintptr_t place);
/* Gives the calling thread's ring twice the slots, where that can be had now. It holds the lane. */
void ct_thread_grow(struct ct_producer *producer);
/* Sees to it that ct_range_thread_exit() runs when the calling thread ends, lane or no lane. */
void ct_thread_watch_exit(void);
/* Gives the calling thread's lane up without giving it back: it belongs to a parent. */
void ct_thread_forget(void);
/* The same for a lane of a segment that is gone; the process lock is held. */
void ct_thread_let_go(void);
/* In a fork's child, whose producers the kernel has wiped: private memory at the address of the calling
 * thread's lane in its parent's segment. The fork may have been made by a signal handler that interrupted a
 * call here, which goes on to write, and may have the address in a register. */
void ct_thread_redirect(void);
/* Puts private memory in the place of the lanes of the segment, which is given up: what is still written there harms
 * nobody, and the shared memory is free. The process lock is held. */
void ct_thread_lanes_abandon(void);

/* ---- record.c ---- */

/* Writes a record of 1 + payload_slots slots at the producer's position. The caller holds the lane (idle is
 * 0) and has announced. False when there is no room. */
bool ct_record_room(struct ct_producer *producer, uint32_t slots);
void ct_record_write(struct ct_producer *producer, const struct ct_record *record, const void *payload,
                     size_t payload_bytes);
/* For the new owner of a lane: what its ring has room for. */
void ct_record_begin_lane(struct ct_producer *producer);
/* Counts a call that is not in the ring. */
void ct_record_lose(struct ct_producer *producer, enum ct_loss_cause cause, uint16_t function, uint64_t start,
                    uint64_t end, uint64_t bytes);
/* The same for a thread without a lane. */
void ct_record_lose_unlaned(struct ct_segment *segment, uint16_t function, uint64_t start, uint64_t end);
/* Whether a place that was held from `holder` on the stack has been left by a jump out of a signal handler,
 * as is seen from `place`: what stands at or below a call that is made is not there any more. */
bool ct_record_left(uintptr_t holder, uintptr_t place);
/* The position that the lane shows, which others can write: what is further off than a record is not believed. */
uint64_t ct_record_published(const struct ct_producer *producer);
/* Makes a lane writable again whose holder was left in the middle of a record. */
void ct_record_take_over(struct ct_producer *producer);
/* What is recorded without a trampoline: the application's own ranges. */
struct ct_act {
    uintptr_t place; /* where the function that the application called stands on the stack */
    uint64_t start;  /* ticks; 0: now */
    uint32_t row;    /* which ct_record_begin() has given a number */
    uint32_t depth;
    uint8_t kind; /* enum ct_kind */
    uint64_t value;
    const void *payload;
    size_t payload_bytes;
};
/* Where an act of the calling thread goes: its lane, which is taken if need be; &ct_unlaned when it can only
 * be counted; NULL while nothing is recorded. *function is the row's number. */
struct ct_producer *ct_record_begin(uint32_t row, uint16_t *function);
/* Writes the record of an act that ends now, or counts it. */
void ct_record_act(struct ct_producer *producer, const struct ct_act *act);
/* The producer's position has reached `wake`: ring, or let go. */
void ct_record_wake(struct ct_producer *producer);

/* ---- selection.c ---- */

/* Begins with what the environment says. The process lock is held, by the maker of a segment. */
void ct_selection_begin(struct ct_segment *segment);
/* Goes by what the session's daemon wishes now, if that has changed. */
void ct_selection_follow(struct ct_segment *segment);
/* What a row that was just given a number is to do; the process lock is held. */
void ct_selection_apply(uint32_t row);
/* Whether this returned call is one to be counted and not recorded. */
bool ct_selection_leaves_out(const struct ct_producer *self, const struct ct_frame *frame);
/* Counts it. */
void ct_selection_count(struct ct_segment *segment, uint16_t function, uint64_t ticks, uint64_t bytes);

/* ---- lookup.c ---- */

/* Whether the C library knows the program's environment: not in calls from .preinit_array, or from malloc
 * while the loader starts the program. */
bool ct_library_ready(void);
/* The real driver's `name`, NULL when libcuda is not loaded or lacks it. Never loads libcuda. */
void *ct_driver_symbol(const char *name);
/* The real dlsym, for whatever handle. */
void *ct_library_symbol(void *handle, const char *name);
/* What comes behind the hook in the order of look-up. */
void *ct_next_symbol(const char *name);
ct_decoder ct_decode_proc_address;

/* ---- names.c ---- */

/* Counts what changes the name of any handle; never 0. */
extern _Atomic uint32_t ct_names_version;

static inline struct ct_kernel_memo *ct_kernel_memo(struct ct_producer *producer, uint64_t handle)
{
    return &producer->kernels[handle * UINT64_C(0x9e3779b97f4a7c15) >> (64 - CT_KERNEL_MEMO_BITS)];
}

/* String number of a kernel's name, defined in the caller's lane if need be; 0 when unknown. `producer` is
 * busy. `alive` says that the driver has taken the handle for one. */
uint32_t ct_names_kernel(uint64_t handle, struct ct_producer *producer, bool alive);
/* `handle` was handed out and goes with `owner`; `name` is copied, NULL where the program did not say one.
 * `producer` is the frame's, NULL while nothing is recorded. */
void ct_names_learn(uint64_t handle, uint64_t owner, const char *name, const struct ct_producer *producer);
/* The same for a handle that has the name of the one with which it goes. */
void ct_names_alias(uint64_t handle, uint64_t of, const struct ct_producer *producer);
/* The driver told the program the name of `handle`. */
void ct_names_told(uint64_t handle, const char *name, const struct ct_producer *producer);
/* `handle` was handed out in a list of what `owner` has: its name is known if it was before, or if there is no
 * other kernel in the image. False when nothing can follow in the list. */
bool ct_names_listed(uint64_t handle, uint64_t owner, const struct ct_producer *producer);
/* A module or library was loaded by a call that began at `began`: what goes with an earlier one of that handle
 * is forgotten. `name` is that of its one kernel, `name_bytes` long, NULL where it is not known. */
void ct_names_load(uint64_t handle, uint64_t began, const char *name, size_t name_bytes,
                   const struct ct_producer *producer);
/* `owner` was unloaded by a call that began at `began` (ct_now()): what goes with it is forgotten. */
void ct_names_unload(uint64_t owner, uint64_t began);
/* A context was destroyed, and with it nobody knows whose functions. */
void ct_names_doubt(void);
/* Number of a text that the application means to name again, kept for good; 0 without memory. What exceeds
 * the limits of ct_texts_keep() gets the number of a text that says so. */
uint32_t ct_names_string(const char *text);
/* The text of such a number, and its length; NULL when there is no such, as in the child of a fork that came
 * while names were being written. */
const char *ct_names_text(uint64_t number, size_t *bytes);

/* ---- range.c ---- */

/* Forgets the ranges that the ending thread left open. */
void ct_range_thread_exit(void);

#pragma GCC visibility pop

#endif
