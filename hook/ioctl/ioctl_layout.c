/* Decodes an NVIDIA kernel driver ioctl from the application's structs. This code does not depend on files,
 * rows or lanes, so that it can be tested separately. */
#include "ioctl_layout.h"

#include "names.h"
#include "payload.h"
#include "system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const ct_ioctl_other_names[CT_IOCTL_LANGUAGES] = { "RM other", "UVM other", "NVKMS other" };

static bool word_readable(uint64_t address)
{
    return ct_system_readable(address) == CT_READABLE_YES;
}

bool ct_ioctl_peek(uint64_t address, void *value, uint32_t bytes)
{
    const uint64_t last = address + bytes - 1;
    if (last < address || !word_readable(address) || ((address ^ last) > 7 && !word_readable(last)))
        return false;
    memcpy(value, (const void *)(uintptr_t)address, bytes);
    return true;
}

static bool peek(uint64_t address, void *value, uint32_t bytes)
{
    return ct_ioctl_peek(address, value, bytes);
}

#include "ioctl_parse.h" /* needs peek() */

struct ct_ioctl ct_ioctl_parse_escape(uint32_t request, uint64_t argument, uint32_t release)
{
    return parse_escape(request, argument, release);
}

struct ct_ioctl ct_ioctl_parse_uvm(uint32_t request, uint64_t argument, uint32_t release)
{
    return parse_uvm(request, argument, release);
}

struct ct_ioctl ct_ioctl_parse_modeset(uint32_t request, uint64_t argument, uint32_t release)
{
    return parse_modeset(request, argument, release);
}

int32_t ct_ioctl_status(const struct ct_ioctl *ioctl)
{
    int32_t status;
    return ioctl->status_offset >= 0 &&
                   ct_ioctl_peek(ioctl->address + (uint32_t)ioctl->status_offset, &status, sizeof(status))
               ? status
               : 0;
}

uint32_t ct_ioctl_release(const char *version, uint32_t bytes)
{
    return parse_release(version, bytes);
}

void ct_ioctl_name(const struct ct_ioctl *ioctl, char *name)
{
    static const struct {
        const char *prefix;
        int digits;
    } spaces[] = {
        [CT_IOCTL_ESCAPE] = { "ESC", 2 },     [CT_IOCTL_CONTROL] = { "RM_CONTROL", 8 },
        [CT_IOCTL_CLASS] = { "RM_ALLOC", 4 }, [CT_IOCTL_UVM] = { "UVM", 8 },
        [CT_IOCTL_MODESET] = { "NVKMS", 8 },
    };
    const bool small = ioctl->code <= CT_IOCTL_UVM_MAX;
    const char *prefix = spaces[ioctl->space].prefix;
    if (small && (ioctl->space == CT_IOCTL_UVM || ioctl->space == CT_IOCTL_MODESET))
        snprintf(name, CT_IOCTL_NAME_BYTES, "%s %" PRIu32, prefix, ioctl->code);
    else
        snprintf(name, CT_IOCTL_NAME_BYTES, "%s 0x%0*" PRIx32, prefix, spaces[ioctl->space].digits,
                 ioctl->code);
}

void ct_ioctl_objects(enum ct_ioctl_space space, uint32_t request, uint32_t code, struct ct_objects *objects)
{
    const bool is_unknown = space == CT_IOCTL_MODESET && code == ~0U;
    const uint8_t role = space == CT_IOCTL_CLASS ? CT_ROLE_class
                         : !is_unknown && (space == CT_IOCTL_CONTROL || space == CT_IOCTL_MODESET)
                             ? CT_ROLE_command
                             : CT_ROLE_none;
    *objects = (struct ct_objects){ .role = { CT_ROLE_request, role },
                                    .handle = { request, role == CT_ROLE_none ? 0 : code } };
}
