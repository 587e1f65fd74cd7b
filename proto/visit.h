/* Visits to running processes. `cudatrace attach` loads the hook into a process, and `cudatrace detach` makes
 * the hook leave.
 *
 * To attach, the command stops one thread briefly and makes it install thunks in the driver's table of entry
 * points. The next driver call, by any thread, removes the thunks, loads the hook from an unnamed file, and
 * calls cudatrace_visit() with CT_VISIT_RECORD. Since the program itself has called a library function at
 * that point, it is safe to load another library. To detach, the command stops a thread at an arbitrary
 * instruction, and makes it call cudatrace_visit() with CT_VISIT_LEAVE, on a stack mapped by the command.
 *
 * The command also maps memory for the struct ct_visit into the process. This memory stays mapped until the
 * process exits. */
#ifndef CT_PROTO_VISIT_H
#define CT_PROTO_VISIT_H

#include "session_names.h"

#include <assert.h>
#include <stdint.h>

enum { CT_VISIT_VERSION = 5 };

/* Only a visit loads the hook from a path with this prefix. In that case, the hook's constructors do not
 * touch the driver. */
#define CT_VISIT_PATH "/proc/thread-self/fd/"

enum ct_visit_request {
    CT_VISIT_RECORD = 1,         /* intercept the driver's functions, and record for the session */
    CT_VISIT_LEAVE = 2,          /* restore everything, without waiting for locks; safe in a signal handler */
    CT_VISIT_LEAVE_CONFINED = 3, /* restore the driver's slots, and make no system call from now on, because
                                  * the program has a filter that the hook may not know */
};

enum ct_visit_answer {
    CT_VISIT_OPEN = 0, /* not answered yet */
    CT_VISIT_DONE = 1,
    CT_VISIT_BUSY = 2,      /* for CT_VISIT_LEAVE: a thread is exchanging tables; try again */
    CT_VISIT_STRANGER = 3,  /* the visit has a different version */
    CT_VISIT_NO_DAEMON = 4, /* no daemon, or no memory for the process's segment */
    CT_VISIT_NO_SLOTS = 5,  /* the driver was not found, or none of its functions has a known shape */
    CT_VISIT_SILENCED = 6,  /* the program has installed a system call filter */
    CT_VISIT_THERE = 7,     /* the process is already recording for a session */
    CT_VISIT_NO_CLOCK = 8,  /* the visited thread may not read a clock */
    CT_VISIT_MORE = 9, /* for CT_VISIT_LEAVE: the hook has not left all threads' lanes yet; visit again */
};

/* A slot created by the command for a driver function that has none. */
struct ct_visit_slot {
    uint64_t export; /* the function's address, as exported by the driver */
    uint64_t slot;   /* address of the pointer that calls to the function go through */
};
static_assert(sizeof(struct ct_visit_slot) == 16, "ct_visit_slot");

struct ct_visit {
    uint32_t version; /* CT_VISIT_VERSION */
    uint32_t bytes;   /* sizeof(struct ct_visit) */
    uint32_t request; /* enum ct_visit_request */
    uint32_t slot_count;
    uint64_t slots; /* address of struct ct_visit_slot[slot_count] */
    /* The next two fields are 0 before a visit. The hook fills them in. */
    uint64_t producer; /* offset of a thread-local pointer to the address of the thread's struct ct_lane */
    uint64_t exec_ns;  /* as in the hook's segments */
    /* The values of the corresponding environment variables for this process, or "" if unset. */
    char session[64];
    char shm_dir[CT_NAME_BYTES];
    char layers[128];
    char calls[1024];
    char sample[32];
    /* The path of libcudatrace-gpu.so, or "" if it is too long. The hook's own file is unnamed. */
    char gpu_library[512];
};
static_assert(sizeof(struct ct_visit) == 40 + 64 + CT_NAME_BYTES + 128 + 1024 + 32 + 512, "ct_visit");
static_assert(CT_SESSION_MAX < 64, "a session's name");

/* The hook's exported function for visits. Returns enum ct_visit_answer. */
#define CT_VISIT_FUNCTION "cudatrace_visit"
typedef uint32_t ct_visit_function(struct ct_visit *visit);

#endif
