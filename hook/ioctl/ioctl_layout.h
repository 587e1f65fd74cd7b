/* Decodes an NVIDIA kernel driver ioctl, and locates the RM status in the struct that the ioctl points to. */
#ifndef CT_IOCTL_LAYOUT_H
#define CT_IOCTL_LAYOUT_H

#include <stdbool.h>
#ifndef __bpf__ /* BPF programs define the types (probe/bpf/calls.h) */
#include <stdint.h>
#endif

/* The number spaces of requests. */
enum ct_ioctl_space {
    CT_IOCTL_ESCAPE = 1, /* _IOC_NR of a request on /dev/nvidiactl or /dev/nvidiaN */
    CT_IOCTL_CONTROL,    /* the command of NV_ESC_RM_CONTROL */
    CT_IOCTL_CLASS,      /* the class of NV_ESC_RM_ALLOC */
    CT_IOCTL_UVM,        /* a request on /dev/nvidia-uvm or /dev/nvidia-uvm-tools */
    CT_IOCTL_MODESET,    /* the command of a request on /dev/nvidia-modeset */
};

/* The protocols of the device files. /dev/nvidia-uvm-tools uses the same protocol as /dev/nvidia-uvm.
 */
enum ct_ioctl_language { CT_IOCTL_ESCAPES, CT_IOCTL_OF_UVM, CT_IOCTL_OF_MODESET, CT_IOCTL_LANGUAGES };

enum {
    CT_IOCTL_TYPE = 'F', /* _IOC_TYPE on nvidiactl and nvidiaN; nvidia-uvm uses plain numbers as requests */
    CT_IOCTL_UVM_MAX = 2047,
    CT_IOCTL_UVM_INITIALIZE = 0x30000001,
    CT_IOCTL_UVM_DEINITIALIZE = 0x30000002,
    CT_IOCTL_MODESET_REQUEST = 'm' << 8, /* _IOC_TYPE and _IOC_NR of nvidia-modeset's only request */
};

/* The escapes (requests on nvidiactl and nvidiaN) that the hook decodes. */
enum {
    CT_ESCAPE_RM_CONTROL = 0x2a,
    CT_ESCAPE_RM_ALLOC = 0x2b,
    CT_ESCAPE_CHECK_VERSION = 0xd2,
    CT_ESCAPE_XFER = 0xd3, /* wraps a request whose struct is too large for the size field of a request
                            * number */
};

enum {
    CT_IOCTL_MINOR_MODESET = 254, /* nvidia-modeset has nvidiactl's major number, but a different protocol */
    /* The maximum number of different requests that a process can record under their own names. All others
     * are recorded under one name per protocol. */
    CT_IOCTL_NAMES_MAX = 512,
};
/* For each protocol, the name shared by all requests that have no row of their own. */
extern const char *const ct_ioctl_other_names[CT_IOCTL_LANGUAGES];

struct ct_objects; /* proto/payload.h */

/* A request, decoded before it is passed to the kernel. */
struct ct_ioctl {
    enum ct_ioctl_space space;
    uint32_t code;
    uint32_t escape;       /* for CT_IOCTL_ESCAPE, CONTROL and CLASS: the escape, after unwrapping a
                            * transfer */
    uint64_t address;      /* address of the request's struct */
    uint32_t size_bytes;   /* size of the struct; 0 if unknown */
    uint64_t bytes;        /* size of the parameters, which are the struct itself unless the escape is
                            * RM_CONTROL; or if the request is for memory, that memory's size */
    int32_t status_offset; /* offset of the RM status in the struct; -1 if there is none */
};

/* Reads `bytes` bytes (1 to 8) at `address`. Returns false if they are not readable. Never crashes. The
 * caller saves errno. */
bool ct_ioctl_peek(uint64_t address, void *value, uint32_t bytes);

/* True if a request may be for the driver, judging only by its number. */
static inline bool ct_ioctl_is_escape(uint32_t request)
{
    return (request >> 8 & 0xff) == CT_IOCTL_TYPE;
}
static inline bool ct_ioctl_is_uvm(uint32_t request)
{
    return request - 1 < CT_IOCTL_UVM_MAX || request == CT_IOCTL_UVM_INITIALIZE ||
           request == CT_IOCTL_UVM_DEINITIALIZE;
}

static inline bool ct_ioctl_is_modeset(uint32_t request)
{
    return (request & 0xffff) == CT_IOCTL_MODESET_REQUEST;
}

/* Returns the protocol that a request number belongs to, or CT_IOCTL_LANGUAGES if the request is not for the
 * driver.
 */
static inline enum ct_ioctl_language ct_ioctl_language(uint32_t request)
{
    return ct_ioctl_is_uvm(request)       ? CT_IOCTL_OF_UVM
           : ct_ioctl_is_escape(request)  ? CT_IOCTL_ESCAPES
           : ct_ioctl_is_modeset(request) ? CT_IOCTL_OF_MODESET
                                          : CT_IOCTL_LANGUAGES;
}

/* Decode a request on one of the driver's device files. `argument` may have any value. Fields that cannot be
 * read are left unknown. `release` is the driver's release. If it is 0 (unknown), the newest release is
 * assumed. */
struct ct_ioctl ct_ioctl_parse_escape(uint32_t request, uint64_t argument, uint32_t release);
struct ct_ioctl ct_ioctl_parse_uvm(uint32_t request, uint64_t argument, uint32_t release);
struct ct_ioctl ct_ioctl_parse_modeset(uint32_t request, uint64_t argument, uint32_t release);
/* Returns the RM status that a successful request left in its struct, or 0 if the struct contains none. */
int32_t ct_ioctl_status(const struct ct_ioctl *ioctl);
/* Returns 1000 * A + B for a driver version A.B, or 0 if `version` is malformed. Reads at most `bytes`
 * bytes. */
uint32_t ct_ioctl_release(const char *version, uint32_t bytes);
/* Writes the name under which the hook records a request and which the collector translates later. It
 * consists of the request's number space and number. `name` has room for CT_IOCTL_NAME_BYTES. */
enum { CT_IOCTL_NAME_BYTES = 32 };
void ct_ioctl_name(const struct ct_ioctl *ioctl, char *name);
/* Fills in the numbers of a request as the objects of its call: `request`, which ioctl() received, and the
 * code if it is in the request's struct. */
void ct_ioctl_objects(enum ct_ioctl_space space, uint32_t request, uint32_t code, struct ct_objects *objects);

#endif
