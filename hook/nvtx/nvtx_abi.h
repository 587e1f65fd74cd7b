/* The ABI between NVTX and an injection library. The source is nvToolsExt.h, nvToolsExtCuda.h,
 * nvToolsExtCudaRt.h and nvtxDetail/nvtxTypes.h from NVTX 3 in CUDA 13.0 (Apache-2.0 with LLVM exception).
 * NVTX 3's headers keep the ABI compatible with version 2. Only numbers and layouts are taken from the
 * headers. */
#ifndef CT_NVTX_ABI_H
#define CT_NVTX_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

/* The value returned by nvtxRangePush and nvtxRangePop if the level is unknown. */
#define CT_NVTX_NO_PUSH_POP_TRACKING (-2)

enum ct_nvtx_message {
    CT_NVTX_MESSAGE_ASCII = 1,
    CT_NVTX_MESSAGE_UNICODE = 2,
    CT_NVTX_MESSAGE_REGISTERED = 3
};
enum { CT_NVTX_COLOR_ARGB = 1, CT_NVTX_PAYLOAD_COUNT = 7 };

/* nvtxEventAttributes_t, versions 1 to 3. */
struct ct_nvtx_attributes {
    uint16_t version;
    uint16_t size; /* size of the fields that the application has filled in */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type; /* nvtxPayloadType_t, as in struct ct_range, or an extension's type */
    int32_t reserved0;
    union {
        uint64_t u64;
        uint32_t u32;
    } payload;
    int32_t message_type; /* enum ct_nvtx_message, 0 for none */
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};
static_assert(sizeof(struct ct_nvtx_attributes) == 48, "nvtxEventAttributes_t");

/* nvtxResourceAttributes_t, version 0. */
struct ct_nvtx_resource {
    uint16_t version;
    uint16_t size;
    int32_t type; /* enum ct_nvtx_resource_type, or any other value */
    uint64_t identifier;
    int32_t message_type;
    int32_t reserved0;
    union {
        const char *ascii;
        const wchar_t *unicode;
        const void *registered;
    } message;
};
static_assert(sizeof(struct ct_nvtx_resource) == 32, "nvtxResourceAttributes_t");

/* The resource types that cudatrace displays, from nvToolsExt.h, nvToolsExtCuda.h and nvToolsExtCudaRt.h. */
enum ct_nvtx_resource_type {
    CT_NVTX_RESOURCE_THREAD_NATIVE = 1 << 16 | 3,
    CT_NVTX_RESOURCE_CUDA_DEVICE = 4 << 16 | 1,
    CT_NVTX_RESOURCE_CUDA_CONTEXT = 4 << 16 | 2,
    CT_NVTX_RESOURCE_CUDA_STREAM = 4 << 16 | 3,
    CT_NVTX_RESOURCE_CUDA_EVENT = 4 << 16 | 4,
    CT_NVTX_RESOURCE_CUDART_DEVICE = 5 << 16,
    CT_NVTX_RESOURCE_CUDART_STREAM = 5 << 16 | 1,
    CT_NVTX_RESOURCE_CUDART_EVENT = 5 << 16 | 2,
};

/* An application and each of its libraries have separate tables. A table contains pointers to the function
 * pointers through which the client calls. */
enum { CT_NVTX_TABLE_CALLBACKS = 1, CT_NVTX_TABLE_VERSION = 3, CT_NVTX_VERSION = 3 };
enum {
    CT_NVTX_MODULE_CORE = 1,
    CT_NVTX_MODULE_CUDA = 2,
    CT_NVTX_MODULE_CUDART = 4,
    CT_NVTX_MODULE_CORE2 = 5
};

typedef void ct_nvtx_function(void);
typedef const void *ct_nvtx_get_table(uint32_t table);

struct ct_nvtx_callbacks {
    size_t struct_bytes;
    int (*get_module)(uint32_t module, ct_nvtx_function ****table, unsigned *entries);
};

struct ct_nvtx_version {
    size_t struct_bytes;
    uint32_t version; /* of the application */
    uint32_t reserved0;
    void (*set_injection_version)(uint32_t version);
};

#endif
