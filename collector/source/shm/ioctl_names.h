/* Names the ioctl commands of the NVIDIA kernel driver by their numbers. */
#ifndef CT_IOCTL_NAMES_H
#define CT_IOCTL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { CT_IOCTL_NAME_MAX = 127 };

/* Translates the name under which the hook counts an ioctl, its number, as "RM_CONTROL 0x20800102", "RM_ALLOC
 * 0x0080", "UVM 27", "NVKMS 9" or "ESC 0xd2". False for what is none, or a number that nobody named: it then
 * stands for itself. `release` is the driver's, 1000 times the first number of its version plus the second;
 * where it is not known, 0, commands that were numbered anew have no name. */
bool ct_ioctl_names_find(const char *number, uint32_t release, char name[CT_IOCTL_NAME_MAX + 1],
                         uint32_t *category);
/* The release of the driver that the kernel has loaded; 0 for none. */
uint32_t ct_ioctl_driver_release(void);

#endif
