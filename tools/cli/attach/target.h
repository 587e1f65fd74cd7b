/* A process to visit, seen from outside: whether a visit is possible, and the addresses that it needs. Reads
 * the process only, and stops no thread. */
#ifndef CT_ATTACH_TARGET_H
#define CT_ATTACH_TARGET_H

#include "driver_slots.h"

#include "session_names.h"

/* Part of the path of each driver. */
#define CT_DRIVER_IN_PATH "/libcuda.so."

enum ct_target_kind {
    CT_TARGET_FINE,
    CT_TARGET_GONE,      /* no process has the pid, or it has ended */
    CT_TARGET_NO_DRIVER, /* it makes no call of the driver, so far */
    CT_TARGET_HOOKED,    /* it was started with the hook */
    CT_TARGET_REFUSED,
};

struct ct_target {
    pid_t pid;
    int32_t inner_pid; /* in its own namespace */
    uint32_t uid;
    uint64_t start_ticks;
    char name[64]; /* printable: the program's */
    struct ct_memory memory;
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno; /* addresses of functions in its C library */
    struct ct_driver_slots slots;
    bool may_have_no_slots; /* they are made for it then (made_slots.h) */
    char driver[256];       /* path of the driver's file there */
    enum ct_target_kind kind;
    char why[640]; /* unless it is CT_TARGET_FINE: a clause with the process as its subject */
};

/* Looks at it, without the driver's slots. */
void ct_target_open(struct ct_target *target, pid_t pid);
/* Then finds the slots. Waits a moment for them, since the loader may not have filled them yet. */
void ct_target_find_slots(struct ct_target *target);
void ct_target_close(struct ct_target *target);

/* Refuses it if its folder of that name is not ours, so that our daemon would not see its segment. */
void ct_target_check_folder(struct ct_target *target, const char *shm_dir);

#endif
