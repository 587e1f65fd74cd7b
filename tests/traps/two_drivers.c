/* A program that makes calls to two images of the driver.
 *
 *   two_drivers dlsym | procaddress | namespace ONE TWO */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int init_function(unsigned flags);
typedef int current_function(void **context);
typedef int version_function(int *version);
typedef int proc_address_function(const char *name, void **function, int version, uint64_t flags,
                                  int *status);

static void call(current_function *current, int calls)
{
    int failed = 0;
    for (int i = 0; i < calls; i++) {
        void *context;
        failed += current(&context) != 0;
    }
    printf("%d of %d calls failed\n", failed, calls);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    void *one = dlopen(argv[2], RTLD_NOW);
    version_function *get_version = one ? (version_function *)dlsym(one, "cuDriverGetVersion") : NULL;
    int version = 0, status = 0;
    if (!get_version || get_version(&version) != 0)
        return 3;
    void *two = strcmp(argv[1], "namespace") == 0 ? dlmopen(LM_ID_NEWLM, argv[3], RTLD_NOW)
                                                  : dlopen(argv[3], RTLD_NOW);
    if (!two || two == one)
        return 4;
    printf("version %d\n", version);
    void *of_two = NULL;
    if (strcmp(argv[1], "procaddress") == 0) {
        proc_address_function *ask = (proc_address_function *)dlsym(two, "cuGetProcAddress_v2");
        if (!ask || ask("cuCtxGetCurrent", &of_two, 12000, 0, &status) != 0)
            return 5;
    } else {
        of_two = dlsym(two, "cuCtxGetCurrent");
    }
    void *of_one = dlsym(one, "cuCtxGetCurrent");
    if (((init_function *)dlsym(two, "cuInit"))(0) != 0 || ((init_function *)dlsym(one, "cuInit"))(0) != 0)
        return 6;
    call((current_function *)of_two, 20);
    call((current_function *)of_one, 10);
    return 0;
}
