/* Tests a machine without a driver. With "weak", prints whether a weak cuInit exists, and its result. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

extern int cuInit(unsigned) __attribute__((weak));

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "weak") == 0) {
        if (cuInit)
            printf("present, answers %d\n", cuInit(0));
        else
            printf("absent\n");
        return 0;
    }
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    printf("dlopen: %d, %s\n", driver != NULL, driver ? "" : dlerror());
    driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    printf("again: %d %d\n", driver != NULL, dlerror() != NULL);
    printf("default: %d", dlsym(RTLD_DEFAULT, "cuInit") != NULL);
    const char *error = dlerror();
    printf(", %s\n", error && strstr(error, "undefined symbol: cuInit") ? "undefined" : "?");
    void *self = dlopen(NULL, RTLD_NOW);
    printf("by the program's handle: %d", dlsym(self, "cuInit") != NULL);
    printf(" %d\n", dlerror() != NULL);
    return 0;
}
