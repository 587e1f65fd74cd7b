/* Makes ioctls on the simulated devices of $CUDATRACE_DEVICES and on other files. Checks that each ioctl
 * returns the kernel's result. Prints the lines that the trace must contain: "name<TAB>status<TAB>bytes" for
 * each request on a device.
 *
 *   ioctl_requests all THREADS ROUNDS   every kind of request
 *   ioctl_requests foreign              no request on a device
 *   ioctl_requests many COUNT           COUNT different commands
 *   ioctl_requests hang NOTIFY HOLD     a request that writes to NOTIFY and blocks until HOLD is readable
 *
 * Four modes are for tests of probes, which observe system calls. In these modes, the program first calls the
 * driver, and then reads a line.
 *
 *   ioctl_requests kernel THREADS ROUNDS  as `all`, but the kernel answers
 *   ioctl_requests kernel-many COUNT      as `many`
 *   ioctl_requests fault                  a request that waits for a page. Prints `waiting`, and provides the
 *                                         page after another line
 *   ioctl_requests files THREADS ROUNDS   opens, maps and closes devices and other files. Prints
 *                                         "name<TAB>status<TAB>device<TAB>bytes" for each call on a device */
#include "../ensure.h"
#include "simdevice.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { UNTOUCHED_ERRNO = 1234 };

static int control_fd, gpu_fd, uvm_fd, uvm_tools_fd, modeset_fd;
static uint8_t *unreadable; /* an unreadable page, which follows a readable one */
static long rounds = 1;
static bool in_kernel; /* requests are system calls, which simdevice does not see */

static int open_device(const char *name)
{
    char path[4096];
    const char *directory = getenv("CUDATRACE_DEVICES");
    ENSURE(directory != NULL);
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    ENSURE(fd >= 0);
    return fd;
}

static unsigned long request_of(unsigned number, size_t bytes)
{
    return _IOC(_IOC_READ | _IOC_WRITE, 'F', number, bytes);
}

/* ---- on the devices ---- */

static void print(const char *name, int32_t status, uint32_t bytes)
{
    printf("%s\t%d\t%u\n", name, status, bytes);
}

/* Makes one request, which either succeeds and writes an RM status to `where`, or fails with `error`. */
static void ask(int fd, unsigned long request, void *argument, void *where, int32_t status, int error,
                const char *name, uint32_t bytes)
{
    if (in_kernel) {
        const bool is_answered = syscall(SYS_ioctl, fd, request, argument) == 0;
        print(name, !is_answered ? -errno : where ? *(int32_t *)where : 0, bytes);
        return;
    }
    simdevice_answer((struct simdevice_answer){ .error = error, .where = where, .status = status });
    errno = UNTOUCHED_ERRNO;
    const int result = ioctl(fd, request, argument);
    ENSURE(result == (error ? -1 : 0));
    ENSURE(errno == (error ? error : UNTOUCHED_ERRNO));
    print(name, error ? -error : where ? status : 0, bytes);
}

static void put(void *bytes, size_t offset, uint32_t value)
{
    memcpy((uint8_t *)bytes + offset, &value, sizeof(value));
}

static void ask_control(int fd, uint32_t command, uint32_t params_bytes, int32_t status, int error,
                        const char *name)
{
    uint8_t control[32] = { 0 };
    put(control, 8, command);
    put(control, 24, params_bytes);
    ask(fd, request_of(0x2a, sizeof(control)), control, control + 28, status, error, name, params_bytes);
}

