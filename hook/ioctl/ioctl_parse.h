/* Decodes a request from the struct that its argument points to. The hook and the probe's BPF programs share
 * this code, so that both record the same rows.
 *
 * The structs are from open-gpu-kernel-modules (MIT): nvos.h, nv-ioctl.h, uvm_ioctl.h, nvkms-ioctl.h. The
 * application's pointers are not trusted. An ioctl with an invalid pointer returns EFAULT without the tracer,
 * and must still do so with it.
 *
 * The includer includes ioctl_layout.h, and defines peek():
 *
 *   bool peek(uint64_t address, void *value, uint32_t bytes);   as ct_ioctl_peek() */
#ifndef CT_IOCTL_PARSE_H
#define CT_IOCTL_PARSE_H

#include <stddef.h>

/* A BPF program cannot call a function that returns a struct. */
#define CT_IOCTL_PARSER static inline __attribute__((always_inline))

/* Offsets and sizes in NVOS54_PARAMETERS, NVOS21_PARAMETERS (NVOS64 begins in the same way) and
 * nv_ioctl_xfer_t. */
enum {
    CONTROL_COMMAND = 8,
    CONTROL_PARAMS_SIZE = 24,
    CONTROL_BYTES = 32,
    ALLOC_CLASS = 12,
    ALLOC_BYTES_MIN = 16,
    ALLOC_PARAMS = 16,
    ALLOC_PARAMS_BYTES_MIN = 24,
    MEMORY_SIZE = 64, /* NV_MEMORY_ALLOCATION_PARAMS */
    XFER_COMMAND = 0,
    XFER_SIZE = 4,
    XFER_POINTER = 8,
    XFER_BYTES = 16,
    MODESET_COMMAND = 0, /* struct NvKmsIoctlParams */
    MODESET_SIZE = 4,
    MODESET_BYTES = 16,
};

enum space { ESCAPE = CT_IOCTL_ESCAPE, UVM = CT_IOCTL_UVM };

static const struct layout {
    uint32_t space, number, release;
    uint32_t size_bytes, status_offset;
} layouts[] = {
#define LAYOUT(space, number, release, size_bytes, status_offset)                                            \
    { space, number, release, size_bytes, status_offset },
#include "ioctl_status.def"
#undef LAYOUT
};

/* `size_bytes` is 0 for requests that do not contain their size. */
CT_IOCTL_PARSER const struct layout *find_layout(uint32_t space, uint32_t number, uint32_t size_bytes,
                                                 uint32_t release)
{
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        const struct layout *layout = &layouts[i];
        if (layout->space == space && layout->number == number &&
            (size_bytes == 0 || layout->size_bytes == size_bytes) &&
            (release == 0 || layout->release <= release))
            return layout;
    }
    return NULL;
}

/* Returns whether the parameters for an object of this class are NV_MEMORY_ALLOCATION_PARAMS. */
CT_IOCTL_PARSER bool is_memory(uint32_t class)
{
    enum { MEMORY_SYSTEM = 0x3e, MEMORY_LOCAL_USER = 0x40, MEMORY_VIRTUAL = 0x50a0 };
    return class == MEMORY_SYSTEM || class == MEMORY_LOCAL_USER || class == MEMORY_VIRTUAL;
}

