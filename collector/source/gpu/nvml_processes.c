#include "nvml_library.h"
#include "room.h"

/* Returns the list's entry for the process, which is added if necessary, or NULL if out of memory. */
static struct ct_gpu_process_facts *entry_of(struct ct_nvml *nvml, unsigned pid)
{
    for (size_t i = 0; i < nvml->list_count; i++) {
        if (nvml->list[i].pid == pid)
            return &nvml->list[i];
    }
    if (!ct_make_room(&nvml->list, nvml->list_count, &nvml->list_room, sizeof(*nvml->list)))
        return NULL;
    nvml->list[nvml->list_count] =
        (struct ct_gpu_process_facts){ 0, pid, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN };
    return &nvml->list[nvml->list_count++];
}

/* Makes the buffer large enough for `count` processes, whichever of the library's structs describes them.
 * Returns false if out of memory. */
static bool make_buffer(struct ct_nvml *nvml, unsigned count)
{
    return count <= nvml->buffer_room || ct_make_room_for(&nvml->buffer, 0, count, &nvml->buffer_room,
                                                          sizeof(struct nvml_process_utilization));
}

/* Adds the memory of each process. A process may be listed several times. */
static int list_memory(struct ct_nvml *nvml, const struct ct_gpu *gpu)
{
    unsigned count = 64;
    int error = NVML_INSUFFICIENT_SIZE;
    for (int tries = 0; tries < 3 && error == NVML_INSUFFICIENT_SIZE && make_buffer(nvml, count); tries++) {
        count = (unsigned)nvml->buffer_room;
        error = CT_NVML_CALL(nvml, processes, gpu->device, &count, nvml->buffer);
    }
    const struct nvml_process *process = nvml->buffer;
    for (unsigned i = 0; !error && i < count && i < nvml->buffer_room; i++) {
        struct ct_gpu_process_facts *entry = entry_of(nvml, process[i].pid);
        if (entry && process[i].memory_bytes <= CT_GPU_VALUE_MAX)
            entry->memory_bytes = (int64_t)process[i].memory_bytes +
                                  (entry->memory_bytes == CT_GPU_UNKNOWN ? 0 : entry->memory_bytes);
    }
    return error;
}

/* Adds the newest utilisation of each process. The library lists only processes that were busy since the last
 * query, and reports an error if there are none. */
static int list_utilization(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    unsigned count = 64;
    int error = NVML_INSUFFICIENT_SIZE;
    for (int tries = 0; tries < 3 && error == NVML_INSUFFICIENT_SIZE && make_buffer(nvml, count); tries++) {
        count = (unsigned)nvml->buffer_room;
        error = CT_NVML_CALL(nvml, process_utilization, gpu->device, nvml->buffer, &count,
                             gpu->processes_until_us);
    }
    const struct nvml_process_utilization *process = nvml->buffer;
    uint64_t until_us = gpu->processes_until_us;
    for (unsigned i = 0; !error && i < count && i < nvml->buffer_room; i++) {
        struct ct_gpu_process_facts *entry =
            process[i].time_us > gpu->processes_until_us ? entry_of(nvml, process[i].pid) : NULL;
        if (!entry)
            continue;
        entry->busy_percent = process[i].sm;
        entry->memory_busy_percent = process[i].memory;
        until_us = process[i].time_us > until_us ? process[i].time_us : until_us;
    }
    gpu->processes_until_us = until_us;
    return error == NVML_NOT_FOUND ? 0 : error;
}

size_t ct_nvml_processes(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct ct_gpu_process_facts **list)
{
    nvml->list_count = 0;
    *list = NULL;
    if (gpu->has_instances)
        return 0;
    int error = ct_nvml_is_missing(gpu, CT_NVML_PROCESSES) ? 0 : list_memory(nvml, gpu);
    if (error)
        ct_nvml_note_error(nvml, gpu, CT_NVML_PROCESSES, "memory of processes", error);
    /* According to nvml.h, the utilisation of processes is not available for instances. */
    error = gpu->whole || ct_nvml_is_missing(gpu, CT_NVML_PROCESS_TIMES) ? 0 : list_utilization(nvml, gpu);
    if (error)
        ct_nvml_note_error(nvml, gpu, CT_NVML_PROCESS_TIMES, "utilisation of processes", error);
    *list = nvml->list;
    return nvml->list_count;
}
