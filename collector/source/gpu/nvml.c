#include "nvml.h"

#include "clock.h"
#include "interner.h"
#include "log.h"
#include "room.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libnvidia-ml.so.1"

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
#define CALL(nvml, member, ...) ((nvml)->member ? (nvml)->member(__VA_ARGS__) : (int)NVML_FUNCTION_NOT_FOUND)

/* ---- the library ---- */

static void *find(void *library, const char *name, const char *older_name)
{
    void *found = dlsym(library, name);
    return found || !older_name ? found : dlsym(library, older_name);
}

static const char *text_of(const struct ct_nvml *nvml, int result)
{
    const char *text = nvml->error_text ? nvml->error_text(result) : NULL;
    return text ? text : "unknown error";
}

int ct_nvml_open(struct ct_nvml **result, bool *is_absent, char message[CT_MESSAGE_BYTES])
{
    struct ct_nvml *nvml = calloc(1, sizeof(*nvml));
    *is_absent = false;
    if (!nvml)
        return ct_message(message, "out of memory");
    nvml->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!nvml->library) {
        ct_message(message, "cannot load " LIBRARY ": %s", dlerror());
        free(nvml);
        *is_absent = true;
        return -1;
    }
    *(void **)&nvml->error_text = find(nvml->library, "nvmlErrorString", NULL);
#define FUNCTION(member, parameters, ...) *(void **)&nvml->member = find(nvml->library, __VA_ARGS__);
#include "nvml_functions.def"
#undef FUNCTION
    const int error = CALL(nvml, init);
    if (error) {
        *is_absent = error == NVML_DRIVER_NOT_LOADED || error == NVML_GPU_NOT_FOUND;
        ct_message(message, "cannot initialise " LIBRARY ": %s (error %d)", text_of(nvml, error), error);
        nvml->shutdown = NULL;
        ct_nvml_close(nvml);
        return -1;
    }
    *result = nvml;
    return 0;
}

void ct_nvml_close(struct ct_nvml *nvml)
{
    if (!nvml)
        return;
    CALL(nvml, shutdown);
    dlclose(nvml->library);
    free(nvml->list);
    free(nvml->buffer);
    free(nvml);
}

/* ---- GPUs ---- */

unsigned ct_nvml_count(struct ct_nvml *nvml)
{
    unsigned count = 0;
    return CALL(nvml, count, &count) == NVML_SUCCESS ? count : 0;
}

/* Stores a text that the library has written, in a form that the database accepts. */
static void take_text(char to[CT_GPU_TEXT_BYTES], int result, char from[CT_GPU_TEXT_BYTES])
{
    from[CT_GPU_TEXT_BYTES - 1] = '\0';
    ct_text_clean(to, result == NVML_SUCCESS ? from : "", result == NVML_SUCCESS ? strlen(from) : 0);
}

