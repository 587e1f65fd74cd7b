/* The members of kernel types that the BPF programs use. libbpf relocates them for the running kernel
 * (CO-RE), so the build needs neither kernel headers nor a kernel's BTF. */
#ifndef CT_PROBE_KERNEL_H
#define CT_PROBE_KERNEL_H

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <stdbool.h>

#define CT_KERNEL_TYPE __attribute__((preserve_access_index))

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* number of threads that have not ended */
} CT_KERNEL_TYPE;

struct xol_area {
    unsigned long vaddr; /* of a page in the process, which begins with the trampoline */
} CT_KERNEL_TYPE;

struct uprobes_state {
    struct xol_area *xol_area;
} CT_KERNEL_TYPE;

struct mm_struct {
    unsigned long arg_start, arg_end;
    struct uprobes_state uprobes_state;
} CT_KERNEL_TYPE;

struct qstr {
    const unsigned char *name;
} CT_KERNEL_TYPE;

struct dentry {
    struct qstr d_name;
} CT_KERNEL_TYPE;

struct path {
    struct dentry *dentry;
} CT_KERNEL_TYPE;

struct inode {
    unsigned short i_mode;
    unsigned int i_rdev; /* of a device's file: its number, with 20 bits for the minor */
} CT_KERNEL_TYPE;

struct file {
    struct path f_path;
    struct inode *f_inode;
} CT_KERNEL_TYPE;

struct fdtable {
    unsigned int max_fds;
    struct file **fd; /* by descriptor */
} CT_KERNEL_TYPE;

struct files_struct {
    struct fdtable *fdt;
} CT_KERNEL_TYPE;

struct vm_area_struct {
    struct file *vm_file;
} CT_KERNEL_TYPE;

struct dma_fence {
    __u64 context, seqno;
} CT_KERNEL_TYPE;

struct thread_struct {
    unsigned long fsbase;
} CT_KERNEL_TYPE;

struct thread_info {
    unsigned long syscall_work; /* bits of enum syscall_work_bit, since Linux 5.11 */
} CT_KERNEL_TYPE;

enum syscall_work_bit { SYSCALL_WORK_BIT_SYSCALL_USER_DISPATCH = 6 };

struct task_struct {
    struct thread_info thread_info;
    void *stack; /* in the kernel */
    struct mm_struct *mm;
    struct task_struct *group_leader;
    struct signal_struct *signal;
    struct files_struct *files;
    struct thread_struct thread;
    __u64 start_boottime;                 /* nanoseconds of CLOCK_BOOTTIME */
    unsigned long sas_ss_sp, sas_ss_size; /* the alternate signal stack */
    unsigned int flags;                   /* PF_… */
    int pid, tgid;                        /* of the thread and its process, in the initial namespace */
    int exit_code;                        /* a wait status */
    unsigned int __state;                 /* 0: runnable */
} CT_KERNEL_TYPE;

/* Before Linux 5.14. */
struct task_struct___5_13 {
    long state;
} CT_KERNEL_TYPE;

#endif
