/* The state of threads, and the records in the rings of channels, for all BPF programs. calls.bpf.c defines
 * the maps. */
#ifndef CT_PROBE_TASKS_BPF_H
#define CT_PROBE_TASKS_BPF_H

#include "kernel.h"

#include "visits.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct frame {
    __u64 sp, start;
    __u32 function;
    __u32 links;                        /* the links whose probe added the frame */
    struct ct_probe_lane lane;          /* of a visited process: read_lane() at the entry */
    bool is_visited;                    /* the hook may record the call */
    __u64 argument[CT_PROBE_ARGUMENTS]; /* not set if the shape is plain */
};

struct task {
    __u32 channel; /* of its process; CT_PROBE_PROCESSES for none, which only a visited process may have */
    __u32 thread;  /* index in the channel's map of threads, CT_PROBE_THREADS for none */
    __u32 depth;
    __u32 tid;
    __u32 off_event; /* enum ct_probe_event: why the thread left the processor in a call */
    __u64 off_ns;    /* and when; 0 while it runs */
    bool is_visited; /* its process had a visit that was not over when the last call began */
    struct frame frame[CT_PROBE_OPEN];
};

struct task_storage {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task);
};
extern struct task_storage tasks SEC(".maps");

/* ---- channels ---- */

struct ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, CT_PROBE_RING_BYTES);
};
struct rings_of_channels {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __array(values, struct ring);
};
extern struct rings_of_channels rings SEC(".maps");

struct lost_calls {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CT_PROBE_FUNCTIONS);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct ct_probe_lost));
};
struct lost_of_channels {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, CT_PROBE_PROCESSES);
    __type(key, __u32);
    __array(values, struct lost_calls);
};
extern struct lost_of_channels lost SEC(".maps");

/* ---- records ---- */

static inline void begin_record(struct ct_probe_record *record, __u32 tid, __u32 kind)
{
    record->tid = tid;
    record->function = 0;
    record->depth = 0;
    record->kind = kind;
    record->status = 0;
    record->read = 0;
}

static inline struct ct_probe_record *reserve(void *ring, __u32 tid, __u32 kind)
{
    struct ct_probe_record *record = bpf_ringbuf_reserve(ring, sizeof(*record), 0);
    if (record)
        begin_record(record, tid, kind);
    return record;
}

/* The writer polls, so it is woken only if the ring has filled up quickly, or the record is urgent. */
static inline void submit(void *ring, void *record, bool is_urgent)
{
    const bool is_much = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > CT_PROBE_WAKE_BYTES;
    bpf_ringbuf_submit(record, is_much || is_urgent ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* Counts a call that has no record. */
static inline void lose(__u32 channel, __u32 function, __u64 ns)
{
    void *of_process = bpf_map_lookup_elem(&lost, &channel);
    struct ct_probe_lost *calls = of_process ? bpf_map_lookup_elem(of_process, &function) : 0;
    if (!calls)
        return;
    __sync_fetch_and_add(&calls->ns, ns);
    __sync_fetch_and_add(&calls->calls, 1);
}

#endif
