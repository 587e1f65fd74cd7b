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
    NVML_GPM_SUPPORT_VERSION = 1,
    NVML_GPM_METRICS_GET_VERSION = 1,
    NVML_GPM_METRIC_SM_UTIL = 2, /* percent, up to NVML_GPM_METRIC_FP16_UTIL */
    NVML_GPM_METRIC_SM_OCCUPANCY = 3,
    NVML_GPM_METRIC_INTEGER_UTIL = 4,
    NVML_GPM_METRIC_ANY_TENSOR_UTIL = 5,
    NVML_GPM_METRIC_DRAM_BW_UTIL = 10,
    NVML_GPM_METRIC_FP64_UTIL = 11,
    NVML_GPM_METRIC_FP32_UTIL = 12,
    NVML_GPM_METRIC_FP16_UTIL = 13,
    NVML_GPM_METRIC_PCIE_TX_PER_SEC = 20, /* from the GPU, in MiB/s */
    NVML_GPM_METRIC_PCIE_RX_PER_SEC = 21,
    NVML_GPM_METRIC_MAX = 333, /* of CUDA 13.3; CUDA 12.0 has 98 */
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
struct nvml_gpm_support {
    unsigned version, is_supported;
};
struct nvml_gpm_metric {
    unsigned id;
    int result;
    double value; /* valid if `result` is NVML_SUCCESS */
    char *short_name, *long_name, *unit;
};
static_assert(sizeof(struct nvml_gpm_metric) == 40, "nvml_gpm_metric");
struct nvml_gpm_metrics {
    unsigned version, count;
    void *earlier, *later; /* samples */
    struct nvml_gpm_metric metric[NVML_GPM_METRIC_MAX];
};
static_assert(offsetof(struct nvml_gpm_metrics, metric) == 24, "nvml_gpm_metrics");

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

/* Calls a function of the library. The result is NVML_FUNCTION_NOT_FOUND if the library lacks that
 * function. */
#define CT_NVML_CALL(nvml, member, ...)                                                                      \
    ((nvml)->member ? (nvml)->member(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* The bits of `logged` and `missing` in struct ct_gpu. CT_NVML_METRICS and CT_NVML_READINGS are the first
 * bits used by nvml_gpm.c and nvml_readings.c. */
enum {
    CT_NVML_PROCESSES,
    CT_NVML_PROCESS_TIMES,
    CT_NVML_INSTANCES,
    CT_NVML_METRICS,
    CT_NVML_READINGS = CT_NVML_METRICS + 10
};

static inline bool ct_nvml_is_missing(const struct ct_gpu *gpu, int bit)
{
    return gpu->missing >> bit & 1;
}

/* Logs the first failure of each reading. A GPU that does not support a reading is not queried for it
 * again. */
void ct_nvml_note_error(const struct ct_nvml *nvml, struct ct_gpu *gpu, int bit, const char *what, int error);

#endif
