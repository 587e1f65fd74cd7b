/* Stubs of the NVIDIA kernel driver, for tests of probes on its functions without a GPU. A stub has functions
 * with the driver's names, which call each other as in the driver and do nothing else. It counts their calls.
 * The count of a function is the module's parameter with that name, in /sys/module/MODULE/parameters/.
 *
 * As in the driver, users make the device files. nvidia0 is 195:0, and nvidiactl is 195:255. /proc/devices
 * has the major number of nvidia-uvm. */
#ifndef CT_STUB_H
#define CT_STUB_H

#include <linux/atomic.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

/* The compiler neither inlines nor clones the function, so its symbol has exactly its name. */
#define STUB static __attribute__((noipa))

static int counter_get(char *text, const struct kernel_param *counter)
{
    return sysfs_emit(text, "%ld\n", atomic_long_read((const atomic_long_t *)counter->arg));
}

static const struct kernel_param_ops counter_ops = { .get = counter_get };

#define COUNTER(function)                                                                                    \
    static atomic_long_t count_##function;                                                                   \
    module_param_cb(function, &counter_ops, &count_##function, 0444)

#define COUNT(function) atomic_long_inc(&count_##function)

#endif