static void ask_escapes(void)
{
    ask_control(control_fd, 0x20800102, 1032, 0, 0, "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2");
    ask_control(gpu_fd, 0x20800102, 1032, 0x56, 0, "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2");
    ask_control(control_fd, 0x101, 24, 0, EIO, "RM_CONTROL NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION");
    ask_control(control_fd, 0xfffffffe, 8, 0x1f, 0, "RM_CONTROL 0xfffffffe");

    uint8_t bytes[9264] = { 0 };
    put(bytes, 12, 0x41);
    ask(control_fd, request_of(0x2b, 32), bytes, bytes + 28, 0, 0, "RM_ALLOC NV01_ROOT_CLIENT", 32);
    ask(control_fd, request_of(0x2b, 48), bytes, bytes + 40, 0x1b, 0, "RM_ALLOC NV01_ROOT_CLIENT", 48);
    uint64_t memory[12] = { [8] = 1 << 21 }; /* NV_MEMORY_ALLOCATION_PARAMS */
    const uint64_t of_memory = (uintptr_t)memory;
    put(bytes, 12, 0x40);
    memcpy(bytes + 16, &of_memory, sizeof(of_memory));
    ask(control_fd, request_of(0x2b, 48), bytes, bytes + 40, 0, 0, "RM_ALLOC NV01_MEMORY_LOCAL_USER",
        1 << 21);
    put(bytes, 12, 0xc86f);
    ask(control_fd, request_of(0x2b, 48), bytes, bytes + 40, 0, 0, "RM_ALLOC HOPPER_CHANNEL_GPFIFO_A", 48);
    put(bytes, 12, 0xa06c);
    ask(control_fd, request_of(0x2b, 48), bytes, bytes + 40, 0, 0, "RM_ALLOC KEPLER_CHANNEL_GROUP_A", 48);
    put(bytes, 12, 0xeeee);
    ask(control_fd, request_of(0x2b, 48), bytes, bytes + 40, 0, 0, "RM_ALLOC 0xeeee", 48);
    ask(control_fd, request_of(0x29, 16), bytes, bytes + 12, 0x36, 0, "NV_ESC_RM_FREE", 16);
    ask(control_fd, request_of(0x4a, 184), bytes, bytes + 20, 0x51, 0, "NV_ESC_RM_VID_HEAP_CONTROL", 184);
    ask(control_fd, request_of(0x4e, 56), bytes, bytes + 40, 0, 0, "NV_ESC_RM_MAP_MEMORY", 56);
    ask(gpu_fd, request_of(0xce, 16), bytes, bytes + 12, 0x40, 0, "NV_ESC_ALLOC_OS_EVENT", 16);
    ask(gpu_fd, request_of(0xc9, 4), bytes, NULL, 0, EINVAL, "NV_ESC_REGISTER_FD", 4);
    ask(control_fd, request_of(0xc8, 2304), bytes, NULL, 0, 0, "NV_ESC_CARD_INFO", 2304);
    ask(control_fd, request_of(0xfe, 12), bytes, NULL, 0, ENOTTY, "ESC 0xfe", 12);
    ask(control_fd, _IO('F', 0xfd), NULL, NULL, 0, 0, "ESC 0xfd", 0);
}

static void ask_transfers(void)
{
    uint8_t control[32] = { 0 };
    put(control, 8, 0x20801303);
    put(control, 24, 5000);
    struct {
        uint32_t command, bytes;
        void *pointer;
    } transfer = { 0x2a, sizeof(control), control };
    const unsigned long request = request_of(0xd3, sizeof(transfer));
    ask(control_fd, request, &transfer, control + 28, 0x57, 0, "RM_CONTROL NV2080_CTRL_CMD_FB_GET_INFO_V2",
        5000);
    transfer.pointer = unreadable;
    ask(control_fd, request, &transfer, NULL, 0, EFAULT, "NV_ESC_RM_CONTROL", 32);
    ask(control_fd, request, unreadable, NULL, 0, EFAULT, "NV_ESC_IOCTL_XFER_CMD", 16);
}

