/* The records of calls and the state of threads, as shared by the BPF programs and the probe. */
#ifndef CT_PROBE_CALLS_H
#define CT_PROBE_CALLS_H

#ifdef __bpf__
typedef __u64 uint64_t;
typedef __u32 uint32_t;
typedef __u16 uint16_t;
typedef __u8 uint8_t;
typedef __s32 int32_t;
#else
#include <stdint.h>
#endif

enum {
    CT_PROBE_FUNCTIONS = 2048, /* probed functions of all libraries; their numbers are below this one */
    CT_PROBE_PROCESSES = 1024, /* probed processes; the numbers of their channels are below this one */
    CT_PROBE_THREADS = 1024,   /* threads of a process whose open calls are visible */
    CT_PROBE_OPEN = 16,        /* open calls of a thread; further ones are not recorded */
    CT_PROBE_COMM = 16,        /* bytes of a thread's name, with its NUL */
    CT_PROBE_WATCHED = 8,      /* processes of --pid that BPF programs compare without a lookup */
    CT_PROBE_FENCES = 16384,   /* fences of recorded processes that have not been signaled */
    CT_PROBE_RING_BYTES = 1 << 20,
    CT_PROBE_WAKE_BYTES = CT_PROBE_RING_BYTES / 8, /* the kernel wakes the writer when this much is unread */
};

enum ct_probe_kind {
    CT_PROBE_CALL = 0,   /* a call has returned */
    CT_PROBE_THREAD = 1, /* a thread is about to make its first call; `name` */
    CT_PROBE_EXIT = 2,   /* a thread has ended, and no call of it follows unless it is announced again */
    /* The hook may have recorded the thread's next call in the lane of `lane_tid`. If so, that lane's
     * position is now greater than `position`. */
    CT_PROBE_DOUBT = 3,
    CT_PROBE_HOOKED = 4, /* a call of a hook (hook_rule.h) */
    CT_PROBE_IOCTL = 5,  /* a request to the kernel driver has returned */
};

/* Function numbers for kernel events and for requests to the kernel driver. No driver function uses these
 * numbers. */
enum ct_probe_event {
    CT_EVENT_BLOCKED = 0,   /* the thread slept */
    CT_EVENT_PREEMPTED = 1, /* it was runnable, but another thread had its processor */
    CT_EVENT_PAGE_FAULT = 2,
    /* Requests, in the order of enum ct_ioctl_space. The code in a request's record identifies the
     * request. */
    CT_EVENT_ESCAPE = 3,
    CT_EVENT_CONTROL = 4,
    CT_EVENT_CLASS = 5,
    CT_EVENT_UVM = 6,
    CT_EVENT_MODESET = 7,
    CT_EVENT_FENCE_INIT = 8, /* the thread made a fence */
    CT_EVENT_FENCE_EMIT = 9, /* the driver sent the work of a fence */
    CT_EVENT_FENCE_WAIT = 10,
    CT_EVENT_FENCE_SIGNALED = 11, /* the fence of an earlier event, in any thread or interrupt */
    /* Other system calls on the kernel driver's device files. */
    CT_EVENT_OPENAT = 12,
    CT_EVENT_MMAP = 13,
    CT_EVENT_CLOSE = 14,
    CT_EVENT_COUNT
};

/* A record in a channel's ring. Times are nanoseconds of CLOCK_MONOTONIC. The BPF program reserves a record
 * before it reads the clock for `end`. Therefore, if a reader notes where the ring ends now, every record
 * added beyond that position has an `end` later than now. */
struct ct_probe_record {
    uint32_t tid;      /* in the initial pid namespace */
    uint16_t function; /* of CT_PROBE_THREAD: the thread's index in the map of threads, CT_PROBE_THREADS for
                          none */
    uint8_t depth;     /* CT_PROBE_OPEN - 1 at most */
    uint8_t kind;      /* enum ct_probe_kind */
    int32_t status;
    uint32_t read; /* of a call with values: one bit for each read of its shape that succeeded */
    union {
        struct {
            uint64_t start, end;
        };
        struct {
            uint64_t position;
            uint32_t lane_tid;
            uint32_t call_start; /* the lower half of that call's `start` */
        };
        char name[CT_PROBE_COMM];
    };
};

