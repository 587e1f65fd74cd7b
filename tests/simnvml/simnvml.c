#include "simnvml.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS = 2 };

int simnvml_gpm_samples;

static unsigned samples[GPUS]; /* counted by nvmlDeviceGetUtilizationRates() */

FILE *simnvml_script(void)
{
    const char *path = getenv("SIMNVML");
    return path ? fopen(path, "re") : NULL;
}

void simnvml_log(const char *what, const char *function)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s.log", getenv("SIMNVML"));
    FILE *file = fopen(path, "ae");
    if (file) {
        fprintf(file, "%s %s\n", what, function);
        fclose(file);
    }
}

int simnvml_follow(const char *function, unsigned gpu)
{
    char line[4096], verb[16], name[128], value[2048];
    unsigned number;
    int result = SUCCESS;
    FILE *lines = simnvml_script();
    while (lines && fgets(line, sizeof(line), lines)) {
        if (sscanf(line, "%15s %127s %u %2047s", verb, name, &number, value) != 4 ||
            strcmp(name, function) != 0 || number != gpu)
            continue;
        if (strcmp(verb, "fail") == 0)
            result = atoi(value);
        if (strcmp(verb, "block") == 0) {
            simnvml_log("block", function);
            const int fd = open(value, O_RDONLY | O_CLOEXEC);
            if (fd < 0 || read(fd, value, 1) < 0)
                perror("simnvml");
            close(fd);
        }
    }
    if (lines)
        fclose(lines);
    return result;
}

bool simnvml_instance(unsigned number, struct instance *instance)
{
    char line[4096];
    unsigned of;
    bool is_found = false;
    FILE *lines = simnvml_script();
    while (lines && !is_found && fgets(line, sizeof(line), lines))
        is_found =
            sscanf(line, "mig %u %u %u %79s %31s %llu", &of, &instance->gpu_instance,
                   &instance->compute_instance, instance->uuid, instance->profile, &instance->bytes) == 6 &&
            of == number;
    if (lines)
        fclose(lines);
    return is_found;
}

bool simnvml_is_divided(unsigned gpu)
{
    struct instance instance;
    bool is_divided = false;
    for (unsigned index = 0; gpu < 100 && index < INSTANCES; index++)
        is_divided |= simnvml_instance(100 * (index + 1) + gpu, &instance);
    return is_divided;
}

const char *nvmlErrorString(int result)
{
    return result == NOT_SUPPORTED   ? "Not Supported"
           : result == NO_PERMISSION ? "Insufficient Permissions"
           : result == 999           ? "Unknown Error"
                                     : "Simulated Error";
}

int nvmlInit_v2(void)
{
    simnvml_log("call", __func__);
    return simnvml_follow(__func__, 0);
}

int nvmlShutdown(void)
{
    simnvml_log("call", __func__);
    if (simnvml_gpm_samples)
        simnvml_log("leaked", "samples");
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "580.00");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = GPUS;
    return simnvml_follow(__func__, 0);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned place, void **device)
{
    *device = (void *)(size_t)(place + 1);
    return simnvml_follow(__func__, place);
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned bytes)
{
    ENTER_ANY(device);
    struct instance instance;
    if (simnvml_instance(gpu, &instance))
        snprintf(text, bytes, "%s", instance.uuid);
    else
        snprintf(text, bytes, "GPU-0000000%u", gpu);
    return SUCCESS;
}

int nvmlDeviceGetName(void *device, char *text, unsigned bytes)
{
    ENTER_ANY(device);
    struct instance instance;
    const bool is_instance = simnvml_instance(gpu, &instance);
    snprintf(text, bytes, "Simulated GPU %c%s%s", 'A' + (int)(gpu % 100), is_instance ? " MIG " : "",
             is_instance ? instance.profile : "");
    return SUCCESS;
}

struct pci {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char address[32];
};

int nvmlDeviceGetPciInfo_v3(void *device, struct pci *pci)
{
    ENTER(device);
    *pci = (struct pci){ .domain = 0, .bus = 0x3b + gpu, .device = 0 };
    return SUCCESS;
}

