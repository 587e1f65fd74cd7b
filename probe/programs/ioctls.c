#include "ioctls.h"

#include "ioctl_layout.h"
#include "options.h"
#include "tracepoint.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* From open-gpu-kernel-modules (MIT licence): kernel-open/common/inc/nv.h and
 * kernel-open/nvidia-uvm/uvm_linux.h. The major number of nvidia-uvm is assigned by the kernel. */
enum { MAJOR = 195, MINOR_CONTROL = 255, MINOR_UVM = 0, MINOR_UVM_TOOLS = 1 };

/* ---- the devices ---- */

static uint32_t device_number(unsigned major_number, unsigned minor_number)
{
    return major_number << CT_DEVICE_MINOR_BITS | minor_number;
}

/* Returns the major number of the device called `name` in /proc/devices, or 0 if there is none. */
static unsigned major_of(const char *wanted)
{
    char line[256], name[64];
    unsigned number, found = 0;
    FILE *devices = fopen("/proc/devices", "re");
    if (!devices)
        return 0;
    while (!found && fgets(line, sizeof(line), devices) && strcmp(line, "Block devices:\n") != 0) {
        if (sscanf(line, "%u %63s", &number, name) == 2 && strcmp(name, wanted) == 0)
            found = number;
    }
    fclose(devices);
    return found;
}

static uint32_t number_of_file(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    const int length = snprintf(path, sizeof(path), "%s/%s", folder, name);
    return length < (int)sizeof(path) && stat(path, &status) == 0 && S_ISCHR(status.st_mode)
               ? device_number(major(status.st_rdev), minor(status.st_rdev))
               : 0;
}

static uint32_t read_release(void)
{
    char version[16] = "";
    FILE *file = fopen("/sys/module/nvidia/version", "re");
    if (!file)
        return 0;
    const size_t bytes = fread(version, 1, sizeof(version) - 1, file);
    fclose(file);
    return ct_ioctl_release(version, (uint32_t)bytes);
}

static void set_folder(struct ct_probe_devices *devices, const char *folder)
{
    const int length = snprintf(devices->folder, sizeof(devices->folder), "%s/", folder);
    devices->folder_bytes = length < (int)sizeof(devices->folder) ? (uint32_t)length : 0;
}

/* For tests without a GPU, $CUDATRACE_DEVICES names a folder of simulated devices, as it does for the
 * hook. */
void ct_ioctls_look(struct ct_ioctls *ioctls)
{
    if (!ioctls->link[CT_IOCTL_ENTER])
        return;
    const char *folder = getenv("CUDATRACE_DEVICES");
    if (folder && *folder) {
        struct ct_probe_devices simulated = {
            .control = number_of_file(folder, "nvidiactl"),
            .uvm = number_of_file(folder, "nvidia-uvm"),
            .uvm_tools = number_of_file(folder, "nvidia-uvm-tools"),
            .modeset = number_of_file(folder, "nvidia-modeset"),
        };
        set_folder(&simulated, folder);
        ct_programs_set_driver(ioctls->programs, &simulated, 0);
        return;
    }
    const unsigned uvm = major_of("nvidia-uvm");
    struct ct_probe_devices devices = {
        .control = device_number(MAJOR, MINOR_CONTROL),
        .uvm = uvm ? device_number(uvm, MINOR_UVM) : 0,
        .uvm_tools = uvm ? device_number(uvm, MINOR_UVM_TOOLS) : 0,
        .modeset = device_number(MAJOR, CT_IOCTL_MINOR_MODESET),
    };
    set_folder(&devices, "/dev");
    ct_programs_set_driver(ioctls->programs, &devices, read_release());
}

/* ---- attaching ---- */

static int attach_at(struct ct_ioctls *ioctls, int tracefs)
{
    static const char *const points[CT_SYSTEM_CALL_POINTS] = {
        [CT_IOCTL_LEAVE] = "sys_exit_ioctl",   [CT_IOCTL_ENTER] = "sys_enter_ioctl",
        [CT_OPENAT_LEAVE] = "sys_exit_openat", [CT_OPENAT_ENTER] = "sys_enter_openat",
        [CT_MMAP_LEAVE] = "sys_exit_mmap",     [CT_MMAP_ENTER] = "sys_enter_mmap",
        [CT_CLOSE_LEAVE] = "sys_exit_close",   [CT_CLOSE_ENTER] = "sys_enter_close",
    };
    for (int i = 0; i < CT_SYSTEM_CALL_POINTS; i++) {
        const int number = ct_tracepoint_number(tracefs, "syscalls", points[i]);
        const struct bpf_program *program =
            ct_programs_system_call(ioctls->programs, (enum ct_system_call_point)i);
        const int error = number < 0 ? number : ct_tracepoint_attach(program, number, 0, &ioctls->link[i]);
        if (error)
            return ct_fail(
                EXIT_FAILURE, "probe: --ioctls: cannot attach to the tracepoint syscalls:%s: %s", points[i],
                error == -ENOENT ? "the kernel has none (CONFIG_FTRACE_SYSCALLS)" : strerror(-error));
    }
    return CT_GO_ON;
}

int ct_ioctls_attach(struct ct_ioctls *ioctls, struct ct_programs *programs)
{
    *ioctls = (struct ct_ioctls){ .programs = programs };
    const int tracefs = ct_tracefs_open();
    if (tracefs < 0)
        return ct_fail(EXIT_FAILURE,
                       "probe: --ioctls: tracefs is not mounted at /sys/kernel/tracing, and mounting it: %s",
                       strerror(-tracefs));
    const int status = attach_at(ioctls, tracefs);
    close(tracefs);
    if (status == CT_GO_ON)
        ct_ioctls_look(ioctls);
    else
        ct_ioctls_detach(ioctls);
    return status;
}

void ct_ioctls_detach(struct ct_ioctls *ioctls)
{
    for (int i = 0; i < CT_SYSTEM_CALL_POINTS; i++) {
        bpf_link__destroy(ioctls->link[i]);
        ioctls->link[i] = NULL;
    }
}
