/* Loads and unloads libraries: the driver, a library that calls the driver, and the hook. Prints the results.
 *
 *   reload PLUGIN HOOK */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifdef PLUGIN
#include "cuda_min.h"
int plugin_calls(void)
{
    CUcontext current;
    return cuInit(0) || cuCtxGetCurrent(&current);
}
#else
/* Maps memory at addresses that are free now, so that a library gets another address when it is loaded
 * again. */
static void take_places(void)
{
    for (int i = 0; i < 8; i++)
        mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(int argc, char **argv)
{
    int failed = 0, calls = 0;
    if (argc != 3)
        return 2;
    for (int i = 0; i < 50; i++) {
        void *driver = dlopen("libcuda.so.1", RTLD_NOW);
        int (*version)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
        int number = 0;
        failed += !version || version(&number) != 0 || number <= 0;
        calls++;
        void *plugin = dlopen(argv[1], RTLD_NOW);
        int (*plugin_calls)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_calls") : NULL;
        failed += !plugin_calls || plugin_calls() != 0;
        failed += plugin && dlclose(plugin) != 0;
        failed += driver && dlclose(driver) != 0;
        take_places();
        /* A preloaded library belongs to the program, as the C library does, so closing it does not unload
         * it. */
        void *hook = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
        for (int times = 0; hook && times < 3; times++)
            dlclose(hook);
    }
    printf("%d calls, %d failed\n", calls, failed);
    return 0;
}
#endif
