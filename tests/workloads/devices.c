/* Opens the NVIDIA driver's device files, and performs each act the given number of times. The program runs
 * on stubs of the driver (tests/kernel/stub). With --calls N, the program first initializes the simulated
 * driver. It then performs the acts once outside of driver calls, and once inside each of N driver calls. To
 * run code inside a driver call, the program passes the code as a callback to
 * cuOccupancyMaxPotentialBlockSize. After the callback, cuOccupancyMaxPotentialBlockSize fails, because its
 * function argument is NULL. */
#include "../kernel/stub/requests.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef size_t shared_of(int block_size);
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, shared_of *shared_of,
                                          size_t shared_bytes, int limit);

enum { XID_ERROR = 31, TIMES_MAX = 1 << 20 };

enum device { CONTROL, GPU, UVM, DEVICES };
static const char *const paths[DEVICES] = { "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm" };
static int files[DEVICES];

static void map(enum device device, int protection, bool is_touched)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *memory = mmap(NULL, page, protection, MAP_SHARED, files[device], 0);
    ENSURE(memory != MAP_FAILED);
    if (is_touched)
        memory[0] = 1;
    munmap((void *)memory, page);
}

static void map_gpu(void)
{
    map(GPU, PROT_READ, false);
}

static void touch(void)
{
    map(UVM, PROT_READ | PROT_WRITE, true);
}

static void request_unknown(void)
{
    ENSURE(ioctl(files[CONTROL], STUB_UNKNOWN, NULL) == -1 && errno == EINVAL);
}

static uint8_t zeros[128]; /* the driver's structs are smaller */
static uint32_t error = XID_ERROR;

/* An act is a function, or a request with its argument. */
static struct act {
    const char *name, *help;
    void (*act)(void);
    enum device device;
    unsigned long request;
    void *argument;
    long long times;
} acts[] = {
    { "control", "RM_CONTROL requests", .device = CONTROL, .request = STUB_RM_CONTROL, .argument = zeros },
    { "alloc", "RM_ALLOC requests", .device = CONTROL, .request = STUB_RM_ALLOC, .argument = zeros },
    { "free", "RM_FREE requests", .device = CONTROL, .request = STUB_RM_FREE, .argument = zeros },
    { "unknown", "requests that the driver refuses", .act = request_unknown },
    { "map", "mappings of nvidia0", .act = map_gpu },
    { "xid", "errors of the GPU", .device = CONTROL, .request = STUB_XID, .argument = &error },
    { "fence", "fences that are made and signaled", .device = GPU, .request = STUB_FENCE },
    { "migrate", "migrations", .device = UVM, .request = STUB_UVM_MIGRATE, .argument = zeros },
    { "gpu-fault", "page faults of the GPU", .device = UVM, .request = STUB_UVM_GPU_FAULT },
    { "touch", "mappings of nvidia-uvm that are touched", .act = touch },
};
enum { ACTS = sizeof(acts) / sizeof(acts[0]) };

static void perform(const struct act *act)
{
    if (act->act)
        act->act();
    else
        ENSURE(ioctl(files[act->device], act->request, act->argument) == 0);
}

static size_t perform_all(int block_size)
{
    (void)block_size;
    for (int i = 0; i < ACTS; i++) {
        for (long long times = acts[i].times; times > 0; times--)
            perform(&acts[i]);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static long long calls;
    struct option_row options[ACTS + 2] = { NUMBER_OPTION("calls", "driver calls that do the acts once more",
                                                          &calls, 0, TIMES_MAX) };
    for (int i = 0; i < ACTS; i++)
        options[i + 1] =
            (struct option_row)NUMBER_OPTION(acts[i].name, acts[i].help, &acts[i].times, 0, TIMES_MAX);
    options_read(argc, argv, "Make requests to the device files of the NVIDIA driver.", options);
    if (calls > 0) {
        driver_open(VIA_LINKED);
        driver_start();
    }
    for (int i = 0; i < DEVICES; i++) {
        files[i] = open(paths[i], O_RDWR | O_CLOEXEC);
        ENSURE(files[i] >= 0);
    }
    perform_all(0);
    for (long long i = 0; i < calls; i++) {
        int grid, block;
        ENSURE(cuOccupancyMaxPotentialBlockSize(&grid, &block, NULL, perform_all, 0, 0) != CUDA_SUCCESS);
    }
    return 0;
}
