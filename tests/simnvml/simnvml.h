/* A simulated libnvidia-ml.so.1 with two GPUs, for tests of `cudatraced --gpu-samples`. Values are fixed, or
 * are derived from the number of samples so far. GPU 1 does not support MIG, PCIe counters, NVLink or GPM.
 * The library has no nvmlDeviceGetTemperature(). nvmlDeviceGetCurrentClocksEventReasons() is exported only
 * under its older name. The library simnvml-old also lacks the functions for GPM and for instances.
 *
 * Each call reads the file $SIMNVML, whose lines have these forms:
 *
 *   fail FUNCTION GPU RESULT            makes the function fail for the GPU
 *   block FUNCTION GPU FIFO             makes it block until the FIFO is written or closed
 *   process GPU PID BYTES BUSY MEMORY   adds a process with this memory and utilisation; 0: no utilisation
 *   metric GPU ID RESULT VALUE          changes a metric of GPM
 *   mig N GI CI UUID PROFILE BYTES      divides the GPU N % 100: the instance with the index N / 100 - 1
 *
 * For a function that does not refer to a GPU, GPU is 0. For an instance, GPU is the N of its `mig` line. The
 * file $SIMNVML.log lists initialisations, shutdowns, calls that block, and calls that the real library would
 * not permit.
 */
#ifndef SIMNVML_H
#define SIMNVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
    SUCCESS = 0,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
};
enum { INSTANCES = 7 /* at most, of a GPU */ };

extern int simnvml_gpm_samples; /* allocated by the caller and not yet freed */

/* Opens the script. Returns NULL if there is none. */
FILE *simnvml_script(void);
/* Appends a line to the log. */
void simnvml_log(const char *what, const char *function);
/* Makes a call fail or block if a line of the script requires it. Returns the call's result. */
int simnvml_follow(const char *function, unsigned gpu);

struct instance {
    unsigned gpu_instance, compute_instance;
    char uuid[80], profile[32];
    unsigned long long bytes;
};
/* Returns true and fills in `instance` if the script contains the instance. */
bool simnvml_instance(unsigned number, struct instance *instance);
/* Returns whether the script divides the GPU into instances. */
bool simnvml_is_divided(unsigned gpu);

/* A device handle is the number of its GPU or instance, counted from 1. */
static inline unsigned simnvml_gpu(const void *device)
{
    return (unsigned)(size_t)device - 1;
}

/* Used at the beginning of a function that does not support instances. */
#define ENTER(device)                                                                                        \
    if (simnvml_gpu(device) >= 100) {                                                                        \
        simnvml_log("wrong", __func__);                                                                      \
        return INVALID_ARGUMENT;                                                                             \
    }                                                                                                        \
    ENTER_ANY(device)

/* Used at the beginning of a function that also supports instances. */
#define ENTER_ANY(device)                                                                                    \
    const unsigned gpu = simnvml_gpu(device);                                                                \
    const int result = gpu < 100 || simnvml_instance(gpu, &(struct instance){ 0 })                           \
                           ? simnvml_follow(__func__, gpu)                                                   \
                           : INVALID_ARGUMENT;                                                               \
    if (result != SUCCESS)                                                                                   \
    return result

#endif