int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *after_reset)
{
    ENTER(device);
    *now = *after_reset = simnvml_is_divided(gpu);
    return gpu == 1 ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned utilization[2])
{
    ENTER(device);
    const unsigned n = samples[gpu]++;
    if (simnvml_is_divided(gpu))
        return NOT_SUPPORTED;
    utilization[0] = gpu == 0 ? 20 * (n % 5) + 20 : 0;
    utilization[1] = utilization[0] / 2;
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long memory[3])
{
    ENTER_ANY(device);
    struct instance instance;
    const bool is_instance = simnvml_instance(gpu, &instance);
    memory[0] = is_instance ? instance.bytes : 80ULL << 30;
    memory[2] = is_instance ? instance.bytes / 4 : (gpu == 0 ? 10ULL : 1ULL) << 30;
    memory[1] = memory[0] - memory[2];
    return SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    ENTER(device);
    *mw = gpu == 0 ? 350000 : 70000;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(void *device, int domain, unsigned *mhz)
{
    ENTER(device);
    *mhz = domain == 1 ? 1980 - 100 * gpu : 2619;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    ENTER(device);
    *reasons = gpu == 0 ? 0x4 | 0x40 : 0x1;
    return SUCCESS;
}

int nvmlDeviceGetPcieThroughput(void *device, int direction, unsigned *kb_per_s)
{
    ENTER(device);
    *kb_per_s = direction == 0 ? 1000 : 25000000;
    return gpu == 1 ? NOT_SUPPORTED : SUCCESS;
}

struct field {
    unsigned field, scope;
    long long time_us, latency_us;
    unsigned type;
    int result;
    unsigned long long value;
};

int nvmlDeviceGetFieldValues(void *device, int count, struct field *fields)
{
    ENTER(device);
    for (int i = 0; i < count; i++) {
        const bool is_known =
            gpu == 0 && fields[i].scope == ~0U && (fields[i].field == 138 || fields[i].field == 139);
        fields[i].result = is_known ? SUCCESS : NOT_SUPPORTED;
        fields[i].type = 3;
        fields[i].value = 1000ULL * samples[gpu] * (fields[i].field - 137);
    }
    return SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int since, unsigned long long *errors)
{
    ENTER(device);
    *errors = since == 0 ? (type == 0 ? 3 : 0) : 99;
    return SUCCESS;
}

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};
struct utilization {
    unsigned pid;
    unsigned long long time_us;
    unsigned sm, memory, encoder, decoder;
};

/* Reads at most `room` of a GPU's processes from the script. Returns how many processes of that GPU the
 * script contains. */
static unsigned read_processes(unsigned gpu, unsigned room, struct process *processes,
                               struct utilization *busy)
{
    char line[4096];
    unsigned count = 0, of, pid, sm, memory;
    unsigned long long bytes;
    FILE *lines = simnvml_script();
    while (lines && fgets(line, sizeof(line), lines)) {
        if (sscanf(line, "process %u %u %llu %u %u", &of, &pid, &bytes, &sm, &memory) != 5 || of != gpu ||
            (busy && sm == 0))
            continue;
        if (processes && count < room)
            processes[count] = (struct process){ pid, bytes, ~0U, ~0U };
        if (busy && count < room)
            busy[count] = (struct utilization){ pid, ~0ULL >> 1, sm, memory, 0, 0 };
        count++;
    }
    if (lines)
        fclose(lines);
    return count;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *processes)
{
    ENTER_ANY(device);
    const unsigned room = *count;
    if (simnvml_is_divided(gpu))
        return NO_PERMISSION;
    *count = read_processes(gpu, room, processes, NULL);
    return *count > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetProcessUtilization(void *device, struct utilization *busy, unsigned *count,
                                    unsigned long long since_us)
{
    ENTER(device);
    const unsigned room = *count;
    if (simnvml_is_divided(gpu))
        return NOT_SUPPORTED;
    *count = read_processes(gpu, room, NULL, busy);
    for (unsigned i = 0; i < *count && i < room; i++)
        busy[i].time_us = since_us + 1;
    return *count > room ? INSUFFICIENT_SIZE : *count == 0 ? NOT_FOUND : SUCCESS;
}
