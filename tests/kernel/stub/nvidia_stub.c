/* The stub of nvidia.ko: the files nvidiactl and nvidia0, and the nvidia_dev_xid tracepoint. */
#include "requests.h"
#include "stub.h"

#include <linux/dma-fence.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <trace/events/dma_fence.h>

#define CREATE_TRACE_POINTS
#include "nvidia_trace.h"

enum { MAJOR_NUMBER = 195, ARGUMENT_BYTES_MAX = 64 };

COUNTER(nvidia_open);
COUNTER(nvidia_close);
COUNTER(nvidia_mmap);
COUNTER(rm_ioctl);
COUNTER(nv_post_event);

STUB int nvidia_open(struct inode *inode, struct file *file)
{
    COUNT(nvidia_open);
    return 0;
}

STUB int nvidia_close(struct inode *inode, struct file *file)
{
    COUNT(nvidia_close);
    return 0;
}

STUB int nvidia_mmap(struct file *file, struct vm_area_struct *area)
{
    COUNT(nvidia_mmap);
    return 0;
}

/* ---- requests ---- */

static int report_error(u32 error)
{
    struct pci_dev *device = pci_get_device(PCI_ANY_ID, PCI_ANY_ID, NULL);
    if (!device)
        return -ENODEV;
    trace_nvidia_dev_xid(device, error, "stub");
    pci_dev_put(device);
    return 0;
}

struct stub_fence {
    struct dma_fence fence;
    spinlock_t lock;
    struct work_struct signal;
};

static const char *fence_name(struct dma_fence *fence)
{
    return "nvidia";
}

static const struct dma_fence_ops fence_ops = { .get_driver_name = fence_name,
                                                .get_timeline_name = fence_name };

static void signal_fence(struct work_struct *work)
{
    dma_fence_signal(&container_of(work, struct stub_fence, signal)->fence);
}

/* All callers pass the same argument, so the compiler removes the parameter and adds a suffix to the
 * symbol. */
static noinline void nv_post_event(void *event)
{
    if (!event)
        COUNT(nv_post_event);
}

static int make_fence(void)
{
    struct stub_fence *made = kzalloc(sizeof(*made), GFP_KERNEL);
    if (!made)
        return -ENOMEM;
    spin_lock_init(&made->lock);
    dma_fence_init(&made->fence, &fence_ops, &made->lock, dma_fence_context_alloc(1), 1);
    trace_dma_fence_emit(&made->fence);
    INIT_WORK(&made->signal, signal_fence);
    schedule_work(&made->signal);
    flush_work(&made->signal);
    nv_post_event(NULL);
    dma_fence_put(&made->fence);
    return 0;
}

/* In the real driver, this function was compiled separately, without the call at its start that ftrace needs.
 * Most kernels refuse kprobe events on such functions (CONFIG_KPROBE_EVENTS_ON_NOTRACE). */
STUB notrace int rm_ioctl(void *stack, void *device, struct file *file, u32 number, void *argument, u32 bytes)
{
    COUNT(rm_ioctl);
    switch (number) {
    case _IOC_NR(STUB_RM_FREE):
    case _IOC_NR(STUB_RM_CONTROL):
    case _IOC_NR(STUB_RM_ALLOC):
        return 0;
    case _IOC_NR(STUB_XID):
        return bytes == sizeof(u32) ? report_error(*(const u32 *)argument) : -EINVAL;
    case _IOC_NR(STUB_FENCE):
        return make_fence();
    default:
        return -EINVAL;
    }
}

/* This function is inlined, so it has no symbol, as in drivers since 550. */
static __always_inline int nvidia_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    u8 copy[ARGUMENT_BYTES_MAX] __aligned(8);
    const u32 bytes = _IOC_SIZE(request);
    if (bytes > sizeof(copy))
        return -EINVAL;
    if (copy_from_user(copy, (const void __user *)argument, bytes))
        return -EFAULT;
    const int result = rm_ioctl(NULL, NULL, file, _IOC_NR(request), copy, bytes);
    if (_IOC_DIR(request) & _IOC_READ && copy_to_user((void __user *)argument, copy, bytes))
        return -EFAULT;
    return result;
}

#ifdef FRONTEND
#define IOCTL_ENTRY nvidia_frontend_unlocked_ioctl
COUNTER(nvidia_frontend_unlocked_ioctl);

STUB long nvidia_frontend_unlocked_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    COUNT(nvidia_frontend_unlocked_ioctl);
    return nvidia_ioctl(file, request, argument);
}
#else
#define IOCTL_ENTRY nvidia_unlocked_ioctl
COUNTER(nvidia_unlocked_ioctl);

STUB long nvidia_unlocked_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    COUNT(nvidia_unlocked_ioctl);
    return nvidia_ioctl(file, request, argument);
}
#endif

/* ---- the module ---- */

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = nvidia_open,
    .release = nvidia_close,
    .mmap = nvidia_mmap,
    .unlocked_ioctl = IOCTL_ENTRY,
};

static int __init nvidia_init_module(void)
{
    return register_chrdev(MAJOR_NUMBER, "nvidia", &operations);
}

static void __exit nvidia_exit_module(void)
{
    unregister_chrdev(MAJOR_NUMBER, "nvidia");
}

module_init(nvidia_init_module);
module_exit(nvidia_exit_module);
MODULE_DESCRIPTION("Functions with the names of the NVIDIA driver's, for tests of cudatrace");
MODULE_VERSION("535.104.05"); /* of the structs of requests */
MODULE_LICENSE("Dual MIT/GPL");
