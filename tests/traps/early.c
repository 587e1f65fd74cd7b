/* A program that makes calls as early as possible and in unusual places. One such place is a malloc that
 * looks up the next malloc (-DALLOCATOR, preloaded before or after the hook), and another is .preinit_array.
 * A third place is the constructor of a library that is being opened (-DPLUGIN), which runs with the loader's
 * lock held while other threads make their first calls. */
#include "cuda_min.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(ALLOCATOR)

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static _Alignas(16) char early[65536];
static size_t early_used;
static volatile int inside; /* volatile, because the compiler assumes that dlsym does not call back into this
                             * file */

/* Works like an allocator that wraps another one. dlsym may itself call malloc, for instance for an error
 * text. */
void *malloc(size_t bytes)
{
    if (!next_malloc && !inside) {
        inside = 1;
        dlsym(RTLD_DEFAULT, "cuNoSuchFunction");
        next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
        next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
        inside = 0;
    }
    if (next_malloc)
        return next_malloc(bytes);
    void *piece = early + early_used;
    early_used += (bytes + 15) & ~(size_t)15;
    return early_used <= sizeof early ? piece : NULL;
}

void free(void *piece)
{
    if (next_free && ((char *)piece < early || (char *)piece >= early + sizeof early))
        next_free(piece);
}

#elif defined(PLUGIN)

static int version;

__attribute__((constructor)) static void begin(void)
{
    CUresult (*get)(int *) = (CUresult(*)(int *))dlsym(RTLD_DEFAULT, "cuDriverGetVersion");
    if (!get || cuInit(0) != CUDA_SUCCESS || get(&version) != CUDA_SUCCESS)
        version = -1;
}

int plugin_version(void)
{
    return version;
}

#else

static CUresult first = CUDA_ERROR_UNKNOWN;

static void earliest(void)
{
    first = cuInit(0);
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = earliest;

enum { THREADS = 8 };
static pthread_barrier_t barrier;

static void *call(void *bad)
{
    CUcontext context;
    int version = 0;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 200; i++)
        if (cuCtxGetCurrent(&context) != CUDA_SUCCESS || cuDriverGetVersion(&version) != CUDA_SUCCESS)
            *(int *)bad = 1;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    pthread_t threads[THREADS];
    int bad = 0;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call, &bad);
    pthread_barrier_wait(&barrier);
    void *plugin = dlopen(argv[1], RTLD_NOW);
    int (*version)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_version") : NULL;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d %d\n", first, version ? version() : -2, bad, getenv("CUDATRACE_SESSION") != NULL);
    return 0;
}

#endif