bool ct_nvml_describe(struct ct_nvml *nvml, unsigned place, struct ct_gpu *gpu)
{
    char text[CT_GPU_TEXT_BYTES] = "";
    struct nvml_pci pci = { 0 };
    struct nvml_memory memory = { 0 };
    unsigned is_mig = 0, after_reset = 0;
    *gpu = (struct ct_gpu){ .facts = { place, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN } };
    if (CALL(nvml, device, place, &gpu->device) != NVML_SUCCESS)
        return false;
    take_text(gpu->text[0], CALL(nvml, uuid, gpu->device, text, sizeof(text)), text);
    if (CALL(nvml, pci, gpu->device, &pci) == NVML_SUCCESS)
        snprintf(gpu->text[1], sizeof(gpu->text[1]), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    take_text(gpu->text[2], CALL(nvml, name, gpu->device, text, sizeof(text)), text);
    take_text(gpu->text[3], CALL(nvml, driver_version, text, sizeof(text)), text);
    if (CALL(nvml, memory, gpu->device, &memory) == NVML_SUCCESS && memory.total <= CT_GPU_VALUE_MAX)
        gpu->facts.memory_bytes = (int64_t)memory.total;
    if (CALL(nvml, mig_mode, gpu->device, &is_mig, &after_reset) == NVML_SUCCESS)
        gpu->facts.is_mig = is_mig;
    /* The library also keeps the utilisation from before anything was traced. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    gpu->processes_until_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return gpu->text[0][0] != '\0';
}

/* ---- readings ---- */

/* Reads one or more values of a GPU. */
struct reading {
    const char *what;
    int (*read)(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading, int64_t *value);
    enum ct_gpu_value value; /* the first value */
    int argument;            /* NVML's constant */
};

static int read_utilization(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                            int64_t *value)
{
    (void)reading;
    struct nvml_utilization utilization = { 0 };
    const int error = CALL(nvml, utilization, gpu->device, &utilization);
    value[0] = utilization.gpu;
    value[1] = utilization.memory;
    return error;
}

static int read_memory(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                       int64_t *value)
{
    (void)reading;
    struct nvml_memory memory = { 0 };
    const int error = CALL(nvml, memory, gpu->device, &memory);
    *value = (int64_t)memory.used;
    return error;
}

static int read_power(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading, int64_t *value)
{
    (void)reading;
    unsigned mw = 0;
    const int error = CALL(nvml, power, gpu->device, &mw);
    *value = mw;
    return error;
}

static int read_temperature(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                            int64_t *value)
{
    unsigned c = 0;
    const int error = CALL(nvml, temperature, gpu->device, reading->argument, &c);
    *value = c;
    return error;
}

static int read_clock(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading, int64_t *value)
{
    unsigned mhz = 0;
    const int error = CALL(nvml, clock, gpu->device, reading->argument, &mhz);
    *value = mhz;
    return error;
}

static int read_clock_reasons(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                              int64_t *value)
{
    (void)reading;
    unsigned long long reasons = 0;
    const int error = CALL(nvml, clock_reasons, gpu->device, &reasons);
    *value = (int64_t)reasons;
    return error;
}

static int read_pcie(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading, int64_t *value)
{
    unsigned kb_per_s = 0;
    const int error = CALL(nvml, pcie, gpu->device, reading->argument, &kb_per_s);
    *value = kb_per_s;
    return error;
}

/* Converts the library's counters to rates since the previous sample. The first sample has no rate. */
static int read_nvlink(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading,
                       int64_t *value)
{
    (void)reading;
    struct nvml_field fields[] = { { .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, .scope = ~0U },
                                   { .field = NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, .scope = ~0U } };
    int error = CALL(nvml, fields, gpu->device, 2, fields);
    for (int i = 0; i < 2 && !error; i++)
        error = fields[i].result                                       ? fields[i].result
                : fields[i].type != NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ? (int)NVML_NOT_SUPPORTED
                                                                       : 0;
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    const double seconds = (double)(now_ns - gpu->nvlink_ns) / 1e9;
    for (int i = 0; i < 2 && !error; i++) {
        const int64_t kib = (int64_t)fields[i].value, more = kib - gpu->nvlink_kib[i];
        if (gpu->nvlink_ns && more >= 0 && seconds > 0)
            value[i] = (int64_t)((double)more * 1.024 / seconds);
        gpu->nvlink_kib[i] = kib;
    }
    gpu->nvlink_ns = error ? 0 : now_ns;
    return error;
}

static int read_ecc(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct reading *reading, int64_t *value)
{
    unsigned long long errors = 0;
    const int error = CALL(nvml, ecc, gpu->device, reading->argument, NVML_VOLATILE_ECC, &errors);
    *value = (int64_t)errors;
    return error;
}

static const struct reading readings[] = {
    { "utilisation", read_utilization, CT_GPU_BUSY_PERCENT, 0 },
    { "used memory", read_memory, CT_GPU_MEMORY_USED_BYTES, 0 },
    { "power", read_power, CT_GPU_POWER_MW, 0 },
    { "temperature", read_temperature, CT_GPU_TEMPERATURE_C, NVML_TEMPERATURE_GPU },
    { "SM clock", read_clock, CT_GPU_SM_MHZ, NVML_CLOCK_SM },
    { "memory clock", read_clock, CT_GPU_MEMORY_MHZ, NVML_CLOCK_MEM },
    { "reasons for the clocks", read_clock_reasons, CT_GPU_CLOCK_REASONS, 0 },
    { "NVLink traffic", read_nvlink, CT_GPU_NVLINK_SENT_KB_PER_S, 0 },
    { "corrected memory errors", read_ecc, CT_GPU_ECC_CORRECTED, NVML_MEMORY_ERROR_TYPE_CORRECTED },
    { "uncorrected memory errors", read_ecc, CT_GPU_ECC_UNCORRECTED, NVML_MEMORY_ERROR_TYPE_UNCORRECTED },
    { "sent PCIe traffic", read_pcie, CT_GPU_PCIE_SENT_KB_PER_S, NVML_PCIE_UTIL_TX_BYTES },
    { "received PCIe traffic", read_pcie, CT_GPU_PCIE_RECEIVED_KB_PER_S, NVML_PCIE_UTIL_RX_BYTES },
};
enum { READINGS = sizeof(readings) / sizeof(readings[0]), PROCESSES = READINGS, PROCESS_TIMES };

/* Logs the first failure of each reading. A GPU that does not support a reading is not queried for it
 * again. */
static void note_error(const struct ct_nvml *nvml, struct ct_gpu *gpu, int reading, const char *what,
                       int error)
{
    const bool is_missing = error == NVML_NOT_SUPPORTED || error == NVML_FUNCTION_NOT_FOUND;
    const uint32_t bit = UINT32_C(1) << reading;
    if (!(gpu->logged & bit))
        ct_log(is_missing || error == NVML_NO_PERMISSION ? CT_LOG_gpu_value_missing : CT_LOG_gpu_value_failed,
               "GPU %lld (%s): cannot read the %s: %s (error %d); such values are NULL in the trace",
               (long long)gpu->facts.place, gpu->text[2], what, text_of(nvml, error), error);
    gpu->logged |= bit;
    if (is_missing)
        gpu->missing |= bit;
}

bool ct_nvml_sample(struct ct_nvml *nvml, struct ct_gpu *gpu, bool is_frequent,
                    struct ct_gpu_sample_facts *sample)
{
    bool is_known = false;
    sample->time_ns = (int64_t)ct_monotonic_ns();
    for (int i = 0; i < CT_GPU_VALUES; i++)
        sample->value[i] = CT_GPU_UNKNOWN;
    for (int i = 0; i < READINGS; i++) {
        int64_t value[2] = { CT_GPU_UNKNOWN, CT_GPU_UNKNOWN };
        if (gpu->missing & UINT32_C(1) << i || (is_frequent && readings[i].read == read_pcie))
            continue;
        const int error = readings[i].read(nvml, gpu, &readings[i], value);
        if (error) {
            note_error(nvml, gpu, i, readings[i].what, error);
            continue;
        }
        for (int n = 0; n < 2; n++) {
            if (value[n] >= 0 && value[n] <= CT_GPU_VALUE_MAX)
                sample->value[(int)readings[i].value + n] = value[n];
        }
        is_known = true;
    }
    return is_known;
}

/* ---- processes ---- */

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

/* Provides a buffer for `count` processes of either struct. Returns false if out of memory. */
static bool make_buffer(struct ct_nvml *nvml, unsigned count)
{
    return count <= nvml->buffer_room || ct_make_room_for(&nvml->buffer, 0, count, &nvml->buffer_room,
                                                          sizeof(struct nvml_process_utilization));
}

/* Adds the memory of each process. In a divided GPU, a process may be listed once for each instance. */
static int list_memory(struct ct_nvml *nvml, const struct ct_gpu *gpu)
{
    unsigned count = 64;
    int error = NVML_INSUFFICIENT_SIZE;
    for (int tries = 0; tries < 3 && error == NVML_INSUFFICIENT_SIZE && make_buffer(nvml, count); tries++) {
        count = (unsigned)nvml->buffer_room;
        error = CALL(nvml, processes, gpu->device, &count, nvml->buffer);
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
        error = CALL(nvml, process_utilization, gpu->device, nvml->buffer, &count, gpu->processes_until_us);
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
    int error = gpu->missing & UINT32_C(1) << PROCESSES ? 0 : list_memory(nvml, gpu);
    if (error)
        note_error(nvml, gpu, PROCESSES, "memory of processes", error);
    error = gpu->missing & UINT32_C(1) << PROCESS_TIMES ? 0 : list_utilization(nvml, gpu);
    if (error)
        note_error(nvml, gpu, PROCESS_TIMES, "utilisation of processes", error);
    *list = nvml->list;
    return nvml->list_count;
}
