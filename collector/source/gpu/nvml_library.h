/* The parts of NVML's interface that the daemon uses, and the state that the files of this folder share. */
#ifndef CT_NVML_LIBRARY_H
#define CT_NVML_LIBRARY_H

#include "nvml.h"

#include <assert.h>

/* Parts of NVML's interface, from nvml.h of CUDA 13.3. The sizes of the structs were checked on an H100 with
 * driver 580.159.04. */
enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_FUNCTION_NOT_FOUND = 13,
    NVML_GPU_NOT_FOUND = 28,
};
enum {
    NVML_TEMPERATURE_GPU = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2,
    NVML_PCIE_UTIL_TX_BYTES = 0,
    NVML_PCIE_UTIL_RX_BYTES = 1,
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0,
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1,
    NVML_VOLATILE_ECC = 0,
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138, /* in KiB */
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 139,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

struct nvml_pci {
    char legacy_address[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};
struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_field {
    unsigned field, scope; /* scope: the link; UINT_MAX: all links */
    long long time_us, latency_us;
    unsigned type;
    int result;
    unsigned long long value;
};
static_assert(sizeof(struct nvml_field) == 40, "nvml_field");
struct nvml_process {
    unsigned pid;
    unsigned long long memory_bytes; /* ULLONG_MAX: unknown */
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(struct nvml_process) == 24, "nvml_process");
struct nvml_process_utilization {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder; /* percent */
};
static_assert(sizeof(struct nvml_process_utilization) == 32, "nvml_process_utilization");

struct ct_nvml {
    void *library;
    const char *(*error_text)(int result);
#define FUNCTION(member, parameters, ...) int(*member) parameters;
#include "nvml_functions.def"
#undef FUNCTION
    struct ct_gpu_process_facts *list;
    size_t list_count, list_room;
    void *buffer;
    size_t buffer_room; /* in processes */
};

/* Calls a function of the library, which may not have it. */
#define CT_NVML_CALL(nvml, member, ...)                                                                      \
    ((nvml)->member ? (nvml)->member(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* The library's text for a result. Never NULL. */
const char *ct_nvml_text(const struct ct_nvml *nvml, int result);
/* The bits of `logged` and `missing` in struct ct_gpu. The last one is the first bit of nvml_readings.c. */
enum { CT_NVML_PROCESSES, CT_NVML_PROCESS_TIMES, CT_NVML_READINGS };

static inline bool ct_nvml_is_missing(const struct ct_gpu *gpu, int bit)
{
    return gpu->missing >> bit & 1;
}

/* Logs the first failure of each reading. A GPU that does not support a reading is not queried for it
 * again. */
void ct_nvml_note_error(const struct ct_nvml *nvml, struct ct_gpu *gpu, int bit, const char *what, int error);

#endif