static void ask_badly(void)
{
    ask(control_fd, request_of(0x2a, 32), unreadable, NULL, 0, EFAULT, "NV_ESC_RM_CONTROL", 32);
    ask(control_fd, request_of(0x2a, 32), NULL, NULL, 0, EFAULT, "NV_ESC_RM_CONTROL", 32);
    ask(control_fd, request_of(0x2b, 48), unreadable - 8, NULL, 0, EFAULT, "NV_ESC_RM_ALLOC", 48);
    ask(uvm_fd, 27, unreadable, NULL, 0, EFAULT, "UVM_REGISTER_CHANNEL", 56);
    /* The request succeeds with an unreadable argument, which never happens with a real kernel, but must not
     * cause a crash. */
    ask(uvm_fd, 27, unreadable, NULL, 0, 0, "UVM_REGISTER_CHANNEL", 56);
}

static void ask_uvm(void)
{
    uint8_t bytes[9264] = { 0 };
    ask(uvm_fd, 0x30000001, bytes, bytes + 8, 0, 0, "UVM_INITIALIZE", 16);
    /* The kernel answers this request for any file, because the request has the same number as FIGETBSZ. The
     * kernel writes only the first word. */
    put(bytes, 16, 0x1f);
    ask(uvm_fd, 2, bytes, bytes + 16, 0x1f, 0, "UVM_RELEASE_VA", 24);
    ask(uvm_fd, 33, bytes, bytes + 9260, 0x22, 0, "UVM_MAP_EXTERNAL_ALLOCATION", 9264);
    ask(uvm_fd, 27, bytes, bytes + 48, 0x3d, 0, "UVM_REGISTER_CHANNEL", 56);
    ask(uvm_fd, 75, bytes, bytes + 4, 0x10006, 0, "UVM_MM_INITIALIZE", 8);
    ask(uvm_fd, 0x30000002, NULL, NULL, 0, 0, "UVM_DEINITIALIZE", 0);
    ask(uvm_fd, 1999, bytes, NULL, 0, ENOTTY, "UVM 1999", 0);
}

/* Uses commands that have the same name in all releases, because the driver's release is not known here. */
static void ask_tools_and_modeset(void)
{
    uint8_t bytes[64] = { 0 };
    ask(uvm_tools_fd, 0x3c, bytes, bytes + 8, 0x1f, 0, "UVM_TOOLS_ENABLE_COUNTERS", 16);
    ask(uvm_tools_fd, 0x43, bytes, bytes, 0x40, 0, "UVM_TOOLS_FLUSH_EVENTS", 4);
    struct {
        uint32_t command, bytes;
        void *pointer;
    } params = { 9, 1234, bytes };
    const unsigned long request = _IOC(_IOC_READ | _IOC_WRITE, 'm', 0, sizeof(params));
    ask(modeset_fd, request, &params, NULL, 0, 0, "NVKMS_IOCTL_SET_MODE", 1234);
    params.command = 1999;
    ask(modeset_fd, request, &params, NULL, 0, EPERM, "NVKMS 1999", 1234);
    ask(modeset_fd, request, unreadable, NULL, 0, EFAULT, "NVKMS 0xffffffff", 0);
    ask(modeset_fd, _IO('m', 0), NULL, NULL, 0, ENOTTY, "NVKMS 0xffffffff", 0);
}

/* Sends the version of a driver release to the kernel, so that the hook expects the structs of that release.
 * Then makes a request with such a struct. */
static void ask_as_driver(const char *release, uint32_t bytes, uint32_t status_offset)
{
    uint8_t text[72] = { 0 }, mapping[9264] = { 0 };
    strcpy((char *)text + 8, release);
    ask(control_fd, request_of(0xd2, sizeof(text)), text, NULL, 0, 0, "NV_ESC_CHECK_VERSION_STR",
        sizeof(text));
    ask(uvm_fd, 33, mapping, mapping + status_offset, 0x2d, 0, "UVM_MAP_EXTERNAL_ALLOCATION", bytes);
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    (void)number;
    errno = 7; /* handlers must not do this, but it shows that no other code restores errno */
    ask_control(control_fd, 0x20800102, 1032, 0x65, 0, "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2");
    handled = 1;
}

