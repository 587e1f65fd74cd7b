/* Stubs of the NVIDIA kernel driver, for testing probes on the driver's functions without a GPU. A stub's
 * functions have the driver's names, call each other as in the driver, and otherwise only count their calls.
 * Each count is a module parameter in /sys/module/MODULE/parameters/, and has the same name as the function.
 *
 * As with the real driver, the device files are created in user space. nvidia0 is 195:0, and nvidiactl is
 * 195:255. The major number of nvidia-uvm is in /proc/devices. */
#ifndef CT_STUB_H
#define CT_STUB_H

#include <linux/atomic.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

/* Prevents the compiler from inlining or cloning a function, so that its symbol is exactly its name. */
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