/* ---- arguments ---- */

enum {
    CT_PROBE_REGISTERS = 6, /* arguments in registers */
    CT_PROBE_STACK = 6,     /* arguments on the stack, as far as decoders read them */
    CT_PROBE_ARGUMENTS = CT_PROBE_REGISTERS + CT_PROBE_STACK,
    CT_PROBE_READS = 4,             /* reads of one function */
    CT_PROBE_READ_BYTES = 256,      /* bytes of one read */
    CT_PROBE_SMALL_BYTES = 128,     /* memory in a small record, whose reads begin in its first half */
    CT_PROBE_SMALL_READ_BYTES = 64, /* bytes of one read there */
    CT_PROBE_LARGE_BYTES = 512,
};

/* The part of a call's record that follows struct ct_probe_record. */
enum ct_probe_shape_kind {
    CT_SHAPE_PLAIN = 0,  /* nothing */
    CT_SHAPE_VALUES = 1, /* the arguments */
    CT_SHAPE_SMALL = 2,  /* the arguments, and CT_PROBE_SMALL_BYTES of memory that they point to */
    CT_SHAPE_LARGE = 3,  /* the arguments, and CT_PROBE_LARGE_BYTES of that memory */
};

/* Describes memory that an argument points to. The memory is read when the call returns. */
struct ct_probe_read {
    uint8_t argument; /* below CT_PROBE_ARGUMENTS */
    uint8_t is_text;  /* it ends at a NUL */
    uint16_t offset;  /* from the address in the argument */
    uint16_t bytes;   /* CT_PROBE_READ_BYTES at most */
    uint16_t at; /* the place in the record's memory: CT_PROBE_LARGE_BYTES - CT_PROBE_READ_BYTES at most */
};

/* Describes the arguments that a function's decoder reads. */
struct ct_probe_shape {
    uint8_t kind;        /* enum ct_probe_shape_kind */
    uint8_t stack_words; /* CT_PROBE_STACK at most */
    uint8_t reads;       /* CT_PROBE_READS at most */
    uint8_t is_urgent;   /* its decoder reads much memory, or a file: the writer is woken at once */
    uint8_t reserved[4];
    struct ct_probe_read read[CT_PROBE_READS];
};

/* The record of a call with arguments. Only the records of the shapes SMALL and LARGE have `memory`. */
struct ct_probe_values {
    struct ct_probe_record record;
    uint64_t argument[CT_PROBE_ARGUMENTS];
    uint8_t memory[];
};
enum {
    CT_PROBE_VALUES_BYTES = sizeof(struct ct_probe_values),
    CT_PROBE_RECORD_BYTES_MAX = CT_PROBE_VALUES_BYTES + CT_PROBE_LARGE_BYTES,
};

/* ---- requests to the kernel driver ---- */

/* The record of a request, whose function is in the range from CT_EVENT_ESCAPE to CT_EVENT_MODESET. */
struct ct_probe_ioctl {
    struct ct_probe_record record;
    uint32_t code;    /* the request's number in its space (ioctl_layout.h) */
    uint32_t request; /* as received by ioctl() */
    uint64_t bytes;   /* struct ct_ioctl; 0 if unknown */
};

/* The driver's device numbers in the kernel's internal form, with a minor number of 20 bits. Unknown device
 * numbers are 0. */
