/* objects.h: functions shared by the objects program's files, which make calls with recognizable arguments
 * and print the expected trace. */
#ifndef OBJECTS_H
#define OBJECTS_H

#include "workload.h"

/* Handles and addresses. The first versions of functions accept only addresses that fit in 32 bits. */
#define CONTEXT  UINT64_C(0x7f0100000010)
#define STREAM   UINT64_C(0x7f0200000020)
#define OTHER    UINT64_C(0x7f0200000120)
#define EVENT    UINT64_C(0x7f0300000030)
#define EVENT_2  UINT64_C(0x7f0300000130)
#define ADDRESS  UINT64_C(0x7f0400000040)
#define ADDRESS1 UINT64_C(0xf4000040) /* 32 bits */
#define MEMORY   UINT64_C(0x7f0500000050)
#define POOL     UINT64_C(0x7f0600000060)
#define MODULE   UINT64_C(0x7f0700000070)
#define LIBRARY  UINT64_C(0x7f0800000080)
#define FUNCTION UINT64_C(0x7f0900000090)
#define ARRAY    UINT64_C(0x7f0a000000a0)
#define ARRAY_2  UINT64_C(0x7f0a000001a0)
#define TEXTURE  UINT64_C(0x7f0b000000b0)
#define SURFACE  UINT64_C(0x7f0c000000c0)
#define RESOURCE UINT64_C(0x7f0d000000d0)
#define LINKER   UINT64_C(0x7f0e000000e0)
#define CALLBACK UINT64_C(0x7f0f000000f0)
#define OBJECT   UINT64_C(0x7f1000000100)
#define GROUP    UINT64_C(0x7f1100000110)
#define SIGNAL   UINT64_C(0x7f1200000120)
#define SIZE     UINT64_C(0x123456780)

#define SIZE_UNKNOWN UINT64_MAX

/* With OBJECTS_PAUSE set, prints "pauses" and waits for a line, so that a probe can read the program's
 * memory. */
void objects_pause(void);

struct want {
    enum { ALWAYS, AFTER_SUCCESS, AFTER_FAILURE, NEVER } when;
    const char *role; /* or "bytes" */
    uint64_t value;
};

extern bool fails; /* true in "arguments" and "memory" if the driver's functions fail */
extern void *objects_driver;

/* Prints the line for a call that was made. The call's name may be followed by arguments. */
void object_said(const char *name, CUresult status, const struct want *wants, size_t count);
/* Makes a call and prints the line for it. */
void object_call(const char *name, const uint64_t *arguments, const struct want *wants, size_t count);

/* A: the arguments, with 0 for missing ones. I, O and F: a value that the trace must contain always, only
 * after success, or only after failure. */
/* clang-format off */
#define A(...)   ((const uint64_t[10]){ __VA_ARGS__ })
#define I(r, v)  { ALWAYS, #r, (v) }
#define O(r, v)  { AFTER_SUCCESS, #r, (v) }
#define F(r, v)  { AFTER_FAILURE, #r, (v) }
#define UNKNOWN(r) { NEVER, #r, 0 } /* the trace must not contain this value */
#define WANTS(...)                                                                                           \
    (const struct want[]){ __VA_ARGS__ }, sizeof((const struct want[]){ __VA_ARGS__ }) / sizeof(struct want)
#define CALL(name, arguments, ...)  object_call(#name, arguments, WANTS(__VA_ARGS__))
#define SAID(name, status, ...)     object_said(name, status, WANTS(__VA_ARGS__))
/* clang-format on */

/* Returns a 32-bit argument. The upper half of the argument's register is undefined. */
uint64_t n(int32_t number);
/* Returns a pointer to an object that the driver reads or writes, or an invalid pointer if the driver's
 * functions fail. */
uint64_t to(const void *object);
/* Returns a pointer to a handle, or an invalid pointer if the driver's functions fail. Each call has a
 * separate copy of the handle. */
uint64_t out(uint64_t handle);
/* Returns a CUmemLocation, which is passed by value. */
uint64_t location(uint32_t type, int32_t id);

/* Adds a row that `allocations` must contain, in the order of allocation. */
void held(const char *kind, uint64_t address, uint64_t bytes, uint64_t pool, bool freed);

void make_arguments(void);
void make_memory(void);

#endif
