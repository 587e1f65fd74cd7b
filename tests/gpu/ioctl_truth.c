/* Counts a command's ioctls by means of the kernel, so that a trace can be compared with the counts.
 *
 *   ioctl_truth [--perf | --ptrace] --out FILE COMMAND ARGUMENT…
 *
 * runs the command and all of its children, and writes lines of tab-separated fields:
 *
 *   method  perf | ptrace
 *   ioctl   PID  FILE  REQUEST  COUNT   FILE is control (nvidiactl and nvidiaN), uvm, modeset, other, or ?
 *                                       if it is not known
 *   lost    COUNT                       samples that the kernel dropped for lack of room
 *   end
 *
 * The program exits with the command's status. There are two methods of counting. If no option selects a
 * method, the program uses the first permitted method:
 *
 * perf reads the raw_syscalls:sys_enter tracepoint. This method hardly slows the command down, and the kernel
 * itself records the ioctls. perf shows only the descriptor of the file that an ioctl is made on. It needs
 * tracefs and CAP_PERFMON.
 *
 * ptrace uses a seccomp filter that stops the command only at ioctls, and looks up the file while the thread
 * is stopped. This method needs no privileges, but sets no_new_privs for the command, which disables set-uid
 * programs.
 *
 * Like the hook, this program recognizes the driver's files by the device numbers of nvidiactl, nvidia-uvm,
 * nvidia-uvm-tools and nvidia-modeset in /dev, or in the folder $CUDATRACE_DEVICES. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("ioctl_truth: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(125);
}

/* ---- counts ---- */

enum file { FILE_UNKNOWN, FILE_OTHER, FILE_CONTROL, FILE_UVM, FILE_MODESET };
static const char *const file_names[] = { "?", "other", "control", "uvm", "modeset" };

struct count {
    pid_t pid;
    enum file file;
    uint32_t request;
    uint64_t calls;
};
static struct count *counts;
static size_t count_room, count_used;
static uint64_t lost;

static size_t slot_of(pid_t pid, enum file file, uint32_t request)
{
    const uint64_t key = ((uint64_t)(uint32_t)pid << 34) ^ ((uint64_t)file << 32) ^ request;
    size_t slot = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) % count_room;
    while (counts[slot].calls &&
           (counts[slot].pid != pid || counts[slot].file != file || counts[slot].request != request))
        slot = (slot + 1) % count_room;
    return slot;
}

static void count(pid_t pid, enum file file, uint32_t request, uint64_t calls)
{
    if (count_used * 2 >= count_room) {
        struct count *old = counts;
        const size_t old_room = count_room;
        count_room = count_room ? count_room * 2 : 1024;
        counts = calloc(count_room, sizeof(*counts));
        if (!counts)
            fail("out of memory");
        count_used = 0;
        for (size_t i = 0; i < old_room; i++) {
            if (old[i].calls)
                count(old[i].pid, old[i].file, old[i].request, old[i].calls);
        }
        free(old);
    }
    struct count *row = &counts[slot_of(pid, file, request)];
    count_used += row->calls == 0;
    *row = (struct count){ pid, file, request, row->calls + calls };
}

static void write_counts(const char *path, const char *method)
{
    FILE *file = fopen(path, "w");
    if (!file)
        fail("%s: %s", path, strerror(errno));
    fprintf(file, "method\t%s\n", method);
    for (size_t i = 0; i < count_room; i++) {
        if (counts[i].calls)
            fprintf(file, "ioctl\t%d\t%s\t0x%x\t%llu\n", counts[i].pid, file_names[counts[i].file],
                    counts[i].request, (unsigned long long)counts[i].calls);
    }
    fprintf(file, "lost\t%llu\nend\n", (unsigned long long)lost);
    if (fclose(file) != 0)
        fail("%s: %s", path, strerror(errno));
}

/* ---- the command ---- */

static pid_t command;
static int command_status;

