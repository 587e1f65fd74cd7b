#include "gpu_device.h"

#include "rows.h"

#include <string.h>

/* Returns the driver's own function, without the hook's stub, or NULL. */
static void *function_of(const char *name)
{
    const uint32_t row = ct_row_of_driver(name);
    return row < CT_ROW_COUNT ? ct_rows[row].real : NULL;
}

typedef int32_t count_function(int32_t *count);
typedef int32_t get_function(int32_t *device, int32_t ordinal);
typedef int32_t address_function(char *text, int32_t bytes, int32_t device);
typedef int32_t uuid_function(uint8_t uuid[16], int32_t device);

/* Reads a hexadecimal number, and the separator after it. Returns the text after both, or NULL. */
static const char *read_hex(const char *text, char separator, uint32_t *number)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = text;
    for (*number = 0; *at && *at != separator; at++) {
        const char *digit = strchr(digits, *at);
        if (!digit)
            return NULL;
        *number = *number << 4 | ((uint32_t)(digit - digits) & 15);
    }
    return at > text && *at ? at + 1 : NULL;
}

/* The text is DOMAIN:BUS:DEVICE.FUNCTION. */
static bool get_address(int32_t handle, struct ct_device *device)
{
    address_function *address = (address_function *)(uintptr_t)function_of("cuDeviceGetPCIBusId");
    char text[32] = "";
    uint32_t bus = 0, slot = 0;
    if (!address || address(text, sizeof(text), handle) != 0)
        return false;
    const char *at = read_hex(text, ':', &device->pci_domain);
    at = at ? read_hex(at, ':', &bus) : NULL;
    if (!at || !read_hex(at, '.', &slot))
        return false;
    device->pci_bus = (uint8_t)bus;
    device->pci_slot = (uint8_t)slot;
    return true;
}

/* cuDeviceGetUuid() returns the UUID of the GPU. If the GPU is divided, the second version of the function,
 * from CUDA 11.4 on, returns the UUID of the instance (docs.nvidia.com/cuda/cuda-driver-api, CUDA_DEVICE). */
static bool get_uuids(int32_t handle, struct ct_device *device)
{
    uuid_function *of_gpu = (uuid_function *)(uintptr_t)function_of("cuDeviceGetUuid");
    uuid_function *own = (uuid_function *)(uintptr_t)function_of("cuDeviceGetUuid_v2");
    if (!of_gpu || of_gpu(device->gpu_uuid, handle) != 0)
        return false;
    if (!own || own(device->own_uuid, handle) != 0)
        memcpy(device->own_uuid, device->gpu_uuid, sizeof(device->own_uuid));
    return true;
}

bool ct_gpu_device_query(uint32_t number, struct ct_device *device)
{
    get_function *get = (get_function *)(uintptr_t)function_of("cuDeviceGet");
    int32_t handle;
    *device = (struct ct_device){ 0 };
    return number <= INT32_MAX && get && get(&handle, (int32_t)number) == 0 && get_address(handle, device) &&
           get_uuids(handle, device);
}

bool ct_gpu_driver_is_initialised(void)
{
    enum { NOT_INITIALIZED = 3 }; /* CUDA_ERROR_NOT_INITIALIZED */
    count_function *get_count = (count_function *)(uintptr_t)function_of("cuDeviceGetCount");
    int32_t count;
    return !get_count || get_count(&count) != NOT_INITIALIZED;
}
