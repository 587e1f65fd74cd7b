/*
 * sim_entry.h: the gate that every exported function passes. The functions themselves are written by
 * sim_entries.py.
 */
#ifndef SIMCUDA_ENTRY_H
#define SIMCUDA_ENTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum sim_row {
#define ROW(name, ...) ROW_##name,
#include "driver_api.def"
#undef ROW
    ROW_COUNT
};

struct sim_function {
    const char *name;
    void *address; /* the export */
    void *inner;   /* the function behind it */
};

/* In row order; filled by sim_entries.py. */
extern const struct sim_function sim_functions[ROW_COUNT];
const struct sim_function *entry_function(const char *name); /* NULL: no such export */

/* Why a call cannot go straight to its model. Zero in a process that has called cuInit and sets no variable.
 */
enum {
    WATCH_NEW = 1,           /* the environment has not been read in this process */
    WATCH_UNINITIALISED = 2, /* cuInit has not succeeded */
    WATCH_FORKED = 4,        /* a child of a process that had: the real driver refuses */
    WATCH_COUNTS = 8,
    WATCH_VERIFY = 16,
    WATCH_LATENCY = 32,
    WATCH_BLOCK = 64,
};
extern atomic_uint sim_watch;

struct entry {
    uint32_t row;
    int32_t status;
    int64_t entered_ns; /* set under WATCH_LATENCY */
};

enum entry_path {
    ENTRY_DECIDED, /* status holds the result */
    ENTRY_RUN,     /* run the model */
    ENTRY_VERIFY,  /* run verify_*() instead */
};

/* For a call whose stack is not aligned, before anything else, since compiled code may rely on the alignment:
 * under WATCH_VERIFY it is noted, and the result to return is given, otherwise 0. */
int32_t entry_misaligned(uint32_t row);

enum entry_path entry_begin(struct entry *entry);
int32_t entry_end(struct entry *entry);

/* Set while a function that ends in _ptds or _ptsz runs its base's model: NULL is the thread's own stream. */
extern _Thread_local bool sim_null_stream_is_thread;

/* sim_counts.c */
void counts_open(const char *folder);
void counts_entered(uint32_t row);
void counts_returned(uint32_t row);

/* sim_verify.c */
struct verify {
    uint32_t row;
    uint64_t sum;
};
void verify_answer(int32_t status); /* what all functions return instead of their checksum */
void verify_start(struct verify *verify, uint32_t row);
void verify_word(struct verify *verify, uint64_t word);
void verify_words(struct verify *verify, const void *words, uint32_t count);
void verify_float(struct verify *verify, float value);
int32_t verify_finish(struct verify *verify);
int32_t verify_misaligned(uint32_t row);

#define EXPORTED __attribute__((visibility("default")))

/* An entry point is the export itself, or stands behind one of the table's (front_x86_64.S). */
#ifdef SIMCUDA_FRONT
#define ENTRY
#define ENTRY_NAME(name) front_##name
#else
#define ENTRY            EXPORTED
#define ENTRY_NAME(name) name
#endif

#ifdef __x86_64__
#define ALIGNS_ITS_STACK __attribute__((force_align_arg_pointer))
#else
#define ALIGNS_ITS_STACK /* aarch64 faults by itself */
#endif

/* The caller's stack pointer was 16-byte aligned at the call exactly if the frame address is. The empty
 * instruction keeps the compiler from answering by what the ABI promises. */
#define ENTRY_FRAME(frame)                                                                                   \
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);                                                 \
    __asm__("" : "+r"(frame))

#endif