/* Starts a process that waits until a byte is written to *go_fd, and then runs the command. */
static void start(char **argv, bool filtered, int *go_fd)
{
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        fail("pipe: %s", strerror(errno));
    command = fork();
    if (command < 0)
        fail("fork: %s", strerror(errno));
    if (command > 0) {
        close(go[0]);
        *go_fd = go[1];
        return;
    }
    char byte;
    if (read(go[0], &byte, 1) != 1)
        _exit(125);
    if (filtered) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            fail("seccomp: %s", strerror(errno));
    }
    execvp(argv[0], argv);
    fprintf(stderr, "ioctl_truth: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static void release_command(int go_fd)
{
    if (write(go_fd, "", 1) != 1)
        fail("the command did not start");
    close(go_fd);
}

/* ---- ptrace ---- */

static dev_t device_number(const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    const char *directory = getenv("CUDATRACE_DEVICES");
    snprintf(path, sizeof(path), "%s/%s", directory ? directory : "/dev", name);
    return stat(path, &status) == 0 && S_ISCHR(status.st_mode) ? status.st_rdev : 0;
}

static enum file file_of(pid_t tid, int fd)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
    if (stat(path, &status) != 0 || !S_ISCHR(status.st_mode))
        return FILE_OTHER;
    const dev_t control = device_number("nvidiactl");
    if (control && major(status.st_rdev) == major(control) && minor(status.st_rdev) != 254)
        return FILE_CONTROL;
    if (!status.st_rdev)
        return FILE_OTHER;
    if (status.st_rdev == device_number("nvidia-uvm") || status.st_rdev == device_number("nvidia-uvm-tools"))
        return FILE_UVM;
    return status.st_rdev == device_number("nvidia-modeset") ? FILE_MODESET : FILE_OTHER;
}

static pid_t process_of(pid_t tid)
{
    char path[64], line[256];
    snprintf(path, sizeof(path), "/proc/%d/status", tid);
    FILE *file = fopen(path, "r");
    pid_t pid = tid;
    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Tgid: %d", &pid) == 1)
            break;
    }
    if (file)
        fclose(file);
    return pid;
}

static void count_stopped(pid_t tid)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
        return; /* the thread was killed while it was stopped, and the call was not made */
    count(process_of(tid), file_of(tid, (int)info.seccomp.args[0]), (uint32_t)info.seccomp.args[1], 1);
}

static void run_ptrace(char **argv)
{
    int go_fd;
    start(argv, true, &go_fd);
    const long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, command, NULL, options) != 0)
        fail("ptrace: %s", strerror(errno));
    release_command(go_fd);
    int status;
    pid_t tid;
    while ((tid = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status)) {
            if (tid == command)
                command_status = status;
            continue;
        }
        const int event = status >> 16, stop = WSTOPSIG(status);
        if (event == PTRACE_EVENT_SECCOMP)
            count_stopped(tid);
        if (event == PTRACE_EVENT_STOP && stop != SIGTRAP)
            ptrace(PTRACE_LISTEN, tid, NULL, NULL); /* for a group stop, the thread stays stopped until
                                                     * SIGCONT */
        else
            ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)(event ? 0 : stop));
    }
}

/* ---- perf ---- */

enum { RING_PAGES = 256 };

struct ring {
    int fd;
    struct perf_event_mmap_page *page;
    const uint8_t *data;
    uint64_t bytes;
};

/* A record of the sys_enter tracepoint. `common` contains the fields that the records of all tracepoints
 * begin with. */
struct sys_enter {
    uint64_t common;
    int64_t id;
    uint64_t args[6];
};

static int tracepoint_id(void)
{
    static const char *const roots[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
    for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/events/raw_syscalls/sys_enter/id", roots[i]);
        FILE *file = fopen(path, "r");
        int id;
        const bool found = file && fscanf(file, "%d", &id) == 1;
        if (file)
            fclose(file);
        if (found)
            return id;
    }
    return -1;
}

/* Opens an event and its ring for one processor. Each processor needs a separate event, because an event that
 * threads and children inherit can have a ring only if it is bound to a processor. */
static bool open_ring(struct ring *ring, int id, int cpu, const char *filter)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT,
        .size = sizeof(attr),
        .config = (unsigned int)id,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_RAW,
        .inherit = 1,
        .wakeup_events = 1,
    };
    ring->fd = (int)syscall(SYS_perf_event_open, &attr, command, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (ring->fd < 0)
        return false;
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *map =
        ioctl(ring->fd, PERF_EVENT_IOC_SET_FILTER, filter) == 0
            ? mmap(NULL, (1 + RING_PAGES) * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0)
            : MAP_FAILED;
    if (map == MAP_FAILED) {
        const int error = errno;
        close(ring->fd);
        errno = error;
        return false;
    }
    ring->page = map;
    ring->data = (const uint8_t *)map + page_bytes;
    ring->bytes = RING_PAGES * page_bytes;
    return true;
}

