/* The quickstart's program, which fills, copies and checks memory, with the real driver or the simulated one.
 * The program finds the driver with dlopen(), as most programs do, and contains its kernel as PTX, so that it
 * needs no toolkit. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int result;
typedef uint64_t device_pointer;

static const char kernel_ptx[] =
    ".version 6.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry fill_u32(.param .u64 out, .param .u32 value, .param .u32 count)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %r<6>;\n"
    "    .reg .b64 %a<4>;\n"
    "    ld.param.u64 %a0, [out];\n"
    "    ld.param.u32 %r0, [value];\n"
    "    ld.param.u32 %r1, [count];\n"
    "    mov.u32 %r2, %ctaid.x;\n"
    "    mov.u32 %r3, %ntid.x;\n"
    "    mov.u32 %r4, %tid.x;\n"
    "    mad.lo.u32 %r5, %r2, %r3, %r4;\n"
    "    setp.ge.u32 %p, %r5, %r1;\n"
    "    @%p bra DONE;\n"
    "    cvta.to.global.u64 %a1, %a0;\n"
    "    mul.wide.u32 %a2, %r5, 4;\n"
    "    add.u64 %a3, %a1, %a2;\n"
    "    st.global.u32 [%a3], %r0;\n"
    "DONE:\n"
    "    ret;\n"
    "}\n";

/* The driver functions that the program uses: name to look up, member, parameters. */
#define FUNCTIONS(F)                                                                                         \
    F(cuInit, init, (unsigned int))                                                                          \
    F(cuDeviceGet, device_get, (int *, int))                                                                 \
    F(cuDevicePrimaryCtxRetain, context_retain, (void **, int))                                              \
    F(cuCtxSetCurrent, context_set, (void *))                                                                \
    F(cuCtxSynchronize, synchronize, (void))                                                                 \
    F(cuDevicePrimaryCtxRelease_v2, context_release, (int))                                                  \
    F(cuModuleLoadData, module_load, (void **, const void *))                                                \
    F(cuModuleGetFunction, module_function, (void **, void *, const char *))                                 \
    F(cuModuleUnload, module_unload, (void *))                                                               \
    F(cuMemAlloc_v2, alloc, (device_pointer *, size_t))                                                      \
    F(cuMemFree_v2, release, (device_pointer))                                                               \
    F(cuMemsetD8_v2, set, (device_pointer, unsigned char, size_t))                                           \
    F(cuMemcpyHtoD_v2, to_device, (device_pointer, const void *, size_t))                                    \
    F(cuMemcpyDtoH_v2, to_host, (void *, device_pointer, size_t))                                            \
    F(cuLaunchKernel, launch,                                                                                \
      (void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,           \
       unsigned int, void *, void **, void **))

static struct {
#define F(name, member, parameters) result(*member) parameters;
    FUNCTIONS(F)
#undef F
} cu;

static void load(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "demo: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
#define F(name, member, parameters)                                                                          \
    cu.member = (result(*) parameters)(uintptr_t)dlsym(driver, #name);                                       \
    if (!cu.member) {                                                                                        \
        fprintf(stderr, "demo: the driver has no " #name "\n");                                              \
        exit(EXIT_FAILURE);                                                                                  \
    }
    FUNCTIONS(F)
#undef F
}

#define TRY(call)                                                                                            \
    do {                                                                                                     \
        const result status_ = cu.call;                                                                      \
        if (status_ != 0) {                                                                                  \
            fprintf(stderr, "demo: %s returned %d\n", #call, status_);                                       \
            exit(EXIT_FAILURE);                                                                              \
        }                                                                                                    \
    } while (0)

static uint32_t words[1 << 14];

static void check(uint32_t count, uint32_t wanted)
{
    for (uint32_t i = 0; i < count; i++) {
        if (words[i] != wanted) {
            fprintf(stderr, "demo: word %u is %x, wanted %x\n", i, words[i], wanted);
            exit(EXIT_FAILURE);
        }
    }
}

static void run_round(void *function, uint32_t round)
{
    uint32_t count = 1024U << round % 5, value = round * 2654435761U;
    device_pointer memory;
    void *parameters[] = { &memory, &value, &count };
    memset(words, 0x5a, count * sizeof(words[0]));
    TRY(alloc(&memory, count * sizeof(words[0])));
    TRY(set(memory, 0, count * sizeof(words[0])));
    TRY(to_device(memory, words, count * sizeof(words[0])));
    TRY(to_host(words, memory, count * sizeof(words[0])));
    check(count, 0x5a5a5a5a);
    TRY(launch(function, (count + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    TRY(synchronize());
    TRY(to_host(words, memory, count * sizeof(words[0])));
    check(count, value);
    TRY(release(memory));
}

int main(int argc, char **argv)
{
    long rounds = 100;
    if (argc == 3 && strcmp(argv[1], "--rounds") == 0)
        rounds = strtol(argv[2], NULL, 10);
    else if (argc != 1) {
        fputs("Usage: demo [--rounds N]\nFills, copies and checks device memory N times (default: 100).\n",
              stderr);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? EXIT_SUCCESS : 2;
    }
    load();
    int device;
    void *context, *module, *function;
    TRY(init(0));
    TRY(device_get(&device, 0));
    TRY(context_retain(&context, device));
    TRY(context_set(context));
    TRY(module_load(&module, kernel_ptx));
    TRY(module_function(&function, module, "fill_u32"));
    for (long round = 0; round < rounds; round++)
        run_round(function, (uint32_t)round);
    TRY(module_unload(module));
    TRY(context_release(device));
    printf("demo: %ld rounds, all correct\n", rounds);
    return EXIT_SUCCESS;
}
