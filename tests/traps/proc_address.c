/* Makes libcudart's queries to cuGetProcAddress one by one, and prints the results. With the argument
 * "where", the program also prints which library the pointers point into.
 *
 *   proc_address QUERIES.tsv [where] */
#include "cuda_min.h"
#include "file_of.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef cuGetProcAddress

typedef CUresult get_v1(const char *, void **, int, uint64_t);
typedef CUresult get_v2(const char *, void **, int, uint64_t, CUdriverProcAddressQueryResult *);

int main(int argc, char **argv)
{
    const int tells_where = argc > 2;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    get_v1 *old = (get_v1 *)dlsym(driver, "cuGetProcAddress");
    FILE *queries = fopen(argv[1], "r");
    if (!get || !old || !queries)
        return 1;

    void *pointer = (void *)8;
    printf("empty name: %d", get("", &pointer, 0, 0, NULL));
    printf(" %d\n", pointer == NULL || pointer == (void *)8);

    char line[256], name[128];
    int version, asked = 0, found = 0, inside = 0;
    unsigned long long flags;
    while (fgets(line, sizeof line, queries)) {
        if (sscanf(line, "%127s %d %llu", name, &version, &flags) != 3)
            continue;
        CUdriverProcAddressQueryResult status = 77;
        pointer = NULL;
        const CUresult result = get(name, &pointer, version, flags, &status);
        void *without = NULL, *four = NULL;
        const CUresult again = get(name, &without, version, flags, NULL);
        const CUresult third = old(name, &four, version, flags);
        printf("%s %d %llu: %d %d %d, %d %d, %d %d\n", name, version, flags, result, status, pointer != NULL,
               again, without == pointer, third, four == pointer);
        asked++;
        found += pointer != NULL;
        inside += strcmp(file_of(pointer), "libcudatrace.so") == 0;
    }
    printf("asked %d, found %d", asked, found);
    if (tells_where)
        printf(", in the hook %d", inside);
    printf("\n");

    /* The requested version selects the exported function, whose name may differ from the requested name. */
    static const struct {
        const char *base, *export;
        int version;
    } pairs[] = {
        { "cuGraphInstantiate", "cuGraphInstantiate_v2", 11000 },
        { "cuGraphInstantiate", "cuGraphInstantiateWithFlags", 12000 },
        { "cuGetProcAddress", "cuGetProcAddress", 11030 },
        { "cuGetProcAddress", "cuGetProcAddress_v2", 12000 },
        { "cuMemAlloc", "cuMemAlloc_v2", 3020 },
        { "cuCtxGetDevice", "cuCtxGetDevice_v2", 13000 },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        pointer = NULL;
        get(pairs[i].base, &pointer, pairs[i].version, 0, NULL);
        printf("%s at %d is %s: %d\n", pairs[i].base, pairs[i].version, pairs[i].export,
               pointer && pointer == dlsym(driver, pairs[i].export));
    }
    return 0;
}
