/* Examines a process to visit, from outside. Finds out whether a visit is possible, and the addresses that it
 * needs. Only reads the process, and stops no thread. */
#ifndef CT_ATTACH_TARGET_H
#define CT_ATTACH_TARGET_H

#include "driver_slots.h"

#include "session_names.h"

/* Part of the path of each driver. */
#define CT_DRIVER_IN_PATH "/libcuda.so."

enum ct_target_kind {
    CT_TARGET_FINE,
    CT_TARGET_GONE,      /* no process has the pid, or the process has ended */
    CT_TARGET_NO_DRIVER, /* it has not loaded the driver yet */
    CT_TARGET_HOOKED,    /* it was started with the hook */
    CT_TARGET_REFUSED,
};

struct ct_target {
    pid_t pid;
    int32_t inner_pid; /* the pid in the process's own namespace */
    uint32_t uid;
    uint64_t start_ticks;
    char name[64]; /* the program's name, printable */
    struct ct_memory memory;
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno; /* addresses of functions in its C library */
    struct ct_driver_slots slots;
    bool may_have_no_slots; /* a driver without slots is accepted; they are made (made_slots.h) */
    char driver[256];       /* path of the driver's file in the process */
    enum ct_target_kind kind;
    char why[640]; /* set unless it is CT_TARGET_FINE: a clause with the process as its subject */
};

/* Examines the process, except for the driver's slots. */
void ct_target_open(struct ct_target *target, pid_t pid);
/* Finds the driver's slots in an examined process. Waits a moment for them, since the loader may not have
 * filled them yet. */
void ct_target_find_slots(struct ct_target *target);
void ct_target_close(struct ct_target *target);

/* Refuses the process if `shm_dir` is a different folder for it than for us, since our daemon would not see
 * its segment. */
void ct_target_check_folder(struct ct_target *target, const char *shm_dir);

#endif