/* ioctl() is not a cancellation point, so the hook's code around it must not be one either. */
static volatile bool passed;

static void *be_cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    ask_control(control_fd, 0x20800102, 1032, 0, 0, "RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2");
    passed = true;
    pthread_testcancel();
    return unused;
}

/* ---- on other files ---- */

/* Checks that an ioctl has the same result and errno as the system call itself. */
static void pass(int fd, unsigned long request, void *argument)
{
    errno = UNTOUCHED_ERRNO;
    const int wanted = (int)syscall(SYS_ioctl, fd, request, argument), wanted_errno = errno;
    errno = UNTOUCHED_ERRNO;
    ENSURE(ioctl(fd, request, argument) == wanted);
    ENSURE(errno == wanted_errno);
}

static void ask_others(bool devices_too)
{
    uint8_t bytes[64] = { 0 };
    char name[64]; /* ptsname() would share one between threads, which would open each other's terminals */
    int value, pipes[2], sockets[2];
    ENSURE(pipe(pipes) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    ENSURE(write(pipes[1], bytes, 5) == 5);
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ENSURE(terminal >= 0 && file >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    ENSURE(ptsname_r(terminal, name, sizeof(name)) == 0);
    const int line = open(name, O_RDWR | O_NOCTTY);
    ENSURE(line >= 0);
    const int files[] = { pipes[0], sockets[0], file, line, -1, 1000000 };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        pass(files[i], request_of(0x2a, 32), bytes);
        pass(files[i], request_of(0xc8, 64), bytes);
        pass(files[i], 27, bytes);
        pass(files[i], _IOC(_IOC_READ | _IOC_WRITE, 'm', 0, 16), bytes);
        pass(files[i], 0x30000001, bytes);
        pass(files[i], FIONREAD, &value);
        pass(files[i], TIOCGWINSZ, bytes);
        pass(files[i], TIOCGWINSZ, unreadable);
    }
    ENSURE(ioctl(pipes[0], FIONREAD, &value) == 0 && value == 5);
    /* If a request's number belongs to another device's driver, the request is passed on but not recorded. */
    if (devices_too && in_kernel) {
        syscall(SYS_ioctl, control_fd, 27, bytes);
        syscall(SYS_ioctl, gpu_fd, 0x30000001, bytes);
        syscall(SYS_ioctl, uvm_fd, request_of(0x2a, 32), bytes);
        syscall(SYS_ioctl, modeset_fd, 27, bytes);
        syscall(SYS_ioctl, control_fd, FIONREAD, &value);
    } else if (devices_too) {
        ENSURE(ioctl(control_fd, 27, bytes) == 0);
        ENSURE(ioctl(gpu_fd, 0x30000001, bytes) == 0);
        ENSURE(ioctl(uvm_fd, request_of(0x2a, 32), bytes) == 0);
        ENSURE(ioctl(uvm_tools_fd, request_of(0x2a, 32), bytes) == 0);
        ENSURE(ioctl(modeset_fd, request_of(0x2a, 32), bytes) == 0);
        ENSURE(ioctl(modeset_fd, 27, bytes) == 0);
        ENSURE(ioctl(control_fd, _IOC(_IOC_READ | _IOC_WRITE, 'm', 0, 16), bytes) == 0);
        ENSURE(ioctl(control_fd, FIONREAD, &value) == 0);
    }
    const int all[] = { pipes[0], pipes[1], sockets[0], sockets[1], terminal, file, line };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        close(all[i]);
}

/* ---- the modes ---- */

static void *ask_everything(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        ask_escapes();
        ask_transfers();
        ask_badly();
        ask_uvm();
        ask_tools_and_modeset();
        ask_others(true);
    }
    return unused;
}

