/* sim_kernel.c: kernels that have code on the simulated device, because they are known by name or were
 * compiled for the host (compiled.c). Kernels without code can also be launched. Launching a kernel without
 * code takes time but changes nothing, because the image is never read. */
#include "sim_code.h"

#include "compiled.h"

#include <string.h>

static_assert((int)KERNEL_MAX_PARAMS == (int)COMPILED_MAX_PARAMS, "params");

/* fill_u32(uint32_t *at, uint32_t value, uint32_t count) */
static CUresult fill_u32(const uint64_t params[KERNEL_MAX_PARAMS])
{
    const uintptr_t at = (uintptr_t)params[0];
    const uint32_t value = (uint32_t)params[1], count = (uint32_t)params[2];
    if (count == 0)
        return CUDA_SUCCESS;
    if (at % sizeof value != 0)
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    if (!region_holding(at, (size_t)count * sizeof value))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (uint32_t *word = (uint32_t *)at, *end = word + count; word < end; word++)
        *word = value;
    return CUDA_SUCCESS;
}

static const struct {
    const char *name;
    struct kernel_code code;
} codes[] = {
    { "fill_u32", { 3, (const size_t[]){ 8, 4, 4 }, fill_u32, NULL } },
};

const struct kernel_code *kernel_code_named(const char *name)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (!strcmp(codes[i].name, name))
            return &codes[i].code;
    return NULL;
}

bool kernel_code_compiled(struct kernel_code *code, void *compiled, const char *name)
{
    const struct compiled_kernel *kernel = compiled_kernel_named(compiled, name);
    if (!kernel || kernel->param_count > KERNEL_MAX_PARAMS)
        return false;
    for (size_t i = 0; i < kernel->param_count; i++)
        if (kernel->param_bytes[i] > sizeof(uint64_t))
            return false;
    *code = (struct kernel_code){ kernel->param_count, kernel->param_bytes, NULL, kernel->run };
    return true;
}

CUresult kernel_copy_params(const struct kernel_code *code, uint64_t values[KERNEL_MAX_PARAMS], void **params)
{
    for (size_t i = 0; i < code->param_count; i++) {
        if (!params || !params[i])
            return CUDA_ERROR_INVALID_VALUE;
        values[i] = 0;
        memcpy(&values[i], params[i], code->param_bytes[i]);
    }
    return CUDA_SUCCESS;
}

CUresult kernel_run(const struct launch *launch)
{
    const struct kernel_code *code = &launch->function->code;
    if (code->run)
        return code->run(launch->values);
    if (!code->compiled)
        return CUDA_SUCCESS;
    void *params[KERNEL_MAX_PARAMS];
    for (size_t i = 0; i < code->param_count; i++)
        params[i] = (void *)(uintptr_t)&launch->values[i];
    code->compiled(params, launch->grid, launch->block);
    return CUDA_SUCCESS;
}
