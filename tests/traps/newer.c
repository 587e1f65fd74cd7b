/* A program for newer_driver.c that calls functions missing from the hook's table, and checks the export
 * table and exported data. With the argument "where", the program prints which library its pointers point
 * into. */
#include "file_of.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef long new_function(long, long, double, long, long, long, long, long, long, long, long, double, long,
                          long, long, long, long, long);

static long call(new_function *function)
{
    return function(1, 2, 3.0, 4, 5, 6, 7, 8, 9, 10, 11, 12.0, 13, 14, 15, 16, 17, 18);
}

int main(int argc, char **argv)
{
    (void)argv;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(driver, "cuGetProcAddress_v2");
    int (*get_table)(const void **, const void *) =
        (int (*)(const void **, const void *))dlsym(driver, "cuGetExportTable");
    int (*forks)(int *, int *) = (int (*)(int *, int *))dlsym(driver, "cuNewForks");
    new_function *by_name = (new_function *)dlsym(driver, "cuNewFunction"), *by_query = NULL;
    int (*unexported)(int, int) = NULL;
    if (!init || !get || !get_table || !forks || !by_name)
        return 1;

    printf("init: %d\n", init(0));
    printf("query: %d", get("cuNewFunction", (void **)&by_query, 13020, 0, NULL));
    printf(" %d\n", get("cuUnexported", (void **)&unexported, 13020, 0, NULL));
    printf("same by name and by query: %d\n", by_name == by_query);
    printf("results: %ld %ld %d\n", call(by_name), call(by_query), unexported(7, 8));

    const void *table = NULL;
    printf("table: %d", get_table(&table, "0123456789abcdef"));
    const uint64_t *words = table;
    int (*function)(int);
    memcpy(&function, &words[1], sizeof function);
    printf(" %llu %d, ", (unsigned long long)words[0], function(41));
    for (int i = 2; i < 8; i++)
        printf("%llu ", (unsigned long long)words[i]);
    printf("\n");
    /* libcudart computes a hash of these addresses, so they must be the driver's own. */
    printf("table in %s, its function in %s\n", file_of(table), file_of((const void *)function));
    const int *data = dlsym(driver, "cudbgNewState");
    printf("data: %d in %s\n", data ? *data : -1, file_of(data));

    int before = 0, after = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(init == NULL);
    waitpid(child, NULL, 0);
    forks(&before, &after);
    printf("atfork handlers of the driver: %d %d\n", before, after);
    if (argc > 1)
        printf("where: %s %s %s %s\n", file_of((void *)init), file_of((void *)by_name),
               file_of((void *)by_query), file_of((void *)unexported));
    return 0;
}
