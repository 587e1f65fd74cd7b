/* sim_pointer.c: what can be asked about an address. Values are those that driver 580 gives for the same memory.
 */
#include "simcuda.h"

#include <string.h>

enum { POINTER_ATTRIBUTE_COUNT = 22 };

union value {
    uint64_t word;
    int number;
};

struct answer {
    CUresult result;
    size_t bytes;
    union value value;
};

static int memory_type(const struct region *region)
{
    return region->kind == REGION_HOST || region->kind == REGION_REGISTERED ? CU_MEMORYTYPE_HOST
                                                                            : CU_MEMORYTYPE_DEVICE;
}

static struct answer number(int value)
{
    return (struct answer){ CUDA_SUCCESS, sizeof(int), { .number = value } };
}

static struct answer word(uint64_t value)
{
    return (struct answer){ CUDA_SUCCESS, sizeof value, { .word = value } };
}

static struct answer flag(bool value)
{
    return (struct answer){ CUDA_SUCCESS, 1, { .word = value } };
}

static struct answer ask(int attribute, const struct region *region, uintptr_t address)
{
    const struct answer refused = { .result = CUDA_ERROR_INVALID_VALUE };
    switch (attribute) {
    case 1: /* CONTEXT */
        return word((uintptr_t)region->context);
    case 2: /* MEMORY_TYPE */
        return number(memory_type(region));
    case 3: /* DEVICE_POINTER */
        return word(address);
    case 4: /* HOST_POINTER */
        return region->kind == REGION_DEVICE ? refused : word(address);
    case 6: /* SYNC_MEMOPS */
        return flag(true);
    case 7:  /* BUFFER_ID */
    case 20: /* MEMORY_BLOCK_ID */
        return word(region->id);
    case 8: /* IS_MANAGED */
        return flag(region->kind == REGION_MANAGED);
    case 9: /* DEVICE_ORDINAL */
        return number(region->device);
    case 10: /* IS_LEGACY_CUDA_IPC_CAPABLE */
        return flag(region->kind == REGION_DEVICE && !region->pool);
    case 11: /* RANGE_START_ADDR */
    case 19: /* MAPPING_BASE_ADDR */
        return word(region->base);
    case 12: /* RANGE_SIZE */
    case 18: /* MAPPING_SIZE */
        return word(region->size);
    case 13: /* MAPPED */
        return flag(true);
    case 14: /* ALLOWED_HANDLE_TYPES */
        return word(0);
    case 15: /* IS_GPU_DIRECT_RDMA_CAPABLE */
        return flag(region->kind == REGION_DEVICE);
    case 16: /* ACCESS_FLAGS */
        return number(3);
    case 17: /* MEMPOOL_HANDLE */
        return word((uintptr_t)region->pool);
    case 21: /* IS_HW_DECOMPRESS_CAPABLE */
        return flag(false);
    default:
        return refused;
    }
}

CUresult sim_cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    driver_lock();
    const struct region *region = region_at((uintptr_t)address);
    if (!value || !region)
        return driver_unlock(CUDA_ERROR_INVALID_VALUE);
    const struct answer answer = ask(attribute, region, (uintptr_t)address);
    if (answer.result == CUDA_SUCCESS)
        memcpy(value, &answer.value, answer.bytes);
    return driver_unlock(answer.result);
}

/* Succeeds for any address: of memory that the driver does not know, the type is 0 and the device -2. */
CUresult sim_cuPointerGetAttributes(unsigned int count, int *attributes, void **values, CUdeviceptr address)
{
    if (!attributes || !values || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    driver_lock();
    const struct region *region = region_at((uintptr_t)address);
    for (unsigned i = 0; i < count; i++) {
        struct answer answer;
        if (attributes[i] < 1 || attributes[i] >= POINTER_ATTRIBUTE_COUNT)
            return driver_unlock(CUDA_ERROR_INVALID_VALUE);
        if (region) {
            answer = ask(attributes[i], region, (uintptr_t)address);
        } else {
            static const struct region nothing;
            answer = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? number(-2)
                                                                          : ask(attributes[i], &nothing, 0);
            answer.value.word = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? answer.value.word : 0;
        }
        if (answer.result == CUDA_SUCCESS && values[i])
            memcpy(values[i], &answer.value, answer.bytes);
    }
    return driver_unlock(CUDA_SUCCESS);
}

CUresult sim_cuPointerSetAttribute(const void *value, int attribute, CUdeviceptr address)
{
    driver_lock();
    const bool valid = value && attribute == 6 && region_at((uintptr_t)address);
    return driver_unlock(valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
