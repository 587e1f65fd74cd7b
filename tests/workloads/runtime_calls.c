/* A program that uses the CUDA runtime, as most CUDA programs do. `linked` and `dlsym` make the same calls.
 * `none` looks up runtime functions in a process that has no runtime. The program prints its results, so that
 * they can be compared with and without the hook. */
#include "../ensure.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
    uint32_t x, y, z;
};

enum { WORDS = 4096, ROUNDS = 20 };

/* name, result, parameters */
#define FUNCTIONS(F)                                                                                         \
    F(cudaGetDeviceCount, int, (int *))                                                                      \
    F(cudaSetDevice, int, (int))                                                                             \
    F(cudaMalloc, int, (void **, size_t))                                                                    \
    F(cudaFree, int, (void *))                                                                               \
    F(cudaMemcpy, int, (void *, const void *, size_t, int))                                                  \
    F(cudaMemcpyAsync, int, (void *, const void *, size_t, int, void *))                                     \
    F(cudaMemset, int, (void *, int, size_t))                                                                \
    F(cudaLaunchKernel, int, (const void *, struct dim3, struct dim3, void **, size_t, void *))              \
    F(cudaStreamCreate, int, (void **))                                                                      \
    F(cudaStreamSynchronize, int, (void *))                                                                  \
    F(cudaStreamWaitEvent, int, (void *, void *, unsigned))                                                  \
    F(cudaStreamDestroy, int, (void *))                                                                      \
    F(cudaEventCreate, int, (void **))                                                                       \
    F(cudaEventRecord, int, (void *, void *))                                                                \
    F(cudaEventSynchronize, int, (void *))                                                                   \
    F(cudaEventDestroy, int, (void *))                                                                       \
    F(cudaDeviceSynchronize, int, (void))                                                                    \
    F(cudaGetLastError, int, (void))                                                                         \
    F(cudaGetErrorName, const char *, (int))                                                                 \
    F(cudaGetDriverEntryPointByVersion, int, (const char *, void **, unsigned, unsigned long long, void *))

/* With -DWEAK, the program is not linked with the runtime, and uses it only if it is present. */
#ifdef WEAK
#define F(name, result, parameters) result name parameters __attribute__((weak));
#else
#define F(name, result, parameters) result name parameters;
#endif
FUNCTIONS(F)
#undef F

static struct {
#define F(name, result, parameters) result(*name) parameters;
    FUNCTIONS(F)
#undef F
} cuda;

#define OK(call) EXPECT(0, cuda.call)

static void find(const char *way, const char *path)
{
    if (strcmp(way, "linked") == 0) {
#define F(name, result, parameters) cuda.name = name;
        FUNCTIONS(F)
#undef F
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    printf("cudaNoSuchFunction: %d, ", dlsym(library, "cudaNoSuchFunction") != NULL);
    printf("error: %d\n", dlerror() != NULL);
#define F(name, result, parameters) cuda.name = (result(*) parameters)(uintptr_t)dlsym(library, #name);
    FUNCTIONS(F)
#undef F
}

static void run_round(uint32_t value, void *stream, void *event)
{
    static uint32_t words[WORDS];
    void *memory = NULL;
    uint32_t count = WORDS;
    void *arguments[] = { &memory, &value, &count };
    OK(cudaMalloc(&memory, sizeof(words)));
    OK(cudaMemset(memory, 0, sizeof(words)));
    OK(cudaLaunchKernel("fill_u32", (struct dim3){ WORDS / 256, 1, 1 }, (struct dim3){ 256, 1, 1 }, arguments,
                        0, stream));
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(NULL, event, 0));
    OK(cudaMemcpyAsync(words, memory, sizeof(words), 2, stream));
    OK(cudaStreamSynchronize(stream));
    OK(cudaEventSynchronize(event));
    OK(cudaMemcpy(words, memory, sizeof(words), 2));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(memory));
    for (uint32_t i = 0; i < WORDS; i++) {
        if (words[i] != value) {
            fprintf(stderr, "word %u is %u and not %u\n", i, words[i], value);
            exit(EXIT_FAILURE);
        }
    }
}

#ifdef WEAK
static void look_for_nothing(void)
{
    printf("weak: %d\n", (void *)cudaMalloc != NULL);
    printf("by default: %d, ", dlsym(RTLD_DEFAULT, "cudaMalloc") != NULL);
    printf("error: %d\n", dlerror() != NULL);
    printf("next: %d, ", dlsym(RTLD_NEXT, "cudaMalloc") != NULL);
    printf("error: %d\n", dlerror() != NULL);
    printf("library: %d\n", dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) != NULL);
}
#endif

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "linked";
#ifdef WEAK
    if (strcmp(way, "none") == 0) {
        look_for_nothing();
        return EXIT_SUCCESS;
    }
#endif
    find(way, argc > 2 ? argv[2] : NULL);
    int devices = 0;
    void *stream, *event, *memory;
    OK(cudaGetDeviceCount(&devices));
    OK(cudaSetDevice(0));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    for (uint32_t i = 1; i <= ROUNDS; i++)
        run_round(i * 2654435761u, stream, event);
    EXPECT(2, cuda.cudaMalloc(&memory, (size_t)1 << 50));
    EXPECT(2, cuda.cudaGetLastError());
    printf("%d devices, %s, %s\n", devices, cuda.cudaGetErrorName(0), cuda.cudaGetErrorName(2));
    int (*get_device)(int *) = NULL;
    OK(cudaGetDriverEntryPointByVersion("cuCtxGetDevice", (void **)&get_device, 12000, 0, NULL));
    EXPECT(0, get_device(&devices));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(stream));
    return EXIT_SUCCESS;
}
