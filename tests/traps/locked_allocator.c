/* A program whose allocator calls the driver while it holds its lock, as one does whose memory is pinned.
 * Reads lines: `inside` makes calls within malloc(), and any other line makes them in main(). */
#include "cuda_min.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local volatile bool calls_driver; /* volatile, since the compiler knows what malloc() reads */

extern void *__libc_malloc(size_t bytes);

static void call_driver(void)
{
    int version;
    for (int i = 0; i < CALLS; i++)
        cuDriverGetVersion(&version);
}

static void *allocate(size_t bytes)
{
    pthread_mutex_lock(&lock);
    if (calls_driver)
        call_driver();
    void *block = __libc_malloc(bytes);
    pthread_mutex_unlock(&lock);
    return block;
}

void *malloc(size_t bytes)
{
    void *block = allocate(bytes);
    return block && bytes > 0 ? block : NULL;
}

void *calloc(size_t count, size_t bytes)
{
    void *block = allocate(count * bytes);
    return block ? memset(block, 0, count * bytes) : NULL;
}

int main(void)
{
    static char line[32];
    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "inside\n") == 0) {
            calls_driver = true;
            void *volatile block = malloc(CALLS);
            calls_driver = false;
            free(block);
        } else {
            call_driver();
        }
        if (puts("done") < 0 || fflush(stdout) != 0)
            return 1;
    }
    return 0;
}
