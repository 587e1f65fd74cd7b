/* Reads the values that GPUs report about themselves, by means of NVML, the driver's management library. The
 * library is loaded at run time, and each of its functions may be missing. Any call may block for a long
 * time, for example while the driver resets a GPU. Used by one thread. */
#ifndef CT_NVML_H
#define CT_NVML_H

#include "fact.h"
#include "message.h"

#include <stdbool.h>
#include <stddef.h>

struct ct_nvml;

/* A GPU, or an instance of a divided GPU. Everything except `text`, `facts` and `has_instances` belongs to
 * nvml_*.c. */
struct ct_gpu {
    /* UUID, PCI address, name, driver; of an instance, also the UUID of the whole GPU. "" if unknown */
    char text[CT_FACT_TEXTS][CT_GPU_TEXT_BYTES];
    struct ct_gpu_facts facts;
    bool has_instances; /* only processes of the instances are listed */
    void *device;
    void *whole;                 /* of an instance: the device of the GPU */
    uint32_t logged;             /* readings whose failure was logged, as bits */
    uint32_t missing;            /* readings that the GPU does not support */
    uint64_t processes_until_us; /* time of the newest utilisation of processes that was read */
    int64_t nvlink_ns, nvlink_kib[2];
    struct {
        void *sample[2];  /* NULL until the first reading */
        int64_t taken_ns; /* when sample[0] was taken; 0: not yet */
    } gpm;
};

/* Loads and initialises the library. Returns 0, or -1 with a sentence in `message`. *is_absent is then set if
 * the machine has no driver or no GPU. */
int ct_nvml_open(struct ct_nvml **nvml, bool *is_absent, char message[CT_MESSAGE_BYTES]);
/* `nvml` may be NULL. */
void ct_nvml_close(struct ct_nvml *nvml);

unsigned ct_nvml_count(struct ct_nvml *nvml);
/* Describes the GPU at `place`. Returns false if it has no UUID, for example because it is lost. */
bool ct_nvml_describe(struct ct_nvml *nvml, unsigned place, struct ct_gpu *gpu);
/* Returns the number of places that the GPU has for instances, or 0 if the GPU is not divided. A failure is
 * logged. */
unsigned ct_nvml_instance_count(struct ct_nvml *nvml, struct ct_gpu *gpu);
/* Describes the instance at `place`. Returns false if there is none, or if it has no UUID. A failure is
 * logged. */
bool ct_nvml_describe_instance(struct ct_nvml *nvml, struct ct_gpu *gpu, unsigned place,
                               struct ct_gpu *instance);
/* Reads all values. A value that cannot be read is CT_GPU_UNKNOWN, and the first such failure of each kind is
 * logged. On GPUs older than Hopper, reading the PCIe traffic takes 40 ms, so it is left out if `is_frequent`
 * is set. Returns whether any value is known. */
bool ct_nvml_sample(struct ct_nvml *nvml, struct ct_gpu *gpu, bool is_frequent,
                    struct ct_gpu_sample_facts *sample);
/* Forgets everything that the library has reported about the GPU, but remembers which failures were logged.
 * Frees what ct_nvml_sample() has allocated in the library. Must be called before ct_nvml_close(). */
void ct_nvml_release(struct ct_nvml *nvml, struct ct_gpu *gpu);
/* Lists the processes that use the GPU. Does not set `time_ns`. The list is valid until the next call. */
size_t ct_nvml_processes(struct ct_nvml *nvml, struct ct_gpu *gpu, const struct ct_gpu_process_facts **list);

#endif
