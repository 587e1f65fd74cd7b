/* Cancels a thread inside a driver call, while the simulated driver blocks. The unwinder passes through the
 * driver, the hook's trampoline and the caller, whose cleanup handler runs. The program cancels two threads
 * in this way, after each has already made a call. The first cancelled call takes the hook's slow path, and
 * the second takes the short path. */
#include "cuda_min.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void cleanup(const int *variable)
{
    printf("cleanup: %d\n", *variable);
}

static void *call(void *number)
{
    CUcontext context;
    cuCtxGetCurrent(&context);
    __attribute__((cleanup(cleanup), unused)) const int variable = *(const int *)number;
    cuCtxSynchronize();
    printf("returned\n");
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result = NULL;
        if (pthread_create(&thread, NULL, call, &i) != 0)
            return EXIT_FAILURE;
        FILE *blocked = fopen(getenv("SIMCUDA_BLOCK_NOTIFY"), "r");
        if (!blocked || fgetc(blocked) != 'b')
            return EXIT_FAILURE;
        fclose(blocked);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("cancelled: %d\n", result == PTHREAD_CANCELED);
    }
    return EXIT_SUCCESS;
}
