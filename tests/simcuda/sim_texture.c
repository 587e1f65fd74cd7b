/*
 * sim_texture.c: texture and surface objects. No kernel here reads them, but programs make them, ask them what
 * they were made of, and destroy them.
 */
#include "simcuda.h"

struct object {
    struct handle handle;
    CUcontext context;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC texture;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
};

static struct slab textures = SLAB(struct object);
static struct slab surfaces = SLAB(struct object);

static CUresult check(const CUDA_RESOURCE_DESC *resource)
{
    switch (resource->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        return array_of(resource->res.array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_LINEAR:
        return region_holding((uintptr_t)resource->res.linear.devPtr, resource->res.linear.sizeInBytes)
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_RESOURCE_TYPE_PITCH2D:
        return region_at((uintptr_t)resource->res.pitch2D.devPtr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

static CUresult create(struct slab *slab, unsigned long long *out, const CUDA_RESOURCE_DESC *resource,
                       struct object **object)
{
    CUcontext context;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    result = out && resource ? check(resource) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    *object = handle_new(slab);
    if (!*object)
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    (*object)->context = context;
    (*object)->resource = *resource;
    *out = (uintptr_t)*object;
    return CUDA_SUCCESS;
}

/* Lock, and find the object. */
static struct object *lock_object(const struct slab *slab, unsigned long long handle, const void *out)
{
    struct object *object = (struct object *)(uintptr_t)handle;
    driver_lock();
    if (out && handle_alive(slab, object))
        return object;
    driver_release();
    return NULL;
}

static void end_all(struct slab *slab, CUcontext context)
{
    for (struct object *object = NULL, *next = handle_next(slab, NULL); (object = next);) {
        next = handle_next(slab, object);
        if (object->context == context)
            handle_free(slab, object);
    }
}

void texture_end(CUcontext context)
{
    end_all(&textures, context);
    end_all(&surfaces, context);
}

CUresult sim_cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource,
                               const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
    struct object *object;
    if (!texture)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = create(&textures, out, resource, &object);
    if (result != CUDA_SUCCESS)
        return result;
    object->texture = *texture;
    object->has_view = view != NULL;
    if (view)
        object->view = *view;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuTexObjectDestroy(CUtexObject texture)
{
    struct object *object = lock_object(&textures, texture, &textures);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    handle_free(&textures, object);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject texture)
{
    const struct object *object = lock_object(&textures, texture, out);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject texture)
{
    const struct object *object = lock_object(&textures, texture, out);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    *out = object->texture;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject texture)
{
    const struct object *object = lock_object(&textures, texture, out);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    if (!object->has_view)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *out = object->view;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource)
{
    struct object *object;
    if (resource && resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = create(&surfaces, out, resource, &object);
    return result != CUDA_SUCCESS ? result : driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuSurfObjectDestroy(CUsurfObject surface)
{
    struct object *object = lock_object(&surfaces, surface, &surfaces);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    handle_free(&surfaces, object);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject surface)
{
    const struct object *object = lock_object(&surfaces, surface, out);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    *out = object->resource;
    return driver_unlock(CUDA_SUCCESS);
}
