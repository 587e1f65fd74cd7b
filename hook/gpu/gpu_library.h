/* Finds libcudatrace-gpu.so, and serves its requests to the loader and to the hook's tables. */
#ifndef CT_GPU_LIBRARY_H
#define CT_GPU_LIBRARY_H

#include "gpu_host.h"

/* Loads the library from the path that a visit has given, or else from the folder of the hook's own file.
 * Returns NULL if that fails. */
ct_gpu_record_function *ct_gpu_library_load(void);

/* See struct ct_gpu_host. */
void *ct_gpu_library_open(const char *path);
void ct_gpu_library_objects(bool (*visit)(const char *path, const char *soname, void *data), void *data);
bool ct_gpu_library_does_work(const char *function);

#endif