CT_IOCTL_PARSER struct ct_ioctl parse_escape(uint32_t request, uint64_t argument, uint32_t release)
{
    struct ct_ioctl ioctl = {
        .space = CT_IOCTL_ESCAPE,
        .escape = request & 0xff,
        .address = argument,
        .size_bytes = request >> 16 & 0x3fff,
        .status_offset = -1,
    };
    uint32_t command = 0, size_bytes = 0;
    uint64_t pointer = 0;
    if (ioctl.escape == CT_ESCAPE_XFER && ioctl.size_bytes == XFER_BYTES &&
        peek(argument + XFER_COMMAND, &command, sizeof(command)) &&
        peek(argument + XFER_SIZE, &size_bytes, sizeof(size_bytes)) &&
        peek(argument + XFER_POINTER, &pointer, sizeof(pointer))) {
        ioctl.escape = command;
        ioctl.address = pointer;
        ioctl.size_bytes = size_bytes;
    }
    ioctl.code = ioctl.escape;
    ioctl.bytes = ioctl.size_bytes;

    uint32_t inner = 0, params_bytes = 0;
    uint64_t memory_bytes = 0;
    if (ioctl.escape == CT_ESCAPE_RM_CONTROL && ioctl.size_bytes >= CONTROL_BYTES &&
        peek(ioctl.address + CONTROL_COMMAND, &inner, sizeof(inner)) &&
        peek(ioctl.address + CONTROL_PARAMS_SIZE, &params_bytes, sizeof(params_bytes))) {
        ioctl.space = CT_IOCTL_CONTROL;
        ioctl.code = inner;
        ioctl.bytes = params_bytes;
    } else if (ioctl.escape == CT_ESCAPE_RM_ALLOC && ioctl.size_bytes >= ALLOC_BYTES_MIN &&
               peek(ioctl.address + ALLOC_CLASS, &inner, sizeof(inner))) {
        ioctl.space = CT_IOCTL_CLASS;
        ioctl.code = inner;
        if (is_memory(inner) && ioctl.size_bytes >= ALLOC_PARAMS_BYTES_MIN &&
            peek(ioctl.address + ALLOC_PARAMS, &pointer, sizeof(pointer)) &&
            peek(pointer + MEMORY_SIZE, &memory_bytes, sizeof(memory_bytes)))
            ioctl.bytes = memory_bytes;
    }
    const struct layout *layout =
        ioctl.size_bytes ? find_layout(ESCAPE, ioctl.escape, ioctl.size_bytes, release) : NULL;
    if (layout)
        ioctl.status_offset = (int32_t)layout->status_offset;
    return ioctl;
}

CT_IOCTL_PARSER struct ct_ioctl parse_uvm(uint32_t request, uint64_t argument, uint32_t release)
{
    const struct layout *layout = find_layout(UVM, request, 0, release);
    return (struct ct_ioctl){
        .space = CT_IOCTL_UVM,
        .code = request,
        .address = argument,
        .size_bytes = layout ? layout->size_bytes : 0,
        .bytes = layout ? layout->size_bytes : 0,
        .status_offset = layout ? (int32_t)layout->status_offset : -1,
    };
}

/* Modeset commands return their results in structs without an RM status. */
CT_IOCTL_PARSER struct ct_ioctl parse_modeset(uint32_t request, uint64_t argument, uint32_t release)
{
    struct ct_ioctl ioctl = { .space = CT_IOCTL_MODESET,
                              .code = ~0U,
                              .address = argument,
                              .size_bytes = request >> 16 & 0x3fff,
                              .status_offset = -1 };
    uint32_t command, params_bytes;
    (void)release;
    if (ioctl.size_bytes == MODESET_BYTES && peek(argument + MODESET_COMMAND, &command, sizeof(command)) &&
        peek(argument + MODESET_SIZE, &params_bytes, sizeof(params_bytes))) {
        ioctl.code = command;
        ioctl.bytes = params_bytes;
    }
    return ioctl;
}

CT_IOCTL_PARSER uint32_t parse_release(const char *version, uint32_t bytes)
{
    uint32_t number[2] = { 0, 0 }, digits = 0, which = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        const char c = version[i];
        if (c >= '0' && c <= '9' && digits < 4) {
            number[which] = number[which] * 10 + (uint32_t)(c - '0');
            digits++;
        } else if (c == '.' && digits > 0 && which == 0) {
            which = 1;
            digits = 0;
        } else {
            break;
        }
    }
    return which == 1 && digits > 0 && number[1] < 1000 ? number[0] * 1000 + number[1] : 0;
}

#undef CT_IOCTL_PARSER

#endif
