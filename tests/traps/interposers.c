/* A library that limits memory in five ways, as GPU-sharing libraries do, and a program that allocates.
 *
 *   -DLIMITER=NEXT     finds the real function by RTLD_NEXT
 *   -DLIMITER=DLSYM    also exports dlsym, which returns the limited function
 *   -DLIMITER=DLVSYM   calls RTLD_NEXT through a dlsym obtained by dlvsym
 *   -DLIMITER=PROC     also exports cuGetProcAddress, which returns the limited function; finds the real
 *                      function with the real cuGetProcAddress
 *   -DLIMITER=HANDLE   opens the driver itself
 *   -DWEAK             a program that calls cuInit if it exists
 *   -DCUINIT           a library with a cuInit, which finds the next one by RTLD_NEXT
 *   otherwise          the program: interposers linked | dlsym | proc */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NEXT   1
#define DLSYM  2
#define DLVSYM 3
#define PROC   4
#define HANDLE 5
enum { OUT_OF_MEMORY = 2, VERSION = 12000 };
typedef int allocate(unsigned long long *address, size_t bytes);
typedef int ask(const char *name, void **function, int version, uint64_t flags, int *found);

#if defined(LIMITER)
#define EXPORTED __attribute__((visibility("default")))
EXPORTED int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
EXPORTED int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found);

static int asked, refused;
__attribute__((destructor)) static void tell(void)
{
    printf("limit of %d KiB: asked %d, refused %d\n", LIMIT_KIB, asked, refused);
    fflush(stdout);
}

static void *(*look_up(void))(void *, const char *)
{
#if LIMITER == DLVSYM || LIMITER == DLSYM
    static void *(*real)(void *, const char *);
    if (!real)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    return real;
#else
    return dlsym;
#endif
}

static void *find(const char *name)
{
#if LIMITER == HANDLE
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);
#else
    return look_up()(RTLD_NEXT, name);
#endif
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
    static allocate *real;
    asked++;
#if LIMITER == PROC
    int found;
    ask *next = (ask *)find("cuGetProcAddress_v2");
    if (!real && (!next || next("cuMemAlloc", (void **)&real, VERSION, 0, &found) != 0))
        real = NULL;
#endif
    /* RTLD_NEXT does not find the driver if the program opened it with dlopen(). */
    if (!real)
        real = (allocate *)find("cuMemAlloc_v2");
    if (!real)
        real = (allocate *)look_up()(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemAlloc_v2");
    if (bytes > LIMIT_KIB * 1024) {
        refused++;
        return OUT_OF_MEMORY;
    }
    return real(address, bytes);
}

#if LIMITER == PROC
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found)
{
    ask *real = (ask *)find("cuGetProcAddress_v2");
    if (!real)
        real = (ask *)dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuGetProcAddress_v2");
    const int result = real(name, function, version, flags, found);
    if (result == 0 && strcmp(name, "cuMemAlloc") == 0)
        *function = (void *)cuMemAlloc_v2;
    return result;
}
#endif
#if LIMITER == DLSYM
EXPORTED void *dlsym(void *handle, const char *name)
{
    return strcmp(name, "cuMemAlloc_v2") == 0 ? (void *)cuMemAlloc_v2 : look_up()(handle, name);
}
#endif

#elif defined(CUINIT)
int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    int (*real)(unsigned) = (int (*)(unsigned))dlsym(RTLD_NEXT, "cuInit");
    return real ? real(flags) : 100;
}

#elif defined(WEAK)
int cuInit(unsigned flags) __attribute__((weak));
int main(void)
{
    if (cuInit)
        printf("cuInit answers %d\n", cuInit(0));
    else
        puts("no cuInit");
    return 0;
}

#else
#ifdef LINKED
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuCtxCreate_v2(void **context, unsigned flags, int device);
allocate cuMemAlloc_v2;
ask cuGetProcAddress_v2;
#endif

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    int device, found, (*init)(unsigned), (*get)(int *, int), (*create)(void **, unsigned, int);
    void *context;
    unsigned long long address;
    allocate *alloc;
#ifdef LINKED
    init = cuInit;
    get = cuDeviceGet;
    create = cuCtxCreate_v2;
    alloc = cuMemAlloc_v2;
    ask *proc = cuGetProcAddress_v2;
#else
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    init = (int (*)(unsigned))dlsym(driver, "cuInit");
    get = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
    create = (int (*)(void **, unsigned, int))dlsym(driver, "cuCtxCreate_v2");
    alloc = (allocate *)dlsym(driver, "cuMemAlloc_v2");
    ask *proc = (ask *)dlsym(driver, "cuGetProcAddress_v2");
#endif
    if (strcmp(way, "proc") == 0 && proc("cuMemAlloc", (void **)&alloc, VERSION, 0, &found) != 0)
        return 1;
    printf("%d", init(0));
    printf(" %d", get(&device, 0));
    printf(" %d\n", create(&context, 0, device));
    for (size_t kib = 64; kib <= 4096; kib *= 2)
        printf("%zu KiB: %d\n", kib, alloc(&address, kib * 1024));
    fflush(stdout);
    return 0;
}
#endif
