/* sim_function.c: functions, their names and attributes, and how many of a function's blocks fit on a
 * multiprocessor. */
#include "sim_code.h"

#include <stdlib.h>
#include <string.h>

static struct slab functions = SLAB(struct CUfunc_st);

CUfunction function_alive(CUfunction function)
{
    return handle_alive(&functions, function) ? function : NULL;
}

CUfunction function_next(const void *previous)
{
    return handle_next(&functions, previous);
}

/* The attributes of a small kernel that was compiled for compute capability 9.0. */
void function_default_attributes(int attributes[CU_FUNC_ATTRIBUTE_COUNT])
{
    static const int defaults[CU_FUNC_ATTRIBUTE_COUNT] = {
        [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
        [CU_FUNC_ATTRIBUTE_NUM_REGS] = 10,
        [5] = 90, /* PTX_VERSION */
        [6] = 90, /* BINARY_VERSION */
        [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152,
        [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1,
    };
    memcpy(attributes, defaults, sizeof defaults);
}

CUresult function_get(CUfunction *function, CUmodule module, const char *name, CUkernel kernel)
{
    if (!module_has(name))
        return CUDA_ERROR_NOT_FOUND;
    for (CUfunction there = NULL; (there = function_next(there));)
        if (there->module == module && there->kernel == kernel && !strcmp(there->name, name)) {
            *function = there;
            return CUDA_SUCCESS;
        }
    const struct kernel_code *known = kernel_code_named(name);
    struct kernel_code code = known && !module->code ? *known : (struct kernel_code){ 0 };
    if (module->code && !kernel_code_compiled(&code, module->code, name))
        return CUDA_ERROR_NOT_FOUND;
    CUfunction made = handle_new(&functions);
    char *copy = strdup(name);
    if (!made || !copy) {
        free(copy);
        if (made)
            handle_free(&functions, made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    made->module = module;
    made->name = copy;
    made->code = code;
    made->kernel = kernel;
    function_default_attributes(made->attributes);
    if (kernel)
        memcpy(made->attributes, kernel->attributes, sizeof made->attributes);
    *function = made;
    return CUDA_SUCCESS;
}

void function_free_all(CUmodule module)
{
    for (CUfunction function = NULL; (function = function_next(function));) {
        if (function->module != module)
            continue;
        free(function->name);
        handle_free(&functions, function);
    }
}

/* Looks up the function, with the lock held. If the handle is a CUkernel, returns the kernel's function in
 * the current context. */
static CUresult find(CUfunction *function, CUcontext current)
{
    *function = function_of(*function, current);
    return *function ? CUDA_SUCCESS : driver_unlock(CUDA_ERROR_INVALID_HANDLE);
}

static CUresult lock_function(CUfunction *function)
{
    CUcontext context;
    const CUresult result = context_lock_any(&context);
    return result != CUDA_SUCCESS ? result : find(function, context);
}

/* Takes the lock for calls that depend on the device. Such calls also need a current context. */
static CUresult lock_function_here(CUfunction *function)
{
    CUcontext context;
    const CUresult result = context_lock(&context);
    return result != CUDA_SUCCESS ? result : find(function, context);
}

CUresult sim_cuFuncGetName(const char **name, CUfunction function)
{
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    if (!function_alive(function))
        return driver_unlock(CUDA_ERROR_INVALID_HANDLE);
    *name = function->name;
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    const CUresult result = lock_function(&function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!value || attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_COUNT)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *value = function->attributes[attribute];
    return driver_unlock(CUDA_SUCCESS);
}

/* ---- Occupancy, which is the minimum of the limits for threads, blocks, registers and shared memory. */

static int resident_blocks(const struct CUfunc_st *function, int block_size, size_t shared_bytes)
{
    const int most_threads = device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    const size_t reserved = (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    const size_t all_shared =
        (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    if (block_size > function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] ||
        shared_bytes > (size_t)function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return 0;
    const int warps = (block_size + 31) / 32;
    const int registers = (function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] + 7) / 8 * 8 * 32 * warps;
    const int limits[] = {
        device_attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        most_threads / 32 / warps,
        device_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) / registers,
        (int)(all_shared / (shared_bytes + reserved)),
    };
    int least = limits[0];
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
        if (limits[i] < least)
            least = limits[i];
    return least;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                                  int block_size, size_t shared_bytes,
                                                                  unsigned int flags)
{
    const CUresult result = lock_function_here(&function);
    if (result != CUDA_SUCCESS)
        return result;
    if (!blocks || block_size <= 0 || flags > 1)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    *blocks = resident_blocks(function, block_size, shared_bytes);
    return driver_unlock(CUDA_SUCCESS);
}

/* `shared_of` is the program's callback, and runs without the lock. The callback returns the amount of shared
 * memory that a block of a given size needs. */
CUresult sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                       CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                                       int limit, unsigned int flags)
{
    if (!grid || !block || flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    const int largest = limit > 0 && limit < 1024 ? limit : 1024;
    int best_threads = 0;
    for (int size = largest; size > 0; size -= size % 32 ? size % 32 : 32) {
        int blocks;
        const CUresult result = sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, function, size, shared_of ? shared_of(size) : shared_bytes, 0);
        if (result != CUDA_SUCCESS)
            return result;
        if (blocks * size > best_threads) {
            best_threads = blocks * size;
            *block = size;
            *grid = blocks * device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        }
    }
    return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                              CUoccupancyB2DSize shared_of, size_t shared_bytes, int limit)
{
    return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared_bytes,
                                                         limit, 0);
}
