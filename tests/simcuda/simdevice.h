/* simdevice.h: a kernel driver that answers as it is told. Requests on the files of $CUDATRACE_DEVICES come
 * to libsimdevice.so, which must come behind the hook in the order of look-up; all others go to the kernel.
 */
#ifndef SIMDEVICE_H
#define SIMDEVICE_H

#include <stdint.h>

/* Says how the calling thread's next request is answered. Untold, it succeeds and changes nothing. */
struct simdevice_answer {
    int error;      /* not 0: it fails with this errno */
    void *where;    /* not NULL: the status is written there */
    int32_t status; /* RM's */
    int notify_fd;  /* above 0: a byte is written there, and the request stays until one, or the end, can be
                       read from */
    int hold_fd;    /* this one */
};

void simdevice_answer(struct simdevice_answer answer);

#endif
