/* Walks and unwinds the stack across a call, starting in a function that the driver calls back. "walk" prints
 * the program's functions in a backtrace from that function. "leave" ends the thread from there, which runs
 * clean-up handlers on the way out. */
#include "cuda_min.h"

#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef size_t block_size_function(int);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
                                          block_size_function *shared_of, size_t shared_bytes, int limit);

static CUfunction function;
static int leaves, depth;

static size_t shared_of(int block_size)
{
    (void)block_size;
    if (leaves)
        pthread_exit(&leaves);
    if (depth++ == 0) {
        void *frames[64];
        const int count = backtrace(frames, 64);
        char **names = backtrace_symbols(frames, count);
        for (int i = 0; i < count; i++) {
            const char *name = strchr(names[i], '(');
            if (name && (strncmp(name, "(outer", 6) == 0 || strncmp(name, "(middle", 7) == 0))
                printf("%.*s\n", (int)strcspn(name + 1, "+)"), name + 1);
        }
    }
    return 0;
}

static void clean_up(void *what)
{
    printf("cleaned up: %s\n", (const char *)what);
}

__attribute__((noinline)) void middle(void)
{
    int grid, block;
    pthread_cleanup_push(clean_up, "middle");
    const CUresult status = cuOccupancyMaxPotentialBlockSize(&grid, &block, function, shared_of, 0, 0);
    printf("middle: %d %d\n", status, block);
    pthread_cleanup_pop(0);
}

__attribute__((noinline)) void *outer(void *context)
{
    pthread_cleanup_push(clean_up, "outer");
    cuCtxSetCurrent(context);
    middle();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(int argc, char **argv)
{
    CUcontext context;
    CUmodule module;
    pthread_t thread;
    void *result;
    leaves = argc == 2 && strcmp(argv[1], "leave") == 0;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "image") || cuModuleGetFunction(&function, module, "kernel"))
        return 1;
    for (int i = 0; i < 3; i++) {
        depth = 0;
        pthread_create(&thread, NULL, outer, context);
        pthread_join(thread, &result);
        printf("left from inside: %d\n", result == &leaves);
    }
    cuCtxGetCurrent(&context);
    return 0;
}
