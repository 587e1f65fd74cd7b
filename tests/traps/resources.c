/* A program with argv[1] threads that executes commands from its standard input, and answers each with a
 * line:
 *
 *   calls N     every thread makes N calls
 *   threads N   N threads are created, make a call and end
 *   shared N    writes N MiB of shared memory of its own, as data loaders do
 *   memory N    writes N MiB of private memory
 *   size        prints the KiB of its address space, and its number of mappings */
#include "cuda_min.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_barrier_t begun, ended;
static long calls;
static _Atomic long failed;

static void *work(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&begun);
        if (calls < 0)
            return unused;
        for (long i = 0; i < calls; i++) {
            int count = 0;
            failed += cuDeviceGetCount(&count) != 0 || count < 1;
        }
        pthread_barrier_wait(&ended);
    }
}

static void *visit(void *unused)
{
    int count;
    cuDeviceGetCount(&count);
    return unused;
}

static const char *shared(size_t bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/dev/shm/resources-%d", (int)getpid());
    FILE *file = fopen(path, "wx+");
    if (!file || ftruncate(fileno(file), (off_t)bytes) != 0)
        return "no file";
    unlink(path);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    fclose(file);
    if (memory == MAP_FAILED)
        return "no mapping";
    memset(memory, 1, bytes);
    munmap(memory, bytes);
    return "written";
}

static void size(void)
{
    char line[4096];
    long kb = 0, mappings = 0;
    FILE *status = fopen("/proc/self/status", "r"), *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof(line), status))
        sscanf(line, "VmSize: %ld", &kb);
    while (fgets(line, sizeof(line), maps))
        mappings++;
    fclose(status);
    fclose(maps);
    printf("%ld %ld\n", kb, mappings);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    char line[256];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&begun, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&ended, NULL, (unsigned)threads + 1);
    cuInit(0);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, NULL) != 0) {
            printf("no thread\n");
            return 1;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin)) {
        char what[16] = "";
        long n = 0;
        sscanf(line, "%15s %ld", what, &n);
        if (strcmp(what, "calls") == 0) {
            calls = n;
            pthread_barrier_wait(&begun);
            pthread_barrier_wait(&ended);
            printf("failed %ld\n", failed);
        } else if (strcmp(what, "threads") == 0) {
            for (long i = 0; i < n; i++) {
                pthread_t thread;
                if (pthread_create(&thread, &small, visit, NULL) != 0 || pthread_join(thread, NULL) != 0)
                    return 1;
            }
            printf("gone\n");
        } else if (strcmp(what, "shared") == 0) {
            printf("%s\n", shared((size_t)n << 20));
        } else if (strcmp(what, "memory") == 0) {
            char *memory = malloc((size_t)n << 20);
            if (memory)
                memset(memory, 1, (size_t)n << 20);
            printf("%s\n", memory ? "written" : "no memory");
            free(memory);
        } else if (strcmp(what, "size") == 0) {
            size();
        }
    }
    return 0;
}