static void run_all(long threads)
{
    pthread_t thread[64];
    ENSURE(threads > 0 && threads <= 64);
    for (long i = 0; i < threads; i++)
        ENSURE(pthread_create(&thread[i], NULL, ask_everything, NULL) == 0);
    for (long i = 0; i < threads; i++)
        ENSURE(pthread_join(thread[i], NULL) == 0);

    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    ENSURE(handled);
    void *result;
    ENSURE(pthread_create(&thread[0], NULL, be_cancelled, NULL) == 0 &&
           pthread_join(thread[0], &result) == 0);
    ENSURE(passed && result == PTHREAD_CANCELED);
    if (in_kernel) /* it knows no versions */
        return;
    ask_as_driver("535.104.05", 1200, 1196);
    ask_as_driver("580.159.04", 9264, 9260);
}

/* ---- for probes ---- */

/* A probe that records all processes begins to record a process at that process's first driver call. */
static void call_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    ENSURE(driver != NULL);
    int (*get_version)(int *) = (int (*)(int *))(uintptr_t)dlsym(driver, "cuDriverGetVersion");
    int version;
    ENSURE(get_version && get_version(&version) == 0);
    ENSURE(getchar() == '\n');
    in_kernel = true;
}

static void *ask_for_block_size(void *page)
{
    ENSURE(syscall(SYS_ioctl, uvm_fd, 2, page) == 0);
    return NULL;
}

/* Makes a request whose answer the kernel writes to a page that does not exist until userfaultfd provides
 * it. */
static void fault(void)
{
    const long page_bytes = sysconf(_SC_PAGESIZE);
    const int pages = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    ENSURE(pages >= 0);
    struct uffdio_api api = { .api = UFFD_API };
    ENSURE(ioctl(pages, UFFDIO_API, &api) == 0);
    void *page = mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(page != MAP_FAILED);
    const struct uffdio_range range = { (uintptr_t)page, (uint64_t)page_bytes };
    struct uffdio_register missing = { .range = range, .mode = UFFDIO_REGISTER_MODE_MISSING };
    ENSURE(ioctl(pages, UFFDIO_REGISTER, &missing) == 0);
    pthread_t thread;
    struct uffd_msg message;
    ENSURE(pthread_create(&thread, NULL, ask_for_block_size, page) == 0);
    ENSURE(read(pages, &message, sizeof(message)) == sizeof(message));
    puts("waiting");
    fflush(stdout);
    ENSURE(getchar() == '\n');
    struct uffdio_zeropage zeros = { .range = range };
    ENSURE(ioctl(pages, UFFDIO_ZEROPAGE, &zeros) == 0);
    ENSURE(pthread_join(thread, NULL) == 0);
}

/* ---- device files ---- */

static void print_file(const char *name, bool is_done, const char *device, size_t bytes)
{
    printf("%s\t%d\t%s\t%zu\n", name, is_done ? 0 : -errno, device, bytes);
}

static int open_in_folder(const char *name, int flags)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", getenv("CUDATRACE_DEVICES"), name);
    return open(path, flags | O_CLOEXEC | O_NOCTTY);
}

/* Opens, maps and closes the file of a device, which is a symbolic link to `target` in /dev. */
static void use_device(const char *name, const char *target, size_t bytes)
{
    const int fd = open_in_folder(name, O_RDWR);
    ENSURE(fd >= 0);
    print_file("openat", true, target, 0);
    for (size_t i = 1; i <= 2; i++) {
        void *mapped = mmap(NULL, i * bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        print_file("mmap", mapped != MAP_FAILED, target, i * bytes);
        if (mapped != MAP_FAILED)
            munmap(mapped, i * bytes);
    }
    ENSURE(close(fd) == 0);
    print_file("close", true, target, 0);
    ENSURE(open_in_folder(name, O_RDONLY | O_DIRECTORY) < 0);
    print_file("openat", false, name, 0);
}

/* Makes calls on files that do not belong to the driver's devices, and tries to open files that do not
 * exist. */
static void use_other_files(size_t bytes)
{
    const int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, program, 0);
    ENSURE(program >= 0 && mapped != MAP_FAILED);
    munmap(mapped, bytes);
    ENSURE(close(program) == 0 && close(-1) < 0);
    ENSURE(mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED);
    mapped = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, gpu_fd, 0);
    ENSURE(mapped != MAP_FAILED);
    munmap(mapped, bytes);
    static const char *const absent[] = { "none", "nvidi", "nvidia-caps/nvidia-cap1" };
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        ENSURE(open_in_folder(absent[i], O_RDONLY) < 0);
    ENSURE(open("", O_RDONLY | O_CLOEXEC) < 0 && open((const char *)unreadable, O_RDONLY | O_CLOEXEC) < 0);
}

