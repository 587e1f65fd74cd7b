/* Obtains the driver in ways that bypass preloaded libraries.
 *
 *   passed_by deepbind FOLDER | dlmopen | dlvsym */
#include "cuda_min.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int use(CUresult (*init)(unsigned), CUresult (*version)(int *))
{
    int number = 0;
    if (!init || !version)
        return 1;
    printf("%d", init(0));
    printf(" %d", version(&number));
    printf(" %d\n", number);
    return 0;
}

/* With RTLD_DEEPBIND, a library prefers its own dependencies, so it finds the driver before any preloaded
 * library. */
static int deepbind(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/plugin.so", folder);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;
    if (!run)
        return 1;
    printf("%d\n", run());
    return 0;
}

/* A new linker namespace has no preloaded libraries. */
static int other_namespace(void)
{
    void *driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    if (!driver)
        return 1;
    return use((CUresult(*)(unsigned))dlsym(driver, "cuInit"),
               (CUresult(*)(int *))dlsym(driver, "cuDriverGetVersion"));
}

static int versioned(void)
{
    void *(*look_up)(void *, const char *) = NULL;
    static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.17" };
    for (int i = 0; i < 2 && !look_up; i++)
        look_up = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!look_up || !driver)
        return 1;
    return use((CUresult(*)(unsigned))look_up(driver, "cuInit"),
               (CUresult(*)(int *))look_up(driver, "cuDriverGetVersion"));
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "deepbind") == 0)
        return deepbind(argv[2]);
    if (argc == 2 && strcmp(argv[1], "dlmopen") == 0)
        return other_namespace();
    return argc == 2 && strcmp(argv[1], "dlvsym") == 0 ? versioned() : 2;
}
