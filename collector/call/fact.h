/* The facts that a source reports in addition to calls. The layout of the structs of numbers is part of the
 * format of recordings. */
#ifndef CT_FACT_H
#define CT_FACT_H

#include <stdint.h>

struct ct_caller;

/* The position up to which a thread's records have been read. */
struct ct_lane_facts {
    int64_t segment_id, thread_id; /* 0: none yet */
    uint64_t lane, position;
};

struct ct_loss_facts {
    int64_t segment_id;
    uint32_t lane, tenancy, tid, cause;
    uint64_t calls, first_ns, last_ns;
};

struct ct_unsent_facts {
    int64_t segment_id, function_id;
    uint64_t entry; /* index in the segment's directory, because two functions may have the same name */
    uint64_t lost, lost_ns, lost_bytes, skipped, skipped_ns, skipped_bytes;
};

struct ct_open_facts {
    int64_t segment_id, thread_id, function_id; /* CT_FACT_NOTHING_OPEN: only segment_id */
    uint64_t depth, start_ns;
};

struct ct_end_facts {
    int64_t process_id;
    uint64_t ended_ns;
};

struct ct_meta_facts {
    int64_t value;
};

enum ct_fact_type {
#define FACT(type, facts, texts) CT_FACT_##type,
#include "fact.def"
#undef FACT
};

/* The state of a process that keeps running but is not collected from `ended_ns` on. The other states are
 * exited, killed and detached. */
#define CT_STATE_LEFT "left"

struct ct_fact {
    enum ct_fact_type type;
    struct ct_caller *caller; /* the thread that a lane or an open call belongs to, or NULL for other facts */
    const char *text;         /* the state or the key */
    union {
        struct ct_lane_facts lane;
        struct ct_loss_facts loss;
        struct ct_unsent_facts unsent;
        struct ct_open_facts open;
        struct ct_end_facts end;
        struct ct_meta_facts meta;
    };
};

#endif
