/* A visit: `cudatrace attach` brings the hook into a process that runs, and `cudatrace detach` takes it out.
 *
 * To attach, the command stops one thread for a moment and has it put thunks into the driver's table of entry
 * points. The next call of the driver, by any thread, takes the thunks out again, loads the hook from a file
 * without a name, and calls cudatrace_visit() with CT_VISIT_RECORD. The program itself has called a library's
 * function there, so it is safe to load another library. To detach, the command stops a thread wherever it is
 * and has it call cudatrace_visit() with CT_VISIT_LEAVE, on a stack that the command has mapped.
 *
 * The struct is in memory that the command has mapped into the process. It stays there until the process
 * ends. */
#ifndef CT_PROTO_VISIT_H
#define CT_PROTO_VISIT_H

#include "session_names.h"

#include <assert.h>
#include <stdint.h>

enum { CT_VISIT_VERSION = 2 };

/* A visit loads the hook by a path that begins so, which nothing else does. The hook's constructors leave the
 * driver alone then. */
#define CT_VISIT_PATH "/proc/self/fd/"

enum ct_visit_wish {
    CT_VISIT_RECORD = 1, /* take the driver's functions, and record for the session */
    CT_VISIT_LEAVE = 2,  /* put everything back: waits for no lock, and is safe in a signal handler */
};

enum ct_visit_answer {
    CT_VISIT_OPEN = 0, /* not answered yet */
    CT_VISIT_DONE = 1,
    CT_VISIT_BUSY = 2,      /* to CT_VISIT_LEAVE: a thread is exchanging tables; try again */
    CT_VISIT_STRANGER = 3,  /* the visit is of another version */
    CT_VISIT_NO_DAEMON = 4, /* or there is no memory for the process's segment */
    CT_VISIT_NO_SLOTS = 5,  /* the driver was not found, or no function of it has a known shape */
    CT_VISIT_SILENCED = 6,  /* the program has put on a filter of system calls */
    CT_VISIT_THERE = 7,     /* the process records for a session already */
};

/* A slot that the command has made for a function of the driver without one. */
struct ct_visit_slot {
    uint64_t export; /* address of the function, as the driver exports it */
    uint64_t slot;   /* address of the pointer that its calls use */
};
static_assert(sizeof(struct ct_visit_slot) == 16, "ct_visit_slot");

struct ct_visit {
    uint32_t version; /* CT_VISIT_VERSION */
    uint32_t bytes;   /* sizeof(struct ct_visit) */
    uint32_t wish;    /* enum ct_visit_wish */
    uint32_t slot_count;
    uint64_t slots; /* address of struct ct_visit_slot[slot_count] */
    /* For this process, the values of the environment's variables of these names; "" for an unset one. */
    char session[64];
    char shm_dir[CT_NAME_BYTES];
    char layers[128];
    char calls[1024];
    char sample[32];
};
static_assert(sizeof(struct ct_visit) == 24 + 64 + CT_NAME_BYTES + 128 + 1024 + 32, "ct_visit");
static_assert(CT_SESSION_MAX < 64, "a session's name");

/* Exported by the hook. Returns enum ct_visit_answer. */
#define CT_VISIT_FUNCTION "cudatrace_visit"
typedef uint32_t ct_visit_function(const struct ct_visit *visit);

#endif
