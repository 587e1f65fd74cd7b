/* simdevice.h: a simulated kernel driver with programmable answers. libsimdevice.so receives all requests on
 * the files in $CUDATRACE_DEVICES. The library must come after the hook in the symbol look-up order. All
 * other requests are passed to the kernel. */
#ifndef SIMDEVICE_H
#define SIMDEVICE_H

#include <stdint.h>

/* The answer to the calling thread's next request. By default, the request succeeds and changes nothing. */
struct simdevice_answer {
    int error;      /* if nonzero, the request fails with this errno */
    void *where;    /* if not NULL, the RM status is written to this address */
    int32_t status; /* the RM status */
    int notify_fd;  /* if positive, write a byte to this descriptor, then block until a byte or end-of-file
                     * can be read from hold_fd */
    int hold_fd;    /* a request that blocks reads from this descriptor */
};

void simdevice_answer(struct simdevice_answer answer);

#endif
