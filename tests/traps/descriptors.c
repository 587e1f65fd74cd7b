/* Closes each descriptor from 0 to 2 whose bit is set in argv[1], and opens no files afterwards. Then makes
 * calls in threads and in a child, and prints how many of the closed descriptors are open at the end. */
#include "cuda_min.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *work(void *unused)
{
    int count;
    for (int i = 0; i < 3000; i++)
        cuDeviceGetCount(&count);
    return unused;
}

int main(int argc, char **argv)
{
    const int out = fcntl(1, F_DUPFD, 100);
    const int closed = argc > 1 ? atoi(argv[1]) : 0;
    for (int i = 0; i < 3; i++) {
        if (closed & 1 << i)
            close(i);
    }
    cuInit(0);
    for (int generation = 0; generation < 3; generation++) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, work, NULL);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    }
    const pid_t child = fork();
    if (child == 0) {
        work(NULL);
        _exit(0);
    }
    int status = -1, left = 0;
    waitpid(child, &status, 0);
    for (int i = 0; i < 3; i++)
        left += closed & 1 << i && fcntl(i, F_GETFD) >= 0;
    dprintf(out, "left %d, child %d\n", left, status);
    return 0;
}
