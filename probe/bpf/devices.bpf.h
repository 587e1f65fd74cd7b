/* Finds the files that system calls use, and reads the results of system calls, for the BPF programs that
 * record calls on the kernel driver's devices. */
#ifndef CT_PROBE_DEVICES_BPF_H
#define CT_PROBE_DEVICES_BPF_H

#include "tasks.bpf.h"

extern struct ct_probe_devices devices;

/* Returns the current process's file for the given descriptor, or NULL. */
static inline const struct file *file_of(__u64 fd)
{
    const struct fdtable *table = BPF_CORE_READ(bpf_get_current_task_btf(), files, fdt);
    const __u32 number = (__u32)fd;
    struct file **place, *file;
    if (number >= BPF_CORE_READ(table, max_fds))
        return 0;
    place = BPF_CORE_READ(table, fd) + number;
    return bpf_probe_read_kernel(&file, sizeof(file), place) == 0 ? file : 0;
}

/* Returns the device number of the file, or 0 if the file is NULL or not a character device. */
static inline __u32 device_of(const struct file *file)
{
    enum {
        FORMAT = 0170000,
        CHARACTER_DEVICE = 0020000
    }; /* S_IFMT and S_IFCHR of include/uapi/linux/stat.h */
    if (!file)
        return 0;
    const struct inode *inode = BPF_CORE_READ(file, f_inode);
    return (BPF_CORE_READ(inode, i_mode) & FORMAT) == CHARACTER_DEVICE ? BPF_CORE_READ(inode, i_rdev) : 0;
}

/* The record of the sys_exit_… tracepoints, as described in their `format` files. */
struct exit_record {
    __u64 common[2];
    __s64 result;
};

/* Returns the negative errno of a failed system call. If a signal interrupted the call, returns -EINTR, even
 * if the kernel will repeat the call after the signal handler. */
static inline __s32 error_of(__s64 result)
{
    enum {
        INTERRUPTED = -4,
        RESTART = -512
    }; /* EINTR, and the first of ERESTARTSYS … in include/linux/errno.h */
    return result <= RESTART ? INTERRUPTED : (__s32)result;
}

#endif
