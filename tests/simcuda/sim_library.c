/* sim_library.c: libraries and kernels, which do not belong to a context. In each context that uses a kernel,
 * the kernel's library has a module and the kernel has a function. The module and the function are created
 * when they are first needed. */
#include "sim_code.h"

#include <stdlib.h>
#include <string.h>

static struct slab libraries = SLAB(struct CUlib_st);
static struct slab kernels = SLAB(struct CUkern_st);

/* The modules of all libraries, with one module for each library and context. There are so few modules that a
 * linear search is sufficient. */
static CUmodule *library_modules;
static size_t library_module_count;

static CUlibrary library_of(CUlibrary library)
{
    return handle_alive(&libraries, library) ? library : NULL;
}

static CUkernel kernel_of(const void *kernel)
{
    return handle_alive(&kernels, kernel) ? (CUkernel)(uintptr_t)kernel : NULL;
}

static CUresult module_in(CUmodule *module, CUlibrary library, CUcontext context)
{
    size_t dead = library_module_count;
    for (size_t i = 0; i < library_module_count; i++) {
        const CUmodule known = module_of(library_modules[i]);
        if (known && known->library == library && known->context == context) {
            *module = known;
            return CUDA_SUCCESS;
        }
        if (!known || !known->library) /* its context was destroyed, and another module may have reused the
                                        * handle */
            dead = i;
    }
    CUmodule *grown = realloc(library_modules, (library_module_count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    library_modules = grown;
    *module = module_new(context, library);
    if (!*module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    library_modules[dead] = *module;
    if (dead == library_module_count)
        library_module_count++;
    return CUDA_SUCCESS;
}

CUfunction function_of(const void *function_or_kernel, CUcontext context)
{
    const CUkernel kernel = kernel_of(function_or_kernel);
    CUmodule module;
    CUfunction function;
    if (!kernel)
        return function_alive((CUfunction)(uintptr_t)function_or_kernel);
    if (!context || module_in(&module, kernel->library, context) != CUDA_SUCCESS ||
        function_get(&function, module, kernel->name, kernel) != CUDA_SUCCESS)
        return NULL;
    return function;
}

CUresult sim_cuLibraryLoadData(CUlibrary *library, const void *code, void *jit_options, void **jit_values,
                               unsigned int jit_count, void *options, void **values, unsigned int count)
{
    if ((jit_count > 0 && (!jit_options || !jit_values)) || (count > 0 && (!options || !values)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    *library = handle_new(&libraries);
    return driver_unlock(*library ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult sim_cuLibraryUnload(CUlibrary library)
{
    driver_lock();
    if (!library_of(library))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    size_t kept = 0;
    for (size_t i = 0; i < library_module_count; i++) {
        const CUmodule module = module_of(library_modules[i]);
        if (module && module->library == library)
            module_free(module);
        else if (module && module->library)
            library_modules[kept++] = module;
    }
    library_module_count = kept;
    for (CUkernel kernel = NULL; (kernel = handle_next(&kernels, kernel));) {
        if (kernel->library != library)
            continue;
        free(kernel->name);
        handle_free(&kernels, kernel);
    }
    handle_free(&libraries, library);
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    if (!kernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    if (!library_of(library))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    if (!module_has(name))
        return driver_unlock(CUDA_ERROR_NOT_FOUND);
    for (CUkernel known = NULL; (known = handle_next(&kernels, known));)
        if (known->library == library && !strcmp(known->name, name)) {
            *kernel = known;
            return driver_unlock(CUDA_SUCCESS);
        }
    char *copy = strdup(name);
    CUkernel made = copy ? handle_new(&kernels) : NULL;
    if (!made) {
        free(copy);
        return driver_unlock(CUDA_ERROR_OUT_OF_MEMORY);
    }
    made->library = library;
    made->name = copy;
    function_default_attributes(made->attributes);
    *kernel = made;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel *out, unsigned int room, CUlibrary library)
{
    if (!out || room == 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    if (!library_of(library))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    for (CUkernel kernel = NULL; room > 0 && (kernel = handle_next(&kernels, kernel));)
        if (kernel->library == library) {
            *out++ = kernel;
            room--;
        }
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (!library_of(library))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    return driver_unlock(module_in(module, library, context));
}

static CUresult lock_kernel(CUkernel kernel)
{
    driver_lock();
    return kernel_of(kernel) ? CUDA_SUCCESS : driver_unlock(CUDA_ERROR_INVALID_HANDLE);
}

CUresult sim_cuKernelGetName(const char **name, CUkernel kernel)
{
    if (!name || !kernel)
        return CUDA_ERROR_INVALID_VALUE;
    const CUresult result = lock_kernel(kernel);
    if (result != CUDA_SUCCESS)
        return result;
    *name = kernel->name;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!function)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    if (!kernel_of(kernel))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    *function = function_of(kernel, context);
    return driver_unlock(*function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult sim_cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device)
{
    if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_COUNT)
        return CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    const CUresult result = lock_kernel(kernel);
    if (result != CUDA_SUCCESS)
        return result;
    *value = kernel->attributes[attribute];
    return driver_unlock(CUDA_SUCCESS);
}
