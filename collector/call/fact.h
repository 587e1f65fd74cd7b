/* The facts that a source reports in addition to calls. The layout of the structs that contain only numbers
 * is part of the recording format. */
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

struct ct_recording_facts {
    int64_t segment_id;
};

struct ct_end_facts {
    int64_t process_id;
    uint64_t ended_ns;
};

struct ct_meta_facts {
    int64_t value;
};

/* GPU facts identify the GPU by its UUID. Each value is between 0 and CT_GPU_VALUE_MAX, or CT_GPU_UNKNOWN.
 * The tables gpu, gpu_sample and gpu_process (schema/tables.sql) explain the values. */
#define CT_GPU_UNKNOWN   INT64_MIN
#define CT_GPU_VALUE_MAX (INT64_C(1) << 60)
enum ct_gpu_value {
    CT_GPU_BUSY_PERCENT,
    CT_GPU_MEMORY_BUSY_PERCENT,
    CT_GPU_MEMORY_USED_BYTES,
    CT_GPU_POWER_MW,
    CT_GPU_TEMPERATURE_C,
    CT_GPU_SM_MHZ,
    CT_GPU_MEMORY_MHZ,
    CT_GPU_CLOCK_REASONS,
    CT_GPU_PCIE_SENT_KB_PER_S,
    CT_GPU_PCIE_RECEIVED_KB_PER_S,
    CT_GPU_NVLINK_SENT_KB_PER_S,
    CT_GPU_NVLINK_RECEIVED_KB_PER_S,
    CT_GPU_ECC_CORRECTED,
    CT_GPU_ECC_UNCORRECTED,
    CT_GPU_SM_BUSY_PPM,
    CT_GPU_SM_OCCUPANCY_PPM,
    CT_GPU_TENSOR_PPM,
    CT_GPU_FP64_PPM,
    CT_GPU_FP32_PPM,
    CT_GPU_FP16_PPM,
    CT_GPU_INTEGER_PPM,
    CT_GPU_DRAM_PPM,
    CT_GPU_VALUES
};

/* An instance of a divided GPU has its own UUID, but the same place as the whole GPU. */
struct ct_gpu_facts {
    int64_t place; /* the index of the GPU in the driver's library */
    int64_t memory_bytes, is_mig;
    int64_t gpu_instance, compute_instance; /* CT_GPU_UNKNOWN: the whole GPU */
};

struct ct_gpu_sample_facts {
    int64_t time_ns;
    int64_t value[CT_GPU_VALUES];
};

struct ct_gpu_process_facts {
    int64_t time_ns; /* of a sample of the GPU */
    int64_t pid, memory_bytes, busy_percent, memory_busy_percent;
};

/* A process without a segment. `calls` is the number of calls that it has reported. */
struct ct_unrecorded_facts {
    int64_t pid, uid, calls, first_ns, last_ns; /* the times of its first and last report */
};

enum ct_fact_type {
#define FACT(type, facts, texts) CT_FACT_##type,
#include "fact.def"
#undef FACT
};

/* The state of a process that keeps running, but whose calls are no longer collected after `ended_ns`. The
 * other states are exited, killed and detached. */
#define CT_STATE_LEFT "left"

enum {
    CT_FACT_TEXTS = 5,      /* maximum number of texts */
    CT_GPU_TEXT_BYTES = 96, /* maximum size of a text about a GPU, with its NUL */
};

struct ct_fact {
    enum ct_fact_type type;
    struct ct_caller *caller; /* the thread that a lane or an open call belongs to, or NULL for other facts */
    const char *text[CT_FACT_TEXTS]; /* as listed in fact.def */
    union {
        struct ct_lane_facts lane;
        struct ct_loss_facts loss;
        struct ct_unsent_facts unsent;
        struct ct_open_facts open;
        struct ct_recording_facts recording;
        struct ct_end_facts end;
        struct ct_meta_facts meta;
        struct ct_gpu_facts gpu;
        struct ct_gpu_sample_facts gpu_sample;
        struct ct_gpu_process_facts gpu_process;
        struct ct_unrecorded_facts unrecorded;
    };
};

#endif
