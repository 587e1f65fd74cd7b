/* Looks up driver and runtime functions as package loaders do, and prints each function's library and name.
 * argv[1] is the path of a runtime library. */
#include "cuda_min.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void print(const char *way, void *address)
{
    Dl_info info, detailed;
    const ElfW(Sym) *symbol = NULL;
    const int found = dladdr(address, &info),
              again = dladdr1(address, &detailed, (void **)&symbol, RTLD_DL_SYMENT);
    if (!found || !again)
        printf("%s: not found\n", way);
    else
        printf("%s: %s %s, %s %s, %s\n", way, strrchr(info.dli_fname, '/'), info.dli_sname,
               strrchr(detailed.dli_fname, '/'), detailed.dli_sname, symbol ? "a symbol" : "no symbol");
}

int main(int argc, char **argv)
{
    void *runtime = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW), *function = NULL;
    print("linked", (void *)(uintptr_t)cuInit);
    print("dlsym", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    if (cuGetProcAddress_v2("cuInit", &function, 12000, 0, NULL) == 0)
        print("cuGetProcAddress", function);
    print("cuGetExportTable", dlsym(RTLD_DEFAULT, "cuGetExportTable"));
    for (const char *const *name = (const char *const[]){ "cudaMalloc", "cudaRuntimeGetVersion", NULL };
         *name; name++)
        print(*name, dlsym(runtime, *name));
    print("printf", dlsym(RTLD_DEFAULT, "printf"));
    print("a variable", &function);
    return 0;
}