enum {
    CT_DEVICE_MINOR_BITS = 20,
    CT_DEVICE_FOLDER_BYTES = 112, /* of the folder's path, with the slash at its end */
    CT_DEVICE_NAME_BYTES = 24,    /* of a device file's name, with its NUL; longer names are cut off */
};
struct ct_probe_devices {
    uint32_t control; /* nvidiactl; nvidiaN has the same major number */
    uint32_t uvm, uvm_tools, modeset;
    uint32_t folder_bytes; /* 0: opens that fail are not recorded */
    char folder[CT_DEVICE_FOLDER_BYTES];
};

/* ---- state ---- */

/* An entry in the channel's map of threads, which contains a thread's open calls. The thread itself writes
 * it. */
struct ct_probe_open {
    uint64_t start;
    uint32_t function;
    uint32_t code; /* of a request to the kernel driver; undefined for other calls */
};
struct ct_probe_thread {
    uint32_t tid; /* 0: the entry is free */
    uint32_t depth;
    struct ct_probe_open open[CT_PROBE_OPEN];
};

/* An entry in the channel's map of lost calls. It counts the calls to a function that were lost or
 * deliberately skipped, and that the writer has not reported yet. */
struct ct_probe_lost {
    uint64_t calls;
    uint64_t ns; /* the sum of their durations */
    uint64_t skipped, skipped_ns;
};

/* How a channel's process has ended: its wait status with this bit set, or 0 if the process is still
 * running. */
enum { CT_PROBE_ENDED = 1 << 30, CT_PROBE_EXECUTED = 1 << 29 /* it has executed another program */ };

/* A process whose hook the probe accompanies. */
struct ct_probe_companion {
    uint64_t producer; /* of struct ct_segment, sign-extended */
    uint32_t channel;
    uint32_t reserved;
};

/* How many channels the processes of a user hold. Users whose ids differ by a multiple of CT_PROBE_USERS have
 * an entry in common. */
enum { CT_PROBE_USERS = 256 };
struct ct_probe_user {
    uint32_t held;
    uint32_t taken; /* those that the BPF programs have assigned since the probe last made spare channels */
};
/* A user's processes may hold this many times as many channels as are left for other users, and as many of
 * those that the BPF programs may assign. */
enum { CT_PROBE_SHARE = 3 };

enum { CT_NOTICES_BYTES = 1 << 20, CT_NOTICE_ARGUMENTS_BYTES = 256 };

enum ct_probe_notice_kind {
    CT_PROBE_FOUND = 0, /* an unknown process makes its first call, and has taken a channel */
    CT_PROBE_FULL = 1,  /* the same, but it has no channel; `cause` */
    CT_PROBE_EXEC = 2,  /* a process with a channel has executed another program, which has no channel */
    CT_PROBE_HOOK = 3,  /* an unknown process makes its first call, which its hook records */
};
enum ct_probe_full_cause {
    CT_FULL_NONE_FREE = 0,
    CT_FULL_SHARE = 1,  /* its user has a share of the channels already */
    CT_FULL_MEMORY = 2, /* the kernel has no memory for the thread's state, or for a notice */
};
/* A message from the BPF programs to the probe. */
struct ct_probe_notice {
    uint32_t kind; /* enum ct_probe_notice_kind */
    uint32_t tgid; /* in the initial pid namespace */
    uint32_t channel;
    uint32_t uid, gid;   /* of the calling thread: the process may have ended when the notice is read */
    uint32_t cause;      /* CT_PROBE_FULL: enum ct_probe_full_cause */
    uint64_t ns;         /* now, of CLOCK_MONOTONIC */
    uint64_t missed_ns;  /* CT_PROBE_FOUND: earlier calls were not recorded from this moment on; 0: there were
                            none */
    uint64_t started_ns; /* when the process started, of CLOCK_BOOTTIME */
    uint64_t executed_ns;     /* when it executed its program; 0 if it had no channel then */
    uint32_t arguments_bytes; /* of the whole command line; 0 if it cannot be read */
    uint32_t reserved;
    char name[CT_PROBE_COMM];
    char arguments[CT_NOTICE_ARGUMENTS_BYTES]; /* the beginning of the command line; each ends with a NUL */
};

#endif
