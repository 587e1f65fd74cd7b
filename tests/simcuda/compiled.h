/* compiled.h: the format of images that contain host code, and of their kernels' descriptions. The simulated
 * compiler (nvrtc.c) and the simulated device (sim_kernel.c) share this file. */
#ifndef COMPILED_H
#define COMPILED_H

#include <stddef.h>
#include <stdint.h>

#define COMPILED_MAGIC "simcuda: code of the host\n"
#define COMPILED_KERNEL                                                                                      \
    "simcuda_kernel_" /* prefix of the name of each kernel's description (struct compiled_kernel) */

enum { COMPILED_MAX_PARAMS = 48 };

/* The header of an image, which is followed by a shared object. The shared object's bytes need not be
 * aligned. */
struct compiled_image {
    char magic[sizeof COMPILED_MAGIC];
    uint64_t object_bytes;
};

/* device_code.h contains a second definition of this struct. Both definitions must be the same. */
struct compiled_kernel {
    size_t param_count;
    size_t param_bytes[COMPILED_MAX_PARAMS];
    void (*run)(void *const *params, const unsigned *grid, const unsigned *block);
};

#endif
