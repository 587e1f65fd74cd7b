/* sim_procaddress.c: cuGetProcAddress and cuGetProcAddress_v2. If there are several functions to choose from,
 * the answer comes from procaddress.def.
 *
 * The results match driver 580, even where that driver contradicts its documentation. For an unknown name or
 * version, cuGetProcAddress_v2 returns CUDA_SUCCESS with a NULL pointer, so only the status shows whether the
 * name or the version was not found. cuGetProcAddress returns CUDA_ERROR_NOT_FOUND and leaves the pointer
 * unchanged. A version above the driver's own is an invalid value. A negative version number means the
 * driver's own version. */
#include "sim_entry.h"
#include "simcuda.h"

#include <stdlib.h>
#include <string.h>

enum stream_choice { any = 3, legacy = 1, thread = 2 };

static const struct choice {
    const char *base;
    int since;
    uint32_t row;
    enum stream_choice stream;
} choices[] = {
#define PROC(base, since, export, stream) { #base, since, ROW_##export, stream },
#include "procaddress.def"
#undef PROC
};

enum { CHOICE_COUNT = sizeof choices / sizeof *choices };

static int compare_base(const void *name, const void *choice)
{
    return strcmp(name, ((const struct choice *)choice)->base);
}

/* Returns the address of a base name's only exported function, whatever the version. Returns NULL for a few
 * exported functions that the real driver never returns. */
static void *only_address(const char *symbol)
{
    const struct sim_function *function = entry_function(symbol);
    const bool given = function && !strchr(symbol, '_') && strncmp(symbol, "cudbg", 5) != 0 &&
                       strcmp(symbol, "cuEGLApiInit") != 0 && strcmp(symbol, "cuMemGetAttribute") != 0;
    return given ? function->address : NULL;
}

/* Returns a function's address, or NULL and the reason why there is none. The rows for a base name are
 * adjacent in the table. */
static void *resolve(const char *symbol, int version, enum stream_choice stream,
                     CUdriverProcAddressQueryResult *why)
{
    const struct choice *at = bsearch(symbol, choices, CHOICE_COUNT, sizeof *choices, compare_base);
    if (!at) {
        void *only = only_address(symbol);
        *why = only ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return only;
    }
    while (at > choices && !strcmp(at[-1].base, symbol))
        at--;
    void *best = NULL;
    *why = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    for (; at < choices + CHOICE_COUNT && !strcmp(at->base, symbol); at++)
        if (at->stream & stream && at->since <= version)
            best = sim_functions[at->row].address;
    if (best)
        *why = CU_GET_PROC_ADDRESS_SUCCESS;
    return best;
}

static CUresult get(const char *symbol, void **address, int version, uint64_t flags,
                    CUdriverProcAddressQueryResult *why)
{
    if (!symbol || !address || version > SIM_DRIVER_VERSION ||
        flags > (CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
        return CUDA_ERROR_INVALID_VALUE;
    const enum stream_choice stream =
        flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? thread : legacy;
    *address = resolve(symbol, version < 0 ? SIM_DRIVER_VERSION : version, stream, why);
    return CUDA_SUCCESS;
}

CUresult sim_cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
                                 CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult why;
    const CUresult result = get(symbol, address, version, flags, &why);
    if (result == CUDA_SUCCESS && status)
        *status = why;
    return result;
}

CUresult sim_cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
    CUdriverProcAddressQueryResult why;
    void *found;
    const CUresult result = get(symbol, address ? &found : NULL, version, flags, &why);
    if (result != CUDA_SUCCESS)
        return result;
    if (!found)
        return CUDA_ERROR_NOT_FOUND;
    *address = found;
    return CUDA_SUCCESS;
}
