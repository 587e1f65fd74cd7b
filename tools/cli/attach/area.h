/* The area of a visit in the process: code, its data, and a stack. It is mapped once, from a file without a
 * path, whose name is shown in /proc/PID/maps. It is a private mapping, so that a child of fork() has its
 * own. It is never unmapped, because a thread may be inside it. */
#ifndef CT_ATTACH_AREA_H
#define CT_ATTACH_AREA_H

#include "area_layout.h"
#include "stop.h"

#include "visit.h"

#define CT_AREA_NAME "cudatrace-visit"

struct ct_area_pair {
    uint64_t slot, function, thunk;
};

struct ct_area_data {
    uint64_t magic; /* CT_AREA_MAGIC */
    uint32_t state;
    uint32_t answer; /* the answer to CT_VISIT_RECORD: enum ct_visit_answer, or CT_AREA_NOT_LOADED */
    int32_t pid;     /* the process's pid in its own namespace */
    int32_t file;    /* the library's descriptor in the process; -1: none */
    uint32_t pair_count;
    uint32_t left; /* the answer to CT_VISIT_LEAVE: enum ct_visit_answer */
    uint64_t file_inode, file_device;
    uint64_t hook; /* address of cudatrace_visit(); 0: the library is not loaded */
    uint64_t hook_offset;
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno; /* addresses in the C library */
    uint64_t all_signals, signals;
    int32_t cancel_before;
    uint32_t ran; /* 1: the stopped thread has done its work */
    uint64_t reserved;
    char path[96];
    char why[CT_DATA_WHY_BYTES];
    struct ct_visit visit;
    uint64_t made_list; /* slots that a visit has made (made_slots.h), kept for later visits; 0: none */
    uint32_t made_count, made_in; /* slots; 1: jumps to them may be in the driver */
};
#define CT_AREA_MAGIC UINT64_C(0x3230746973697643)

struct ct_area {
    const struct ct_memory *memory;
    uint64_t address; /* 0: none */
    struct ct_area_data data;
};

/* Finds the area that an earlier visit by this build has left. Its address is 0 if there is none. */
void ct_area_find(struct ct_area *area, const struct ct_memory *memory);
/* Has a stopped thread map an area if there is none. Returns 0 or -errno. After an error, no area is left. */
int ct_area_make(struct ct_area *area, struct ct_stop *stop);
/* Returns whether the process records because of a visit. */
static inline bool ct_area_records(const struct ct_area *area)
{
    return area->address && area->data.state == CT_AREA_DONE && area->data.answer == CT_VISIT_DONE;
}
/* Write and read the area's data. Return false if the process no longer has that memory. */
bool ct_area_write(const struct ct_area *area);
bool ct_area_read(struct ct_area *area);
/* Sets one word of the data. */
bool ct_area_set(const struct ct_area *area, size_t offset, uint32_t value);
/* Writes the pairs and their number, and fills in their thunks. Pairs can only be appended, because a thread
 * may be using existing ones. Returns -EBUSY if the area has other pairs. */
int ct_area_write_pairs(struct ct_area *area, struct ct_area_pair *pairs, size_t count);

/* Have a stopped thread run one of the routines. Return 0 or -errno. */
int ct_area_arm(const struct ct_area *area, struct ct_stop *stop);
int ct_area_disarm(const struct ct_area *area, struct ct_stop *stop);
int ct_area_leave(const struct ct_area *area, struct ct_stop *stop);

/* Has a stopped thread make a file without a path, and opens that file in this process, too (*own). Returns
 * the descriptor in the other process, or -errno. `name_at` is the address of memory there that can hold the
 * name. */
int ct_area_file(struct ct_stop *stop, const char *name, uint64_t name_at, int *own);

#endif
