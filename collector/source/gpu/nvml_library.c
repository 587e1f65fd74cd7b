#include "nvml_library.h"

#include "interner.h"
#include "log.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libnvidia-ml.so.1"

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
    const int error = CT_NVML_CALL(nvml, init);
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
    CT_NVML_CALL(nvml, shutdown);
    dlclose(nvml->library);
    free(nvml->list);
    free(nvml->buffer);
    free(nvml);
}

/* ---- GPUs ---- */

void ct_nvml_note_error(const struct ct_nvml *nvml, struct ct_gpu *gpu, int bit, const char *what, int error)
{
    const bool is_missing = error == NVML_NOT_SUPPORTED || error == NVML_FUNCTION_NOT_FOUND;
    const uint32_t mask = UINT32_C(1) << bit;
    if (!(gpu->logged & mask))
        ct_log(is_missing || error == NVML_NO_PERMISSION ? CT_LOG_gpu_value_missing : CT_LOG_gpu_value_failed,
               "GPU %lld (%s): cannot read the %s: %s (error %d); such values are NULL in the trace",
               (long long)gpu->facts.place, gpu->text[2], what, text_of(nvml, error), error);
    gpu->logged |= mask;
    if (is_missing)
        gpu->missing |= mask;
}

unsigned ct_nvml_count(struct ct_nvml *nvml)
{
    unsigned count = 0;
    return CT_NVML_CALL(nvml, count, &count) == NVML_SUCCESS ? count : 0;
}

/* Stores a string that the library has written, in a form that the database accepts. */
static void take_text(char to[CT_GPU_TEXT_BYTES], int result, char from[CT_GPU_TEXT_BYTES])
{
    from[CT_GPU_TEXT_BYTES - 1] = '\0';
    ct_text_clean(to, result == NVML_SUCCESS ? from : "", result == NVML_SUCCESS ? strlen(from) : 0);
}

/* Fills in the members that whole GPUs and instances have in common. Returns false if there is no UUID. */
static bool describe(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    char text[CT_GPU_TEXT_BYTES] = "";
    struct nvml_memory memory = { 0 };
    take_text(gpu->text[0], CT_NVML_CALL(nvml, uuid, gpu->device, text, sizeof(text)), text);
    take_text(gpu->text[2], CT_NVML_CALL(nvml, name, gpu->device, text, sizeof(text)), text);
    take_text(gpu->text[3], CT_NVML_CALL(nvml, driver_version, text, sizeof(text)), text);
    if (CT_NVML_CALL(nvml, memory, gpu->device, &memory) == NVML_SUCCESS && memory.total <= CT_GPU_VALUE_MAX)
        gpu->facts.memory_bytes = (int64_t)memory.total;
    return gpu->text[0][0] != '\0';
}

bool ct_nvml_describe(struct ct_nvml *nvml, unsigned place, struct ct_gpu *gpu)
{
    struct nvml_pci pci = { 0 };
    unsigned is_mig = 0, after_reset = 0;
    *gpu =
        (struct ct_gpu){ .facts = { place, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN, CT_GPU_UNKNOWN } };
    if (CT_NVML_CALL(nvml, device, place, &gpu->device) != NVML_SUCCESS)
        return false;
    if (CT_NVML_CALL(nvml, pci, gpu->device, &pci) == NVML_SUCCESS)
        snprintf(gpu->text[1], sizeof(gpu->text[1]), "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    if (CT_NVML_CALL(nvml, mig_mode, gpu->device, &is_mig, &after_reset) == NVML_SUCCESS)
        gpu->facts.is_mig = is_mig;
    /* The library also keeps older utilisation values, from before anything was traced, so skip them. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    gpu->processes_until_us = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    return describe(nvml, gpu);
}

/* ---- instances of a divided GPU (MIG) ---- */

unsigned ct_nvml_instance_count(struct ct_nvml *nvml, struct ct_gpu *gpu)
{
    unsigned count = 0;
    if (gpu->facts.is_mig != 1 || ct_nvml_is_missing(gpu, CT_NVML_INSTANCES))
        return 0;
    const int error = CT_NVML_CALL(nvml, instance_count, gpu->device, &count);
    if (error)
        ct_nvml_note_error(nvml, gpu, CT_NVML_INSTANCES, "instances", error);
    return error ? 0 : count;
}

bool ct_nvml_describe_instance(struct ct_nvml *nvml, struct ct_gpu *gpu, unsigned place,
                               struct ct_gpu *instance)
{
    unsigned gpu_instance = 0, compute_instance = 0;
    *instance = (struct ct_gpu){ .facts = gpu->facts, .whole = gpu->device };
    int error = CT_NVML_CALL(nvml, instance, gpu->device, place, &instance->device);
    if (error == NVML_NOT_FOUND)
        return false;
    if (!error)
        error = CT_NVML_CALL(nvml, gpu_instance, instance->device, &gpu_instance);
    if (!error)
        error = CT_NVML_CALL(nvml, compute_instance, instance->device, &compute_instance);
    if (error) {
        ct_nvml_note_error(nvml, gpu, CT_NVML_INSTANCES, "instances", error);
        return false;
    }
    instance->facts.memory_bytes = instance->facts.is_mig = CT_GPU_UNKNOWN;
    instance->facts.gpu_instance = gpu_instance;
    instance->facts.compute_instance = compute_instance;
    memcpy(instance->text[1], gpu->text[1], sizeof(instance->text[1]));
    memcpy(instance->text[4], gpu->text[0], sizeof(instance->text[4]));
    return describe(nvml, instance);
}
