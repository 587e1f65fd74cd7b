/* An allocator that calls the driver while it holds its lock (visited.c). The functions that programs call
 * are not on the stack then, because they jump to the function that takes the lock. */
#include "cuda_min.h"
#include "visited.h"

#include <pthread.h>
#include <stddef.h>

extern void *__libc_malloc(size_t bytes);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void *allocate(size_t bytes)
{
    int version;
    pthread_mutex_lock(&lock);
    void *block = bytes == VISITED_BYTES && cuDriverGetVersion(&version) != 0 ? NULL : __libc_malloc(bytes);
    pthread_mutex_unlock(&lock);
    return block;
}

void *malloc(size_t bytes)
{
    return allocate(bytes);
}