static void copy_out(const struct ring *ring, uint64_t at, void *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)to)[i] = ring->data[(at + i) % ring->bytes];
}

static void drain(struct ring *ring)
{
    const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = ring->page->data_tail;
    while (at < head) {
        struct perf_event_header header;
        copy_out(ring, at, &header, sizeof(header));
        if (header.type == PERF_RECORD_SAMPLE) {
            struct {
                uint32_t pid, tid, raw_bytes;
                uint8_t raw[sizeof(struct sys_enter)];
            } sample;
            copy_out(ring, at + sizeof(header), &sample, sizeof(sample));
            struct sys_enter enter;
            memcpy(&enter, sample.raw, sizeof(enter));
            if (sample.raw_bytes >= sizeof(enter) && enter.id == SYS_ioctl)
                count((pid_t)sample.pid, FILE_UNKNOWN, (uint32_t)enter.args[1], 1);
        } else if (header.type == PERF_RECORD_LOST) {
            uint64_t record[2]; /* id, lost */
            copy_out(ring, at + sizeof(header), record, sizeof(record));
            lost += record[1];
        }
        at += header.size;
    }
    __atomic_store_n(&ring->page->data_tail, at, __ATOMIC_RELEASE);
}

/* Reads the rings until all processes have exited. SIGCHLD is unblocked only while ppoll() waits, and then
 * ends the wait. */
static void read_rings(struct ring *rings, size_t ring_count)
{
    struct pollfd *polled = calloc(ring_count, sizeof(*polled));
    if (!polled)
        fail("out of memory");
    for (size_t i = 0; i < ring_count; i++)
        polled[i] = (struct pollfd){ .fd = rings[i].fd, .events = POLLIN };
    sigset_t none;
    sigemptyset(&none);
    for (bool running = true; running;) {
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            if (pid == command)
                command_status = status;
        }
        running = pid == 0;
        if (running)
            ppoll(polled, ring_count, NULL, &none);
        for (size_t i = 0; i < ring_count; i++) {
            drain(&rings[i]);
            if (polled[i].revents & (POLLHUP | POLLERR))
                polled[i].fd = -1; /* its last process has exited, and its records have been read */
        }
    }
    free(polled);
}

static void on_child(int number)
{
    (void)number;
}

/* Runs the command and counts its ioctls with perf. If perf is not permitted, returns false without starting
 * the command. */
static bool run_perf(char **argv)
{
    const int id = tracepoint_id();
    if (id < 0) {
        errno = ENOENT;
        return false;
    }
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int go_fd;
    start(argv, false, &go_fd);
    sigprocmask(SIG_BLOCK, &child, NULL);
    sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = on_child }, NULL);
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    struct ring *rings = calloc((size_t)processors, sizeof(*rings));
    char filter[32];
    snprintf(filter, sizeof(filter), "id == %d", SYS_ioctl);
    size_t used = 0;
    for (int cpu = 0; rings && cpu < processors; cpu++) {
        if (open_ring(&rings[used], id, cpu, filter)) {
            used++;
        } else if (errno != ENODEV) { /* ENODEV: the processor is off */
            const int error = errno;
            close(go_fd); /* the command's process reads end-of-file and exits */
            waitpid(command, NULL, 0);
            errno = error;
            return false;
        }
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    release_command(go_fd);
    read_rings(rings, used);
    return true;
}

int main(int argc, char **argv)
{
    const char *out = NULL, *method = NULL;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            out = argv[++i];
        else if (strcmp(argv[i], "--perf") == 0 || strcmp(argv[i], "--ptrace") == 0)
            method = argv[i] + 2;
        else
            break;
    }
    if (!out || i >= argc || strncmp(argv[i], "--", 2) == 0) {
        fprintf(stderr, "usage: ioctl_truth [--perf | --ptrace] --out FILE COMMAND ARGUMENT…\n");
        return 2;
    }
    const char *used = method;
    if (!method || strcmp(method, "perf") == 0) {
        used = run_perf(argv + i) ? "perf" : NULL;
        if (!used && method)
            fail("perf: %s", strerror(errno));
    }
    if (!used || strcmp(used, "ptrace") == 0) {
        used = "ptrace";
        run_ptrace(argv + i);
    }
    write_counts(out, used);
    return WIFSIGNALED(command_status) ? 128 + WTERMSIG(command_status) : WEXITSTATUS(command_status);
}
