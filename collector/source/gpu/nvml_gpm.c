#include "nvml_gpm.h"

#include "clock.h"
#include "nvml_library.h"

/* According to nvml.h, samples must be more than 100 ms apart. At the sampler's shortest interval, only every
 * second sample of a GPU therefore contains GPM metrics. */
#define APART_NS INT64_C(150000000)

#define PPM_PER_PERCENT 1e4
#define KB_PER_MIB      1048.576

static const struct {
    const char *what;
    unsigned id;
    enum ct_gpu_value value;
    double scale;
} metrics[] = {
    { "utilisation of the SMs", NVML_GPM_METRIC_SM_UTIL, CT_GPU_SM_BUSY_PPM, PPM_PER_PERCENT },
    { "occupancy of the SMs", NVML_GPM_METRIC_SM_OCCUPANCY, CT_GPU_SM_OCCUPANCY_PPM, PPM_PER_PERCENT },
    { "utilisation of the tensor cores", NVML_GPM_METRIC_ANY_TENSOR_UTIL, CT_GPU_TENSOR_PPM,
      PPM_PER_PERCENT },
    { "utilisation by FP64", NVML_GPM_METRIC_FP64_UTIL, CT_GPU_FP64_PPM, PPM_PER_PERCENT },
    { "utilisation by FP32", NVML_GPM_METRIC_FP32_UTIL, CT_GPU_FP32_PPM, PPM_PER_PERCENT },
    { "utilisation by FP16", NVML_GPM_METRIC_FP16_UTIL, CT_GPU_FP16_PPM, PPM_PER_PERCENT },
    { "utilisation by integers", NVML_GPM_METRIC_INTEGER_UTIL, CT_GPU_INTEGER_PPM, PPM_PER_PERCENT },
    { "traffic of the memory", NVML_GPM_METRIC_DRAM_BW_UTIL, CT_GPU_DRAM_PPM, PPM_PER_PERCENT },
    { "sent PCIe traffic (GPM)", NVML_GPM_METRIC_PCIE_TX_PER_SEC, CT_GPU_PCIE_SENT_KB_PER_S, KB_PER_MIB },
    { "received PCIe traffic (GPM)", NVML_GPM_METRIC_PCIE_RX_PER_SEC, CT_GPU_PCIE_RECEIVED_KB_PER_S,
      KB_PER_MIB },
};
enum { METRICS = sizeof(metrics) / sizeof(metrics[0]) };
static_assert(CT_NVML_METRICS + METRICS <= CT_NVML_READINGS, "bits for the metrics");

static void free_samples(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    for (int i = 0; i < 2; i++) {
        if (gpu->gpm.sample[i])
            CT_NVML_CALL(nvml, gpm_free, gpu->gpm.sample[i]);
        gpu->gpm.sample[i] = NULL;
    }
    gpu->gpm.taken_ns = 0;
}

void ct_nvml_release(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    free_samples(nvml, gpu);
    gpu->missing = 0;
    gpu->nvlink_ns = 0;
    gpu->processes_until_us = 0;
}

static int allocate(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    struct nvml_gpm_support support = { .version = NVML_GPM_SUPPORT_VERSION };
    int error = CT_NVML_CALL(nvml, gpm_support, gpu->whole ? gpu->whole : gpu->device, &support);
    if (!error && !support.is_supported)
        error = NVML_NOT_SUPPORTED;
    for (int i = 0; i < 2 && !error; i++)
        error = CT_NVML_CALL(nvml, gpm_alloc, &gpu->gpm.sample[i]);
    if (error)
        free_samples(nvml, gpu);
    return error;
}

/* Writes the mean values of the metrics for the time between the two samples. */
static int read_metrics(struct ct_nvml *nvml, struct ct_gpu *gpu, int64_t value[CT_GPU_VALUES])
{
    int of[METRICS];
    struct nvml_gpm_metrics get = { .version = NVML_GPM_METRICS_GET_VERSION,
                                    .earlier = gpu->gpm.sample[1],
                                    .later = gpu->gpm.sample[0] };
    for (int i = 0; i < METRICS; i++) {
        if (ct_nvml_is_missing(gpu, CT_NVML_METRICS + i))
            continue;
        of[get.count] = i;
        get.metric[get.count++].id = metrics[i].id;
    }
    const int error = get.count > 0 ? CT_NVML_CALL(nvml, gpm_metrics, &get) : 0;
    for (unsigned n = 0; !error && n < get.count && n < METRICS; n++) {
        const int i = of[n];
        const double scaled = get.metric[n].value * metrics[i].scale + 0.5;
        if (get.metric[n].result != NVML_SUCCESS)
            ct_nvml_note_error(nvml, gpu, CT_NVML_METRICS + i, metrics[i].what, get.metric[n].result);
        else if (scaled >= 0 && scaled <= (double)CT_GPU_VALUE_MAX) /* false for NaN */
            value[metrics[i].value] = (int64_t)scaled;
    }
    return error;
}

int ct_nvml_gpm_read(struct ct_nvml *nvml, struct ct_gpu *gpu, int64_t value[CT_GPU_VALUES])
{
    const int64_t taken_ns = gpu->gpm.taken_ns;
    int error = gpu->gpm.sample[0] ? 0 : allocate(nvml, gpu);
    if (error || (taken_ns && (int64_t)ct_monotonic_ns() - taken_ns < APART_NS))
        return error;
    void *const later = gpu->gpm.sample[1];
    error = gpu->whole ? CT_NVML_CALL(nvml, gpm_instance_sample, gpu->whole,
                                      (unsigned)gpu->facts.gpu_instance, later)
                       : CT_NVML_CALL(nvml, gpm_sample, gpu->device, later);
    gpu->gpm.taken_ns = error ? 0 : (int64_t)ct_monotonic_ns();
    if (error)
        return error;
    gpu->gpm.sample[1] = gpu->gpm.sample[0];
    gpu->gpm.sample[0] = later;
    error = taken_ns ? read_metrics(nvml, gpu, value) : 0;
    if (error)
        gpu->gpm.taken_ns = 0;
    return error;
}

bool ct_nvml_gpm_has_pcie(const struct ct_gpu *gpu)
{
    bool has = gpu->gpm.taken_ns != 0;
    for (int i = 0; i < METRICS; i++)
        has &= metrics[i].scale != KB_PER_MIB || !ct_nvml_is_missing(gpu, CT_NVML_METRICS + i);
    return has;
}
