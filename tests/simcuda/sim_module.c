/* sim_module.c: modules. Images are never read, except for those made by nvrtc.c. A program can get a
 * function of any name from any module, unless the name begins with "missing" or is longer than 4 KiB. */
#include "sim_graph.h"

#include <string.h>

enum { NAME_LIMIT = 4096 };

static struct slab modules = SLAB(struct CUmod_st);

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

void module_free(CUmodule module)
{
    function_free_all(module);
    compiled_unload(module->code);
    module->code = NULL;
    handle_free(&modules, module);
}

void module_end(CUcontext context)
{
    for (CUmodule module = NULL; (module = handle_next(&modules, module));)
        if (module->context == context)
            module_free(module);
}

CUresult sim_cuModuleLoadData(CUmodule *module, const void *image)
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
        result = CUDA_ERROR_INVALID_HANDLE; /* the module can be unloaded only together with its library */
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
