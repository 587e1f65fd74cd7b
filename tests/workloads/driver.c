/* driver.c: fills in the table of driver functions, in each of the ways that programs use. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct driver cu;

static _Noreturn void missing(const char *what)
{
    fprintf(stderr, "the driver has no %s\n", what);
    exit(1);
}

static void open_linked(void)
{
    cu = (struct driver){
#define DRIVER(name, version, export) .name = export,
#include "driver.def"
#undef DRIVER
    };
}

static void *open_library(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

static void *look_up(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (!address)
        missing(name);
    return address;
}

static void open_dlsym(void)
{
    void *library = open_library();
#define DRIVER(name, version, export) cu.name = (__typeof__(cu.name))look_up(library, #export);
#include "driver.def"
#undef DRIVER
}

/* As libcudart has done since 11.3, calls dlsym() once, and obtains all other functions through the
 * result. */
static void open_procaddress(void)
{
    __typeof__(&cuGetProcAddress_v2) get =
        (__typeof__(&cuGetProcAddress_v2))look_up(open_library(), "cuGetProcAddress_v2");
    CUdriverProcAddressQueryResult status;
    void *address;
#define DRIVER(name_, version_, export_)                                                                     \
    if (get("cu" #name_, &address, version_, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||        \
        status != CU_GET_PROC_ADDRESS_SUCCESS)                                                               \
        missing("cu" #name_);                                                                                \
    cu.name_ = (__typeof__(cu.name_))address;
#include "driver.def"
#undef DRIVER
}

void driver_open(enum via via)
{
    static void (*const ways[])(void) = {
        [VIA_LINKED] = open_linked,
        [VIA_DLSYM] = open_dlsym,
        [VIA_PROCADDRESS] = open_procaddress,
    };
    ways[via]();
}
