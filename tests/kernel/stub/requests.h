/* The requests that the driver's stubs accept. If the real driver also accepts a request, it uses the same
 * number for that request. */
#ifndef CT_STUB_REQUESTS_H
#define CT_STUB_REQUESTS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Requests to nvidiactl and nvidia0, whose numbers contain the sizes of the driver's structs. */
#define STUB_RM_FREE    _IOWR('F', 0x29, __u8[16])
#define STUB_RM_CONTROL _IOWR('F', 0x2a, __u8[32])
#define STUB_RM_ALLOC   _IOWR('F', 0x2b, __u8[48])
#define STUB_XID        _IOW('F', 0xf0, __u32) /* only in the stub: reports an error with that code */
#define STUB_FENCE      _IO('F', 0xf1) /* only in the stub: makes a fence, which a kernel thread signals */
#define STUB_UNKNOWN    _IO('F', 0xf2) /* refused */

/* Requests to nvidia-uvm, whose numbers contain no sizes. */
#define STUB_UVM_MIGRATE   51
#define STUB_UVM_GPU_FAULT 0x7001 /* only in the stub: a kernel thread services a fault of the GPU */

#endif
