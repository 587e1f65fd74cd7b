/* simdevice.h: a simulated kernel driver with programmable answers. libsimdevice.so receives the requests on
 * the files of $CUDATRACE_DEVICES. It must follow the hook in the look-up order. All other requests are
 * passed to the kernel. */
#ifndef SIMDEVICE_H
#define SIMDEVICE_H

#include <stdint.h>

/* The answer to the calling thread's next request. By default it succeeds and changes nothing. */
struct simdevice_answer {
    int error;      /* not 0: it fails with this errno */
    void *where;    /* not NULL: the status is written there */
    int32_t status; /* the RM status */
    int notify_fd;  /* above 0: write a byte there, and block until hold_fd has a byte or its end */
    int hold_fd;    /* a blocked request reads from this descriptor */
};

void simdevice_answer(struct simdevice_answer answer);

#endif
