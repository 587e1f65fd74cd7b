/* Loads libraries that are linked with different libcudarts, including two with the same version. After each
 * load, prints which libcudart each of the loaded libraries reaches. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENTS_MAX = 8, CALLS = 5 };

int main(int argc, char **argv)
{
    int (*version[CLIENTS_MAX])(void);
    for (int loaded = 0; loaded < argc - 1 && loaded < CLIENTS_MAX; loaded++) {
        void *client = dlopen(argv[1 + loaded], RTLD_LAZY | RTLD_LOCAL);
        if (!client) {
            fprintf(stderr, "%s\n", dlerror());
            return EXIT_FAILURE;
        }
        version[loaded] = (int (*)(void))(uintptr_t)dlsym(client, "client_version");
        for (int call = 0; call < CALLS; call++) {
            for (int i = 0; i <= loaded; i++)
                printf("%d ", version[i]());
        }
        printf("\n");
    }
    return EXIT_SUCCESS;
}
