/*
 * sim_module.c: modules and their globals. Images are never looked into, but for those of nvrtc.c: a module has
 * every function and every global that it is asked for, unless the name begins with "missing" or is longer
 * than 4 KiB.
 */
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_LIMIT = 4096 };

static struct slab modules = SLAB(struct CUmod_st);
static struct global *globals;

CUmodule module_of(CUmodule module)
{
    return handle_alive(&modules, module) ? module : NULL;
}

bool module_has(const char *name)
{
    return *name && strnlen(name, NAME_LIMIT + 1) <= NAME_LIMIT &&
           strncmp(name, "missing", strlen("missing")) != 0;
}

CUmodule module_new(CUcontext context, CUlibrary library)
{
    CUmodule module = handle_new(&modules);
    if (!module)
        return NULL;
    module->context = context;
    module->library = library;
    module->code = NULL;
    return module;
}

CUresult module_global(const void *owner, CUcontext context, const char *name, struct region **region)
{
    if (!module_has(name))
        return CUDA_ERROR_NOT_FOUND;
    for (struct global *global = globals; global; global = global->next)
        if (global->owner == owner && !strcmp(global->name, name)) {
            *region = global->region;
            return CUDA_SUCCESS;
        }
    struct global *global = calloc(1, sizeof *global);
    char *copy = strdup(name);
    CUresult result =
        global && copy ? region_new(region, context, REGION_DEVICE, GLOBAL_BYTES) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS) {
        free(copy);
        free(global);
        return result;
    }
    memset((void *)(*region)->base, 0, GLOBAL_BYTES);
    *global = (struct global){ .next = globals, .owner = owner, .name = copy, .region = *region };
    globals = global;
    return CUDA_SUCCESS;
}

void module_globals_free(const void *owner)
{
    for (struct global **link = &globals, *global; (global = *link);) {
        if (global->owner != owner) {
            link = &global->next;
            continue;
        }
        *link = global->next;
        region_free(global->region);
        free(global->name);
        free(global);
    }
}

void module_free(CUmodule module)
{
    function_free_all(module);
    module_globals_free(module);
    compiled_unload(module->code);
    module->code = NULL;
    handle_free(&modules, module);
}

void module_end(CUcontext context)
{
    for (CUmodule module = NULL, next = handle_next(&modules, NULL); (module = next);) {
        next = handle_next(&modules, module);
        if (module->context == context)
            module_free(module);
    }
    /* What is left of a library's globals lived in this context's memory too. */
    for (struct global **link = &globals, *global; (global = *link);) {
        if (global->region->context != context) {
            link = &global->next;
            continue;
        }
        *link = global->next;
        region_free(global->region);
        free(global->name);
        free(global);
    }
}

static CUresult load(CUmodule *module, const void *image)
{
    CUcontext context;
    CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || !image)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    void *code;
    result = compiled_load(&code, image);
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    *module = module_new(context, NULL);
    if (!*module) {
        compiled_unload(code);
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    }
    (*module)->code = code;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuModuleLoad(CUmodule *module, const char *path)
{
    if (path && access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    return load(module, path);
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
{
    return load(module, image);
}

CUresult sim_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int option_count, int *options,
                                void **values)
{
    return option_count > 0 && (!options || !values) ? CUDA_ERROR_INVALID_VALUE : load(module, image);
}

CUresult sim_cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return load(module, image);
}

static CUresult lock_module(CUmodule module)
{
    CUcontext context;
    const CUresult result = context_lock_any(&context);
    if (result != CUDA_SUCCESS)
        return result;
    return module_of(module) ? CUDA_SUCCESS : driver_unlock(CUDA_ERROR_INVALID_HANDLE);
}

CUresult sim_cuModuleUnload(CUmodule module)
{
    CUresult result = lock_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    result = capture_forbids_unsafe();
    if (result == CUDA_SUCCESS && module->library)
        result = CUDA_ERROR_INVALID_HANDLE; /* it goes with its library */
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    context_wait(module->context);
    if (module_of(module))
        module_free(module);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const CUresult result = lock_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!function || !name)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    return driver_unlock(function_get(function, module, name, NULL));
}

CUresult sim_cuModuleGetFunctionCount(unsigned int *count, CUmodule module)
{
    const CUresult result = lock_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!count)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *count = 0;
    for (CUfunction function = NULL; (function = function_next(function));)
        *count += function->module == module;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule module)
{
    const CUresult result = lock_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    if (!functions || room == 0)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    for (CUfunction function = NULL; room > 0 && (function = function_next(function));)
        if (function->module == module) {
            *functions++ = function;
            room--;
        }
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module, const char *name)
{
    struct region *region;
    CUresult result = lock_module(module);
    if (result != CUDA_SUCCESS)
        return result;
    result = name ? module_global(module, module->context, name, &region) : CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return driver_unlock(result);
    if (address)
        *address = region->base;
    if (bytes)
        *bytes = region->size;
    return driver_unlock(CUDA_SUCCESS);
}
