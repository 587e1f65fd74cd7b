/* nvtx_client.h: the program's side of NVTX, written without NVTX's headers. The tables and the order of
 * loading follow NVTX 3 (nvToolsExt.h, nvToolsExtCuda.h, nvToolsExtCudaRt.h, nvtxDetail/nvtxInit.h and
 * nvtxTypes.h; Apache-2.0 with LLVM exception). Only one file of a program may include this header, because
 * the header defines the tables. */
#ifndef NVTX_CLIENT_H
#define NVTX_CLIENT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

struct nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    union {
        uint64_t u64;
        int64_t i64;
        double d;
        uint32_t u32;
        int32_t i32;
        float f;
    } payload;
    int32_t message_type;
    union {
        const char *ascii;
        const wchar_t *unicode;
        void *registered;
    } message;
};

struct nvtx_resource {
    uint16_t version, size;
    int32_t type;
    uint64_t identifier;
    int32_t message_type;
    const void *message;
};

/* The functions of each module, which are NULL until a tool fills them in. Each table's first entry is
 * unused. */
static struct {
    void (*none)(void);
    void (*MarkEx)(const struct nvtx_attributes *);
    void (*MarkA)(const char *);
    void (*MarkW)(const wchar_t *);
    uint64_t (*RangeStartEx)(const struct nvtx_attributes *);
    uint64_t (*RangeStartA)(const char *);
    uint64_t (*RangeStartW)(const wchar_t *);
    void (*RangeEnd)(uint64_t);
    int (*RangePushEx)(const struct nvtx_attributes *);
    int (*RangePushA)(const char *);
    int (*RangePushW)(const wchar_t *);
    int (*RangePop)(void);
    void (*NameCategoryA)(uint32_t, const char *);
    void (*NameCategoryW)(uint32_t, const wchar_t *);
    void (*NameOsThreadA)(uint32_t, const char *);
    void (*NameOsThreadW)(uint32_t, const wchar_t *);
} nvtx;

static struct {
    void (*none)(void);
    void (*NameDeviceA)(uint32_t, const char *);
    void (*NameDeviceW)(uint32_t, const wchar_t *);
    void (*NameContextA)(void *, const char *);
    void (*NameContextW)(void *, const wchar_t *);
    void (*NameStreamA)(void *, const char *);
    void (*NameStreamW)(void *, const wchar_t *);
    void (*NameEventA)(void *, const char *);
    void (*NameEventW)(void *, const wchar_t *);
} nvtx_cuda;

static struct {
    void (*none)(void);
    void (*NameDeviceA)(uint32_t, const char *);
    void (*NameDeviceW)(uint32_t, const wchar_t *);
    void (*NameStreamA)(void *, const char *);
    void (*NameStreamW)(void *, const wchar_t *);
    void (*NameEventA)(void *, const char *);
    void (*NameEventW)(void *, const wchar_t *);
} nvtx_cudart;

static struct {
    void (*none)(void);
    void (*MarkEx)(void *, const struct nvtx_attributes *);
    uint64_t (*RangeStartEx)(void *, const struct nvtx_attributes *);
    void (*RangeEnd)(void *, uint64_t);
    int (*RangePushEx)(void *, const struct nvtx_attributes *);
    int (*RangePop)(void *);
    void *(*ResourceCreate)(void *, const struct nvtx_resource *);
    void (*ResourceDestroy)(void *);
    void (*NameCategoryA)(void *, uint32_t, const char *);
    void (*NameCategoryW)(void *, uint32_t, const wchar_t *);
    void *(*RegisterStringA)(void *, const char *);
    void *(*RegisterStringW)(void *, const wchar_t *);
    void *(*CreateA)(const char *);
    void *(*CreateW)(const wchar_t *);
    void (*Destroy)(void *);
    void (*Initialize)(const void *);
} nvtx_domain;

static uint32_t nvtx_injection_version;

typedef void nvtx_function(void);

static int nvtx_get_module(uint32_t number, nvtx_function ****table, unsigned *entries)
{
    enum { TABLE_MAX = 20 };
#define NVTX_MODULE(number, table)                                                                           \
    {                                                                                                        \
        number, sizeof(table) / sizeof(nvtx_function *), (nvtx_function **)&(table)                          \
    }
    static const struct {
        uint32_t number;
        unsigned entries;
        nvtx_function **functions;
    } modules[] = { NVTX_MODULE(1, nvtx), NVTX_MODULE(2, nvtx_cuda), NVTX_MODULE(4, nvtx_cudart),
                    NVTX_MODULE(5, nvtx_domain) };
#undef NVTX_MODULE
    static nvtx_function **tables[sizeof(modules) / sizeof(modules[0])][TABLE_MAX];
    for (size_t m = 0; m < sizeof(modules) / sizeof(modules[0]); m++) {
        if (modules[m].number != number)
            continue;
        for (unsigned i = 1; i < modules[m].entries; i++)
            tables[m][i] = modules[m].functions + i;
        *table = tables[m];
        *entries = modules[m].entries;
        return 1;
    }
    return 0;
}

static void nvtx_set_injection_version(uint32_t version)
{
    nvtx_injection_version = version;
}

static bool nvtx_is_old; /* NVTX 3's first release does not query the tool's version */

static const void *nvtx_get_table(uint32_t table)
{
    static const struct {
        size_t bytes;
        int (*get_module)(uint32_t, nvtx_function ****, unsigned *);
    } callbacks = { sizeof(callbacks), nvtx_get_module };
    static const struct {
        size_t bytes;
        uint32_t version, reserved;
        void (*set_injection_version)(uint32_t);
    } version = { sizeof(version), 3, 0, nvtx_set_injection_version };
    return table == 1 ? (const void *)&callbacks : table == 3 && !nvtx_is_old ? (const void *)&version : NULL;
}

/* Makes the tool in `library` fill in the tables. If `library` is RTLD_DEFAULT, the tool may be in any loaded
 * library. Returns false if there is no tool, or if the tool refuses. */
static bool nvtx_load(void *library)
{
    int (*initialize)(const void *(*)(uint32_t)) =
        (int (*)(const void *(*)(uint32_t)))(uintptr_t)dlsym(library, "InitializeInjectionNvtx2");
    return initialize && initialize(nvtx_get_table) == 1;
}

#endif
