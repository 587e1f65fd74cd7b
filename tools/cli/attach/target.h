/* Examines a process before a visit. Finds out whether a visit is possible, and which addresses the visit
 * needs. Only reads the process's memory, and stops no threads. */
#ifndef CT_ATTACH_TARGET_H
#define CT_ATTACH_TARGET_H

#include "driver_slots.h"

#include "session_names.h"

/* Every path of a driver library contains this string. */
#define CT_DRIVER_IN_PATH "/libcuda.so."

enum { CT_ALLOCATOR_FUNCTIONS = 4 };

enum ct_target_kind {
    CT_TARGET_FINE,
    CT_TARGET_GONE,      /* there is no process with this pid, or the process has exited */
    CT_TARGET_NO_DRIVER, /* the process has not loaded the driver yet */
    CT_TARGET_HOOKED,    /* the process was started with the hook */
    CT_TARGET_REFUSED,
};

struct ct_target {
    pid_t pid;
    int32_t inner_pid; /* the pid in the process's own PID namespace */
    uint32_t uid;
    uint64_t start_ticks;
    char name[64]; /* the program's name, printable */
    struct ct_memory memory;
    /* Addresses of functions in the process's C library. */
    uint64_t find_dlopen, find_dlerror, find_cancel, find_errno, find_cancel_type, find_atfork;
    /* The functions of the program's allocator, as the C library itself calls them. 0: unknown. */
    uint64_t allocator[CT_ALLOCATOR_FUNCTIONS];
    uint64_t loader_state; /* address of the loader's locks and other state; 0: unknown */
    size_t loader_state_bytes;
    struct ct_driver_slots slots;
    bool may_have_no_slots; /* accept a driver without slots, because they will be made (made_slots.h) */
    char driver[256];       /* path of the driver's file as seen by the process */
    enum ct_target_kind kind;
    char why[640]; /* set unless `kind` is CT_TARGET_FINE: a clause whose subject is the process */
};

/* Examines everything in the process except the driver's slots. */
void ct_target_open(struct ct_target *target, pid_t pid);
/* Finds the driver's slots in a process that ct_target_open() has examined. Waits briefly if there are no
 * slots, because the loader may not have filled them in yet. */
void ct_target_find_slots(struct ct_target *target);
void ct_target_close(struct ct_target *target);

/* Refuses the process if it sees a different folder at `shm_dir` than we do, because our daemon would not
 * find its segment. */
void ct_target_check_folder(struct ct_target *target, const char *shm_dir);
/* Refuses the process if a thread has a seccomp filter, which may kill the process when we make it execute a
 * system call. Returns whether none has. */
bool ct_target_check_filters(struct ct_target *target);
/* Refuses the process if a thread uses Syscall User Dispatch. Returns whether none does. */
bool ct_target_check_dispatch(struct ct_target *target);
/* Returns whether either check would refuse the process. */
bool ct_target_is_confined(const struct ct_target *target);
/* Returns true if the process has exited, and false if it is executing another program. During execve(), a
 * process may briefly have no readable memory, as if it had exited. */
bool ct_target_has_ended(const struct ct_target *target);
/* Refuses the process if another process uses its memory (clone() with CLONE_VM). Waits for a child of
 * vfork(), which does so only for a moment, until Ctrl-C. Compares each process on the machine, which takes
 * up to 12 ms per thousand processes. */
void ct_target_check_sharer(struct ct_target *target);

#endif
