/* The stub of nvidia-uvm.ko: the file nvidia-uvm, migrations, and page faults on processor and GPU. */
#include "requests.h"
#include "stub.h"

#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static int major_number;

COUNTER(uvm_open_entry);
COUNTER(uvm_release_entry);
COUNTER(uvm_mmap_entry);
COUNTER(uvm_unlocked_ioctl_entry);
COUNTER(uvm_ioctl);
COUNTER(uvm_api_migrate);
COUNTER(uvm_migrate);
COUNTER(uvm_vm_fault_entry);
COUNTER(uvm_va_space_cpu_fault_managed);
COUNTER(replayable_faults_isr_bottom_half_entry);
COUNTER(uvm_parent_gpu_service_replayable_faults);
COUNTER(service_fault_batch);
COUNTER(uvm_ats_invalidate_notifier_entry);

/* ---- faults of the processor, in the thread that touches the memory ---- */

STUB vm_fault_t uvm_va_space_cpu_fault_managed(struct vm_fault *fault)
{
    COUNT(uvm_va_space_cpu_fault_managed);
    fault->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
    return fault->page ? 0 : VM_FAULT_OOM;
}

STUB vm_fault_t uvm_vm_fault_entry(struct vm_fault *fault)
{
    COUNT(uvm_vm_fault_entry);
    return uvm_va_space_cpu_fault_managed(fault);
}

static const struct vm_operations_struct memory_operations = { .fault = uvm_vm_fault_entry };

STUB int uvm_mmap_entry(struct file *file, struct vm_area_struct *area)
{
    COUNT(uvm_mmap_entry);
    area->vm_ops = &memory_operations;
    return 0;
}

/* ---- faults of the GPU, in a thread of the kernel ---- */

STUB int service_fault_batch(void *gpu)
{
    COUNT(service_fault_batch);
    return 0;
}

STUB void uvm_parent_gpu_service_replayable_faults(void *gpu)
{
    COUNT(uvm_parent_gpu_service_replayable_faults);
    service_fault_batch(gpu);
}

STUB void replayable_faults_isr_bottom_half_entry(void *gpu)
{
    COUNT(replayable_faults_isr_bottom_half_entry);
    uvm_parent_gpu_service_replayable_faults(gpu);
}

static void run_bottom_half(struct work_struct *work)
{
    replayable_faults_isr_bottom_half_entry(work);
}

static int service_gpu_fault(void)
{
    struct work_struct bottom_half;
    INIT_WORK_ONSTACK(&bottom_half, run_bottom_half);
    schedule_work(&bottom_half);
    flush_work(&bottom_half);
    destroy_work_on_stack(&bottom_half);
    return 0;
}

/* ---- requests ---- */

STUB int uvm_migrate(void *space)
{
    COUNT(uvm_migrate);
    return 0;
}

STUB int uvm_api_migrate(void *parameters, struct file *file)
{
    COUNT(uvm_api_migrate);
    return uvm_migrate(file->private_data);
}

STUB long uvm_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
    COUNT(uvm_ioctl);
    switch (request) {
    case STUB_UVM_MIGRATE:
        return uvm_api_migrate((void *)argument, file);
    case STUB_UVM_GPU_FAULT:
        return service_gpu_fault();
    default:
        return -EINVAL;
    }
}

STUB long uvm_unlocked_ioctl_entry(struct file *file, unsigned int request, unsigned long argument)
{
    COUNT(uvm_unlocked_ioctl_entry);
    return uvm_ioctl(file, request, argument);
}

/* ---- changes of the process's mappings ---- */

/* The stub registers this function for a notification that also occurs without ATS. In the real driver, a
 * different notification calls the function. */
STUB int uvm_ats_invalidate_notifier_entry(struct mmu_notifier *notifier,
                                           const struct mmu_notifier_range *range)
{
    COUNT(uvm_ats_invalidate_notifier_entry);
    return 0;
}

static const struct mmu_notifier_ops notifier_operations = { .invalidate_range_start =
                                                                 uvm_ats_invalidate_notifier_entry };

STUB int uvm_open_entry(struct inode *inode, struct file *file)
{
    struct mmu_notifier *notifier = kzalloc(sizeof(*notifier), GFP_KERNEL);
    COUNT(uvm_open_entry);
    if (!notifier)
        return -ENOMEM;
    notifier->ops = &notifier_operations;
    const int error = mmu_notifier_register(notifier, current->mm);
    if (error)
        kfree(notifier);
    else
        file->private_data = notifier;
    return error;
}

STUB int uvm_release_entry(struct inode *inode, struct file *file)
{
    struct mmu_notifier *notifier = file->private_data;
    COUNT(uvm_release_entry);
    mmu_notifier_unregister(notifier, notifier->mm);
    kfree(notifier);
    return 0;
}

/* ---- the module ---- */

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = uvm_open_entry,
    .release = uvm_release_entry,
    .mmap = uvm_mmap_entry,
    .unlocked_ioctl = uvm_unlocked_ioctl_entry,
};

static int __init uvm_init_entry(void)
{
    major_number = register_chrdev(0, "nvidia-uvm", &operations);
    return major_number < 0 ? major_number : 0;
}

static void __exit uvm_exit_entry(void)
{
    unregister_chrdev(major_number, "nvidia-uvm");
}

module_init(uvm_init_entry);
module_exit(uvm_exit_entry);
MODULE_DESCRIPTION("Functions with the names of the NVIDIA UVM driver's, for tests of cudatrace");
MODULE_LICENSE("Dual MIT/GPL");
