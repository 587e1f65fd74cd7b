/* sim_ioctls.c: makes a few of the requests that the real driver sends to the kernel. With SIMCUDA_IOCTLS=1,
 * cuInit and allocations of device memory open the files in $CUDATRACE_DEVICES and make the same first
 * requests as libcuda. The structs and numbers are taken from open-gpu-kernel-modules. The answers are
 * ignored. */
#include "simcuda.h"

#include "sim_settings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    ESC_RM_CONTROL = 0x2a,
    ESC_RM_ALLOC = 0x2b,
    ESC_RM_VID_HEAP_CONTROL = 0x4a,
    ESC_CARD_INFO = 200,
    ESC_CHECK_VERSION_STR = 210,
    UVM_MAP_EXTERNAL_ALLOCATION = 33,
    UVM_INITIALIZE = 0x30000001,
};

static int open_device(const char *name)
{
    char path[4096];
    const char *directory = getenv("CUDATRACE_DEVICES");
    if (!sim_settings.ioctls || !directory)
        return -1;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
}

static void ask(int fd, unsigned number, void *parameters, unsigned bytes)
{
    ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 'F', number, bytes), parameters);
}

void ioctls_of_init(void)
{
    const int control_fd = open_device("nvidiactl"), uvm_fd = open_device("nvidia-uvm");
    if (control_fd >= 0) {
        struct {
            uint32_t command, reply;
            char version[64];
        } version = { .version = "580.159.04" };
        char cards[32 * 72] = { 0 };
        uint32_t alloc[12] = { [3] = 0x41 /* NV01_ROOT_CLIENT */ };
        uint32_t control[8] = { [2] = 0x202 /* NV0000_CTRL_CMD_GPU_GET_ID_INFO */, [6] = 32 };
        ask(control_fd, ESC_CHECK_VERSION_STR, &version, sizeof version);
        ask(control_fd, ESC_CARD_INFO, cards, sizeof cards);
        ask(control_fd, ESC_RM_ALLOC, alloc, sizeof alloc);
        ask(control_fd, ESC_RM_CONTROL, control, sizeof control);
        close(control_fd);
    }
    if (uvm_fd >= 0) {
        uint64_t initialize[2] = { 0 };
        ioctl(uvm_fd, UVM_INITIALIZE, initialize);
        close(uvm_fd);
    }
}

void ioctls_of_allocation(void)
{
    const int control_fd = open_device("nvidiactl"), uvm_fd = open_device("nvidia-uvm");
    if (control_fd >= 0) {
        uint32_t heap[46] = { 0 };
        ask(control_fd, ESC_RM_VID_HEAP_CONTROL, heap, sizeof heap);
        close(control_fd);
    }
    if (uvm_fd >= 0) {
        char mapping[9264] = { 0 };
        ioctl(uvm_fd, UVM_MAP_EXTERNAL_ALLOCATION, mapping);
        close(uvm_fd);
    }
}
