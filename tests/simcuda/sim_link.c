/* sim_link.c: the linker. The linker accepts any input, and produces an image that works like any other. The
 * linker does not change images that contain host code. */
#include "sim_code.h"

#include <stdlib.h>
#include <string.h>

struct CUlinkState_st {
    struct handle handle;
    char image[64];
    void *compiled;
    size_t compiled_bytes;
};

static struct slab links = SLAB(struct CUlinkState_st);

CUresult sim_cuLinkCreate_v2(unsigned int option_count, int *options, void **values, CUlinkState *link)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!link || (option_count > 0 && (!options || !values)))
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *link = handle_new(&links);
    return driver_unlock(*link ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult sim_cuLinkCreate(unsigned int option_count, int *options, void **values, CUlinkState *link)
{
    return sim_cuLinkCreate_v2(option_count, options, values, link);
}

static CUresult check(CUlinkState link, const void *data)
{
    driver_lock();
    if (!handle_alive(&links, link))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    return driver_unlock(data ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuLinkAddData_v2(CUlinkState link, int type, void *data, size_t bytes, const char *name,
                              unsigned int option_count, int *options, void **values)
{
    (void)type;
    (void)name;
    (void)option_count;
    (void)options;
    (void)values;
    const CUresult result = check(link, bytes > 0 ? data : NULL);
    const size_t compiled = result == CUDA_SUCCESS ? compiled_bytes(data) : 0;
    if (compiled == 0)
        return result;
    void *copy = compiled <= bytes ? malloc(compiled) : NULL;
    if (!copy)
        return CUDA_ERROR_INVALID_IMAGE;
    memcpy(copy, data, compiled);
    driver_lock();
    free(link->compiled);
    link->compiled = copy;
    link->compiled_bytes = compiled;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuLinkAddData(CUlinkState link, int type, void *data, size_t bytes, const char *name,
                           unsigned int option_count, int *options, void **values)
{
    return sim_cuLinkAddData_v2(link, type, data, bytes, name, option_count, options, values);
}

CUresult sim_cuLinkComplete(CUlinkState link, void **image, size_t *bytes)
{
    driver_lock();
    if (!handle_alive(&links, link))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    if (!image)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    strcpy(link->image, "simcuda image");
    *image = link->compiled ? link->compiled : link->image;
    if (bytes)
        *bytes = link->compiled ? link->compiled_bytes : sizeof link->image;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuLinkDestroy(CUlinkState link)
{
    driver_lock();
    if (!handle_alive(&links, link))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    free(link->compiled);
    link->compiled = NULL;
    handle_free(&links, link);
    return driver_unlock(CUDA_SUCCESS);
}
