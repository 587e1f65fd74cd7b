/* The end of a process whose own threads have all exited, so that only the recording's thread is left.
 * Threads can exit without the C library's knowledge, by the system call exit(). */
#ifndef CT_GPU_LAST_H
#define CT_GPU_LAST_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The longest time that a thread of the program, or its end, waits for CUPTI. */
#define CT_GPU_PATIENCE_NS UINT64_C(2000000000)

/* Creates a thread with signals blocked, because signals are the program's. Returns an errno. */
int ct_gpu_last_create(pthread_t *thread, void *(*run)(void *));

/* Returns whether all threads of the program have exited. */
bool ct_gpu_last_is_alone(void);

/* Ends the process after CT_GPU_PATIENCE_NS unless ct_gpu_last_end() is called before, because the end of a
 * recording may hang in CUPTI. A process whose recording hung before its last thread exited without the C
 * library's knowledge does not end. Only the recording's thread calls these functions. */
void ct_gpu_last_watch(void);

/* Called at the end of the recording's thread. If it is the process's last one, lets the C library run the
 * program's exit handlers in it, or ends the process with the status that the program has given. */
void ct_gpu_last_end(void);

#endif
