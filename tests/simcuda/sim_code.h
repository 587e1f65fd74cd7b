/* sim_code.h: modules, libraries, functions and kernels, and kernel launches. */
#ifndef SIMCUDA_CODE_H
#define SIMCUDA_CODE_H

#include "simcuda.h"

/* ---- sim_launch.c, sim_kernel.c */
enum { KERNEL_MAX_PARAMS = 48 };

struct launch {
    CUfunction function;
    uint64_t function_generation;
    unsigned grid[3], block[3], shared_bytes;
    uint64_t values[KERNEL_MAX_PARAMS]; /* copies of the parameters, if the kernel has code */
};
/* The code of a kernel: `run` if the kernel is known by its name, and `compiled` if it was compiled for the
 * host. If `run` and `compiled` are NULL, a launch changes nothing. */
struct kernel_code {
    size_t param_count;
    const size_t *param_bytes;
    CUresult (*run)(const uint64_t params[KERNEL_MAX_PARAMS]);
    void (*compiled)(void *const *params, const unsigned *grid, const unsigned *block);
};
const struct kernel_code *kernel_code_named(const char *name);
bool kernel_code_compiled(struct kernel_code *code, void *compiled, const char *name);
CUresult kernel_copy_params(const struct kernel_code *code, uint64_t values[KERNEL_MAX_PARAMS],
                            void **params);
CUresult kernel_run(const struct launch *launch);
CUresult launch_prepare(struct launch *launch, CUcontext context, void *function_or_kernel, void **params,
                        void **extra);
CUresult launch_check(const struct launch *launch);

/* ---- sim_module.c, sim_library.c, sim_function.c */
struct CUmod_st {
    struct handle handle;
    CUcontext context;
    CUlibrary library; /* the library that this module instantiates in its context, or NULL */
    void *code;        /* the loaded shared object if the image contains host code */
};

struct CUfunc_st {
    struct handle handle;
    CUmodule module;
    char *name;
    struct kernel_code code;
    int attributes[CU_FUNC_ATTRIBUTE_COUNT];
    CUkernel kernel;
};

struct CUlib_st {
    struct handle handle;
};

struct CUkern_st {
    struct handle handle;
    CUlibrary library;
    char *name;
    int attributes[CU_FUNC_ATTRIBUTE_COUNT];
};

/* ---- compiled.c */
size_t compiled_bytes(const void *image); /* size in bytes of an image that contains host code, or 0 for any
                                           * other image */
CUresult compiled_load(void **code, const void *image);
void compiled_unload(void *code);
const struct compiled_kernel *compiled_kernel_named(void *code, const char *name);

CUmodule module_of(CUmodule module);
CUmodule module_new(CUcontext context, CUlibrary library);
void module_free(CUmodule module);
void module_end(CUcontext context);
bool module_has(const char *name);
CUfunction function_of(const void *function_or_kernel, CUcontext context); /* created on first use */
CUfunction function_alive(CUfunction function);
CUresult function_get(CUfunction *function, CUmodule module, const char *name, CUkernel kernel);
CUfunction function_next(const void *previous);
void function_free_all(CUmodule module);
void function_default_attributes(int attributes[CU_FUNC_ATTRIBUTE_COUNT]);

#endif
