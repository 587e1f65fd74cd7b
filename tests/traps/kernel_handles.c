/* Obtains kernels' handles in every possible way, and launches each kernel under its name at least once.
 * Overwrites each name as soon as the driver has received it. Kernels whose names begin with "hidden" are
 * obtained without the hook, as by libraries that use the driver's own addresses from cuGetExportTable. */
#include "../ensure.h"
#include "cuda_min.h"
#include "simcuda_verify.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule module);
CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int room, CUlibrary library);
CUresult cuFuncGetName(const char **name, CUfunction function);
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

#define OK(call) EXPECT(CUDA_SUCCESS, call)

static void launch(void *handle)
{
    OK(cuLaunchKernel((CUfunction)handle, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

static CUfunction function_of(CUmodule module, const char *name)
{
    static char buffer[128];
    CUfunction function;
    strcpy(buffer, name);
    OK(cuModuleGetFunction(&function, module, buffer));
    memset(buffer, '#', sizeof buffer - 1);
    return function;
}

static void start(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

typedef CUresult get_function(CUfunction *, CUmodule, const char *);
static get_function *past_the_hook(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    simcuda_inner_of *inner = (simcuda_inner_of *)dlsym(driver, "simcuda_inner_function");
    return (get_function *)inner("cuModuleGetFunction");
}

static CUmodule module; /* kept until the context's reset */

/* Obtains a function from its module, twice, and then a kernel and the kernel's function. */
static CUlibrary by_function_and_kernel(void)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    launch(function_of(module, "by_module"));
    launch(function_of(module, "by_module"));
    OK(cuLibraryLoadData(&library, ".visible .entry by_library()", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "by_library"));
    launch(kernel);
    OK(cuKernelGetFunction(&function, kernel));
    launch(function);
    return library;
}

/* Gets handles from the driver's lists of functions and kernels. The hook knows a kernel's name from an
 * earlier call, or from an image that contains only one kernel, or learns the name when the program queries
 * it. */
static void by_lists(CUlibrary library)
{
    CUmodule other;
    CUkernel kernels[2] = { 0 };
    CUfunction function, functions[2] = { 0 };
    const char *name_of;
    OK(cuModuleEnumerateFunctions(functions, 1, module));
    launch(functions[0]);
    OK(cuModuleLoadData(&other, ".entry only_one()"));
    OK(past_the_hook()(&function, other, "only_one"));
    OK(cuModuleEnumerateFunctions(functions, 1, other));
    launch(functions[0]);
    OK(cuModuleUnload(other));
    OK(cuModuleLoadData(&other, ".entry told() .entry another()"));
    OK(past_the_hook()(&function, other, "told"));
    OK(cuModuleEnumerateFunctions(functions, 1, other));
    launch(functions[0]);
    OK(cuFuncGetName(&name_of, functions[0]));
    launch(functions[0]);
    OK(cuModuleUnload(other));
    OK(cuLibraryEnumerateKernels(kernels, 1, library));
    launch(kernels[0]);
}

/* Obtains a kernel from a library's module. After the library has been unloaded, obtains kernels with other
 * names and possibly the same handles, without the hook. The hook dropped the old names when the library was
 * unloaded. */
static void handle_comes_again(CUlibrary library)
{
    CUmodule of_library;
    CUfunction hidden[4];
    const char *name_of;
    int same = 0;
    OK(cuLibraryGetModule(&of_library, library));
    const CUfunction before = function_of(of_library, "of_the_librarys_module");
    launch(before);
    OK(cuLibraryUnload(library));
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "hidden_%d", i);
        OK(past_the_hook()(&hidden[i], module, name));
        same += hidden[i] == before;
        launch(hidden[i]);
    }
    printf("a handle came again: %d\n", same);
    OK(cuFuncGetName(&name_of, hidden[0]));
    launch(hidden[0]);
}

/* Resetting a context destroys its modules, and their handles are reused. */
static void handle_comes_again_after_resets(void)
{
    CUfunction hidden;
    OK(cuModuleLoadData(&module, "image"));
    const CUfunction before = function_of(module, "before_the_reset");
    launch(before);
    OK(cuDevicePrimaryCtxReset_v2(0));
    start();
    OK(cuModuleLoadData(&module, "image"));
    const CUfunction after = function_of(module, "after_the_reset");
    launch(after);
    printf("and after a reset: %d", after == before);
    launch(function_of(module, "kept"));

    /* Reset the context again, but obtain the function without the hook, so that only the driver knows the
     * function's new name. */
    OK(cuDevicePrimaryCtxReset_v2(0));
    start();
    OK(cuModuleLoadData(&module, "image"));
    OK(past_the_hook()(&hidden, module, "hidden_after_the_reset"));
    launch(hidden);
    printf(" %d\n", hidden == before);
}

int main(void)
{
    start();
    OK(cuModuleLoadData(&module, "image"));
    const CUlibrary library = by_function_and_kernel();
    by_lists(library);
    handle_comes_again(library);
    OK(cuModuleUnload(module));
    handle_comes_again_after_resets();
    return 0;
}
