/* Prints what dlerror() returns after calls to the driver and look-ups of its names. dlerror() must report
 * every failure of the program's own look-ups, and no failure of the hook's. With -DLATE, the program loads
 * the driver at run time. */
#include "cuda_min.h"

#include <dlfcn.h>
#include <stdio.h>

typedef CUresult init_function(unsigned flags);
typedef CUresult count_function(int *count);
typedef CUresult version_function(int *version);

static void say(const char *what, const void *found)
{
    const char *text = dlerror();
    printf("%s: %s, %s", what, found ? "found" : "not there", text ? text : "no error");
    printf(", then %s\n", dlerror() ? "one" : "none");
}

int main(void)
{
    int number;
    void *library = dlopen("libc.so.6", RTLD_NOW);
#ifdef LATE
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    init_function *init = (init_function *)dlsym(driver, "cuInit");
    count_function *count = (count_function *)dlsym(driver, "cuDeviceGetCount");
    version_function *version = (version_function *)dlsym(driver, "cuDriverGetVersion");
    say("the driver's functions", init && count && version ? driver : NULL);
#else
    init_function *const init = cuInit;
    count_function *const count = cuDeviceGetCount;
    version_function *const version = cuDriverGetVersion;
    say("at the start", library);
#endif
    dlopen("libnosuch.so", RTLD_NOW);
    init(0);
    say("a library that is not there, and the first call", NULL);
    dlsym(RTLD_DEFAULT, "nosuch");
    count(&number);
    say("a symbol that is not there, and another function", NULL);
    dlsym(library, "nosuch");
    count(&number);
    say("the same, and a function again", NULL);
    version(&number);
    say("a call alone", NULL);
    say("of a library that has it not, cuNoSuch", dlsym(library, "cuNoSuch"));
    say("of all, cuNoSuch", dlsym(RTLD_DEFAULT, "cuNoSuch"));
    say("of a library that has it not, cuInit", dlsym(library, "cuInit"));
    say("of a library that has it not, cudaMalloc", dlsym(library, "cudaMalloc"));
    say("of all, cudaMalloc", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    say("a version that is not there", dlvsym(library, "cuInit", "X"));
#ifdef LATE
    say("of the driver, cuInit", dlsym(driver, "cuInit"));
    say("of the driver, cuNoSuch", dlsym(driver, "cuNoSuch"));
    dlsym(library, "nosuch");
    say("a failure, and a success behind it", dlsym(driver, "cuMemAlloc_v2"));
#else
    say("of all, cuInit", dlsym(RTLD_DEFAULT, "cuInit"));
    say("the next, cuInit", dlsym(RTLD_NEXT, "cuInit"));
    dlsym(library, "nosuch");
    say("a failure, and a success behind it", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
#endif
    dlsym(library, "cuNoSuch");
    say("a failure, and a success of another name", dlsym(library, "malloc"));
    return 0;
}
