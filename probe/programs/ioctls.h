/* System calls on the devices of NVIDIA's kernel driver (--ioctls): attaches the BPF programs (ioctls.bpf.c,
 * device_files.bpf.c) to the tracepoints of the system calls, and finds the devices. */
#ifndef CT_PROBE_IOCTLS_H
#define CT_PROBE_IOCTLS_H

#include "programs.h"

struct bpf_link;
struct ct_ioctls {
    struct ct_programs *programs;
    struct bpf_link *link[CT_SYSTEM_CALL_POINTS]; /* NULL: not attached */
};

/* Attaches the programs. Must be called before the probe drops the necessary rights. Returns CT_GO_ON. On
 * failure, prints a message and returns EXIT_FAILURE. */
int ct_ioctls_attach(struct ct_ioctls *ioctls, struct ct_programs *programs);
/* Finds the devices again, since the kernel driver may have been loaded in the meantime. Does nothing if the
 * programs are not attached. */
void ct_ioctls_look(struct ct_ioctls *ioctls);
void ct_ioctls_detach(struct ct_ioctls *ioctls);

#endif