static void *use_files(void *unused)
{
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (long i = 0; i < rounds; i++) {
        use_device("nvidiactl", "null", page_bytes);
        use_device("nvidia0", "zero", page_bytes << 21); /* more than 32 bits */
        use_device("nvidia-uvm", "ptmx", page_bytes);
        ENSURE(open_in_folder("nvidia9", O_RDWR) < 0);
        print_file("openat", false, "nvidia9", 0);
        use_other_files(page_bytes);
    }
    return unused;
}

static void run_files(long threads)
{
    pthread_t thread[64];
    ENSURE(threads > 0 && threads <= 64);
    for (long i = 0; i < threads; i++)
        ENSURE(pthread_create(&thread[i], NULL, use_files, NULL) == 0);
    for (long i = 0; i < threads; i++)
        ENSURE(pthread_join(thread[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    unreadable = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ENSURE(unreadable != MAP_FAILED);
    unreadable += 4096;
    ENSURE(mprotect(unreadable, 4096, PROT_NONE) == 0);
    control_fd = open_device("nvidiactl");
    gpu_fd = open_device("nvidia0");
    uvm_fd = open_device("nvidia-uvm");
    uvm_tools_fd = open_device("nvidia-uvm-tools");
    modeset_fd = open_device("nvidia-modeset");

    const bool is_probed = strcmp(mode, "kernel") == 0;
    if ((strcmp(mode, "all") == 0 || is_probed) && argc == 4) {
        if (is_probed)
            call_driver();
        rounds = atol(argv[3]);
        run_all(atol(argv[2]));
    } else if (strcmp(mode, "files") == 0 && argc == 4) {
        call_driver();
        rounds = atol(argv[3]);
        run_files(atol(argv[2]));
    } else if (strcmp(mode, "foreign") == 0 && argc == 2) {
        ask_others(false);
    } else if (strcmp(mode, "fault") == 0 && argc == 2) {
        call_driver();
        fault();
    } else if ((strcmp(mode, "many") == 0 || strcmp(mode, "kernel-many") == 0) && argc == 3) {
        if (strcmp(mode, "many") != 0)
            call_driver();
        for (uint32_t i = 0; i < (uint32_t)atol(argv[2]); i++)
            ask_control(control_fd, 0xf0000000 + i, 4, 0, 0, "many");
    } else if (strcmp(mode, "hang") == 0 && argc == 4) {
        uint8_t control[32] = { 0 };
        put(control, 8, 0x20800102);
        simdevice_answer((struct simdevice_answer){ .notify_fd = open(argv[2], O_WRONLY | O_CLOEXEC),
                                                    .hold_fd = open(argv[3], O_RDONLY | O_CLOEXEC) });
        ENSURE(ioctl(control_fd, request_of(0x2a, sizeof(control)), control) == 0);
    } else {
        fprintf(stderr,
                "usage: ioctl_requests all THREADS ROUNDS | foreign | many COUNT | hang NOTIFY HOLD | "
                "kernel THREADS ROUNDS | kernel-many COUNT | fault | files THREADS ROUNDS\n");
        return 2;
    }
    return 0;
}
