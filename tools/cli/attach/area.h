/* The memory area that a visit maps into the process for its code, data and stack. The area is mapped once,
 * from a memfd, whose name is shown in /proc/PID/maps. The mapping is private, so that a child of fork() has
 * its own copy. The area is never unmapped, because a thread may be executing its code. */
#ifndef CT_ATTACH_AREA_H
#define CT_ATTACH_AREA_H

#include "area_layout.h"
#include "stop.h"

#include "visit.h"

#include <sys/stat.h>

#define CT_AREA_NAME "cudatrace-visit"

struct ct_area_pair {
    uint64_t slot, function, thunk;
};

struct ct_area_data {
    uint64_t magic; /* CT_AREA_MAGIC */
    uint32_t state;
    uint32_t answer; /* the hook's answer to CT_VISIT_RECORD: enum ct_visit_answer, or CT_AREA_NOT_LOADED */
    int32_t pid;     /* the process's pid in its own PID namespace */
    int32_t file;    /* the library's file descriptor in the process; -1: none */
    uint32_t pair_count;
    uint32_t left; /* the hook's answer to CT_VISIT_LEAVE: enum ct_visit_answer */
    uint64_t file_inode, file_device;
    uint64_t hook; /* address of cudatrace_visit(); 0 if the library is not loaded */
    uint64_t hook_offset;
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno, find_cancel_type; /* addresses in the C
                                                                                    * library */
    uint64_t find_atfork;
    uint64_t kept_out, signals; /* the signals to block during the visit, and the mask before it */
    uint64_t asked_stack;       /* the stack pointer of the thread that asks for a grant; 0: none has asked */
    uint64_t asked_thread;      /* its thread pointer */
    int32_t cancel_before;
    uint32_t ran;        /* 1 once the stopped thread has finished its routine */
    uint32_t grant;      /* CT_AREA_GRANT_… */
    uint32_t forks_wait; /* 1: fork() waits until no thread is loading the hook. Set once in a process */
    char path[96];
    char why[CT_DATA_WHY_BYTES];
    struct ct_visit visit;
    uint64_t made_list; /* address of the slots made by a visit (made_slots.h), kept for later visits; 0:
                         * none */
    uint32_t made_count, made_in; /* number of made slots; 1 if the driver may contain jumps to them */
};
#define CT_AREA_MAGIC UINT64_C(0x3430746973697643)

struct ct_area {
    const struct ct_memory *memory;
    uint64_t address; /* 0: none */
    struct ct_area_data data;
};

/* Finds the area that an earlier visit by the same build left in the process. If there is no such area, the
 * address is 0. */
void ct_area_find(struct ct_area *area, const struct ct_memory *memory);
/* If there is no area yet, makes a stopped thread map one. Returns 0 or -errno. On error, no area is left
 * behind. */
int ct_area_make(struct ct_area *area, struct ct_stop *stop);
/* Returns whether a visit has made the process record its calls. */
static inline bool ct_area_records(const struct ct_area *area)
{
    return area->address && area->data.state == CT_AREA_DONE && area->data.answer == CT_VISIT_DONE;
}
/* Returns whether thunks are in the driver's slots, or may be, while no thread is loading the hook. A killed
 * command leaves the area in such a state, and a child inherits it. */
static inline bool ct_area_has_thunks(const struct ct_area *area)
{
    const uint32_t state = area->data.state;
    return area->address && (state == CT_AREA_ARMED || state == CT_AREA_ASKING || state == CT_AREA_LATE ||
                             state == CT_AREA_ALONE);
}
/* Write and read the area's data. Return false if the process no longer has the area's memory. */
bool ct_area_write(const struct ct_area *area);
bool ct_area_read(struct ct_area *area);
/* Sets one word of the area's data. */
bool ct_area_set(const struct ct_area *area, size_t offset, uint32_t value);
/* Writes the pairs and their count, and fills in their thunks. Pairs can only be appended, because a thread
 * may be using the existing ones. Returns -EBUSY if the area already holds different pairs. */
int ct_area_write_pairs(struct ct_area *area, struct ct_area_pair *pairs, size_t count);

/* Make a stopped thread run one of the area's routines. Return 0 or -errno. */
int ct_area_arm(const struct ct_area *area, struct ct_stop *stop);
int ct_area_disarm(const struct ct_area *area, struct ct_stop *stop);
int ct_area_leave(const struct ct_area *area, struct ct_stop *stop);

/* Makes a stopped thread create a memfd with these contents, and returns the descriptor in the other process
 * or -errno. The thread itself writes the file, because other threads can put any file into its descriptors.
 * The contents pass through `room` writable bytes at `at`. Sets *status to the file's. */
int ct_area_file(struct ct_stop *stop, const char *name, const uint8_t *bytes, size_t count, uint64_t at,
                 size_t room, struct stat *status);
/* Makes a stopped thread call fstat(). `at` is the address of a writable struct stat in the process. Returns
 * 0 or -errno. */
int ct_area_stat(struct ct_stop *stop, int fd, uint64_t at, struct stat *status);

#endif
