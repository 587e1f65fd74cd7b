/* Maps the ioctl command numbers of the NVIDIA kernel driver to names. */
#ifndef CT_IOCTL_NAMES_H
#define CT_IOCTL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { CT_IOCTL_NAME_MAX = 127 };

/* Translates the hook's name for an ioctl, which contains its number, such as "RM_CONTROL 0x20800102",
 * "RM_ALLOC 0x0080", "UVM 27", "NVKMS 9" or "ESC 0xd2". Returns false for other names and for unknown
 * numbers, which stay untranslated. For driver version A.B, `release` is 1000 * A + B. If it is 0 (unknown),
 * command numbers that have changed between releases are not translated. */
bool ct_ioctl_names_find(const char *number, uint32_t release, char name[CT_IOCTL_NAME_MAX + 1],
                         uint32_t *category);
/* Returns the release of the loaded kernel driver, or 0 if there is none. */
uint32_t ct_ioctl_driver_release(void);

#endif
