/* The unique IDs of tracks in Perfetto's format: for processes, threads, counters, streams and ranges. */
#ifndef CT_PERFETTO_TRACKS_H
#define CT_PERFETTO_TRACKS_H

#include "export_work.h"

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ct_track_of_process(int64_t process_id)
{
    return (uint64_t)process_id << 33 | UINT64_C(1) << 32;
}

static inline uint64_t ct_track_of_thread(int64_t process_id, int64_t tid)
{
    return (uint64_t)process_id << 33 | (uint32_t)tid;
}

static inline uint64_t ct_track_of_memory(int64_t process_id)
{
    return ct_track_of_process(process_id) | 1;
}

/* The tracks of a GPU's counters follow the track of the GPU. */
static inline uint64_t ct_track_of_gpu(int64_t gpu_id)
{
    return UINT64_C(1) << 62 | (uint64_t)gpu_id << 8;
}

static inline uint64_t ct_track_of_work(const struct ct_work *work)
{
    return UINT64_C(1) << 61 | (uint64_t)(work->stream_number * CT_WORK_LANES + work->lane);
}

static inline uint64_t ct_track_of_range(int64_t call_id)
{
    return UINT64_C(1) << 63 | (uint64_t)call_id;
}

/* The track of an open call that began inside one that has returned. */
static inline uint64_t ct_track_of_open_call(size_t number)
{
    return UINT64_C(1) << 60 | number;
}

#endif
