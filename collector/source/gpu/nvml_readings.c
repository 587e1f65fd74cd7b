#include "clock.h"
#include "nvml_gpm.h"
#include "nvml_library.h"

/* Reads one or more values of a GPU. */
struct reading {
    const char *what;
    int (*read)(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                int64_t value[CT_GPU_VALUES]);
    enum ct_gpu_value value; /* the first value */
    int argument;            /* NVML's constant */
    bool is_of_instances;    /* instances of a divided GPU have the value */
};

static int read_utilization(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                            int64_t value[CT_GPU_VALUES])
{
    struct nvml_utilization utilization = { 0 };
    const int error = CT_NVML_CALL(nvml, utilization, gpu->device, &utilization);
    value[(int)reading->value] = utilization.gpu;
    value[(int)reading->value + 1] = utilization.memory;
    return error;
}

static int read_memory(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                       int64_t value[CT_GPU_VALUES])
{
    struct nvml_memory memory = { 0 };
    const int error = CT_NVML_CALL(nvml, memory, gpu->device, &memory);
    value[reading->value] = (int64_t)memory.used;
    return error;
}

static int read_power(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                      int64_t value[CT_GPU_VALUES])
{
    unsigned mw = 0;
    const int error = CT_NVML_CALL(nvml, power, gpu->device, &mw);
    value[reading->value] = mw;
    return error;
}

static int read_temperature(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                            int64_t value[CT_GPU_VALUES])
{
    unsigned c = 0;
    const int error = CT_NVML_CALL(nvml, temperature, gpu->device, reading->argument, &c);
    value[reading->value] = c;
    return error;
}

static int read_clock(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                      int64_t value[CT_GPU_VALUES])
{
    unsigned mhz = 0;
    const int error = CT_NVML_CALL(nvml, clock, gpu->device, reading->argument, &mhz);
    value[reading->value] = mhz;
    return error;
}

static int read_clock_reasons(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                              int64_t value[CT_GPU_VALUES])
{
    unsigned long long reasons = 0;
    const int error = CT_NVML_CALL(nvml, clock_reasons, gpu->device, &reasons);
    value[reading->value] = (int64_t)reasons;
    return error;
}

static int read_pcie(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                     int64_t value[CT_GPU_VALUES])
{
    unsigned kb_per_s = 0;
    const int error = CT_NVML_CALL(nvml, pcie, gpu->device, reading->argument, &kb_per_s);
    value[reading->value] = kb_per_s;
    return error;
}

/* Converts the library's counters to rates since the previous sample. The first sample has no rate. */
static int read_nvlink(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                       int64_t value[CT_GPU_VALUES])
{
    struct nvml_field fields[] = { { .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scope = ~0U },
                                   { .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, .scope = ~0U } };
    int error = CT_NVML_CALL(nvml, fields, gpu->device, 2, fields);
    for (int i = 0; i < 2 && !error; i++)
        error = fields[i].result                                       ? fields[i].result
                : fields[i].type != NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ? (int)NVML_NOT_SUPPORTED
                                                                       : 0;
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    const double seconds = (double)(now_ns - gpu->nvlink_ns) / 1e9;
    for (int i = 0; i < 2 && !error; i++) {
        const int64_t kib = (int64_t)fields[i].value, more = kib - gpu->nvlink_kib[i];
        if (gpu->nvlink_ns && more >= 0 && seconds > 0)
            value[(int)reading->value + i] = (int64_t)((double)more * 1.024 / seconds);
        gpu->nvlink_kib[i] = kib;
    }
    gpu->nvlink_ns = error ? 0 : now_ns;
    return error;
}

static int read_ecc(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                    int64_t value[CT_GPU_VALUES])
{
    unsigned long long errors = 0;
    const int error = CT_NVML_CALL(nvml, ecc, gpu->device, reading->argument, NVML_VOLATILE_ECC, &errors);
    value[reading->value] = (int64_t)errors;
    return error;
}

static int read_gpm(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                    int64_t value[CT_GPU_VALUES])
{
    (void)reading;
    return ct_nvml_gpm_read(nvml, gpu, value);
}

/* The PCIe traffic is last, because it is left out if GPM has already read it. */
static const struct reading readings[] = {
    { "utilisation", read_utilization, CT_GPU_BUSY_PERCENT, 0 },
    { "used memory", read_memory, CT_GPU_MEMORY_USED_BYTES, 0, .is_of_instances = true },
    { "power", read_power, CT_GPU_POWER_MW, 0 },
    { "temperature", read_temperature, CT_GPU_TEMPERATURE_C, NVML_TEMPERATURE_GPU },
    { "SM clock", read_clock, CT_GPU_SM_MHZ, NVML_CLOCK_SM },
    { "memory clock", read_clock, CT_GPU_MEMORY_MHZ, NVML_CLOCK_MEM },
    { "reasons for the clocks", read_clock_reasons, CT_GPU_CLOCK_REASONS, 0 },
    { "NVLink traffic", read_nvlink, CT_GPU_NVLINK_SENT_KB_PER_S, 0 },
    { "corrected memory errors", read_ecc, CT_GPU_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED },
    { "uncorrected memory errors", read_ecc, CT_GPU_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED },
    { "activity of the SMs", read_gpm, CT_GPU_SM_BUSY_PPM, 0, .is_of_instances = true },
    { "sent PCIe traffic", read_pcie, CT_GPU_PCIE_SENT_KB_PER_S, NVML_PCIE_UTIL_TX_BYTES },
    { "received PCIe traffic", read_pcie, CT_GPU_PCIE_RECEIVED_KB_PER_S, NVML_PCIE_UTIL_RX_BYTES },
};
enum { READINGS = sizeof(readings) / sizeof(readings[0]) };
static_assert(CT_NVML_READINGS + READINGS <= 32, "bits for the readings");

bool ct_nvml_sample(struct ct_nvml *nvml, struct ct_gpu *gpu, bool is_frequent,
                    struct ct_gpu_sample_facts *sample)
{
    bool is_known = false;
    sample->time_ns = (int64_t)ct_monotonic_ns();
    for (int n = 0; n < CT_GPU_VALUES; n++)
        sample->value[n] = CT_GPU_UNKNOWN;
    for (int i = 0; i < READINGS; i++) {
        int64_t value[CT_GPU_VALUES];
        if (ct_nvml_is_missing(gpu, CT_NVML_READINGS + i) || (gpu->whole && !readings[i].is_of_instances) ||
            (readings[i].read == read_pcie && (is_frequent || ct_nvml_gpm_has_pcie(gpu))))
            continue;
        for (int n = 0; n < CT_GPU_VALUES; n++)
            value[n] = CT_GPU_UNKNOWN;
        const int error = readings[i].read(nvml, gpu, &readings[i], value);
        if (error) {
            ct_nvml_note_error(nvml, gpu, CT_NVML_READINGS + i, readings[i].what, error);
            continue;
        }
        for (int n = 0; n < CT_GPU_VALUES; n++) {
            if (value[n] < 0 || value[n] > CT_GPU_VALUE_MAX)
                continue;
            sample->value[n] = value[n];
            is_known = true;
        }
    }
    return is_known;
}
