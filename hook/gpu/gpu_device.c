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

typedef int32_t state_function(int32_t device, uint32_t *flags, int32_t *is_active);
typedef int32_t retain_function(void **context, int32_t device);
typedef int32_t release_function(int32_t device);
typedef int32_t push_function(void *context);
typedef int32_t pop_function(void **context);
typedef int32_t create_function(void **event, uint32_t flags);
typedef int32_t record_function(void *context, void *event);
typedef int32_t query_function(void *event);
typedef int32_t destroy_function(void *event);

/* The event is recorded in all streams of the context. */
static bool finish_event(void *context, void *event, const struct ct_gpu_finish *finish)
{
    enum { NOT_READY = 600 }; /* CUDA_ERROR_NOT_READY */
    record_function *record = (record_function *)(uintptr_t)function_of("cuCtxRecordEvent");
    query_function *query = (query_function *)(uintptr_t)function_of("cuEventQuery");
    if (!record || !query || !finish->begin_event())
        return false;
    int32_t result = record(context, event);
    finish->end_event();
    while (result == 0 && (result = query(event)) == NOT_READY && finish->goes_on())
        result = 0;
    return result == 0;
}

static bool finish_context(void *context, const struct ct_gpu_finish *finish)
{
    enum { DISABLE_TIMING = 2 }; /* CU_EVENT_DISABLE_TIMING */
    push_function *push = (push_function *)(uintptr_t)function_of("cuCtxPushCurrent_v2");
    pop_function *pop = (pop_function *)(uintptr_t)function_of("cuCtxPopCurrent_v2");
    create_function *create = (create_function *)(uintptr_t)function_of("cuEventCreate");
    destroy_function *destroy = (destroy_function *)(uintptr_t)function_of("cuEventDestroy_v2");
    void *event;
    if (!push || !pop || !create || !destroy || push(context) != 0)
        return false;
    bool is_finished = false;
    if (create(&event, DISABLE_TIMING) == 0) {
        is_finished = finish_event(context, event, finish);
        destroy(event);
    }
    return pop(&context) == 0 && is_finished;
}

/* Sets *context to the device's primary context, or to NULL if it is not in use. */
static bool finish_device(int32_t device, void **context, const struct ct_gpu_finish *finish)
{
    state_function *get_state = (state_function *)(uintptr_t)function_of("cuDevicePrimaryCtxGetState");
    retain_function *retain = (retain_function *)(uintptr_t)function_of("cuDevicePrimaryCtxRetain");
    release_function *release = (release_function *)(uintptr_t)function_of("cuDevicePrimaryCtxRelease_v2");
    uint32_t flags;
    int32_t is_active;
    *context = NULL;
    if (!get_state || !retain || !release || get_state(device, &flags, &is_active) != 0)
        return false;
    if (!is_active)
        return true;
    if (retain(context, device) != 0)
        return false;
    const bool is_finished = finish_context(*context, finish);
    return release(device) == 0 && is_finished;
}

bool ct_gpu_device_finish(void *const contexts[], size_t count, const struct ct_gpu_finish *finish)
{
    count_function *get_count = (count_function *)(uintptr_t)function_of("cuDeviceGetCount");
    get_function *get = (get_function *)(uintptr_t)function_of("cuDeviceGet");
    int32_t devices, handle;
    size_t finished = 0;
    if (!ct_gpu_driver_is_initialised())
        return true;
    if (!get_count || !get || get_count(&devices) != 0)
        return false;
    for (int32_t device = 0; device < devices; device++) {
        void *context;
        if (get(&handle, device) != 0 || !finish_device(handle, &context, finish))
            return false;
        for (size_t i = 0; i < count; i++)
            finished += contexts[i] == context;
    }
    return finished == count;
}

bool ct_gpu_driver_is_initialised(void)
{
    enum { NOT_INITIALIZED = 3 }; /* CUDA_ERROR_NOT_INITIALIZED */
    count_function *get_count = (count_function *)(uintptr_t)function_of("cuDeviceGetCount");
    int32_t count;
    return !get_count || get_count(&count) != NOT_INITIALIZED;
}
