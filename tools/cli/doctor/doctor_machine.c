#include "doctor_machine.h"

#include "installed.h"
#include "kernel_needs.h"
#include "proc.h"
#include "segment.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

bool ct_doctor_is_driver_name(const char *name)
{
    return strncmp(name, "cu", 2) == 0 && isupper((unsigned char)name[2]);
}

static bool is_runtime_name(const char *name)
{
    return strncmp(name, "cuda", 4) == 0 && isupper((unsigned char)name[4]);
}

bool ct_doctor_is_way_in(const char *name)
{
    return strcmp(name, "dlsym") == 0;
}

/* Returns whether the name's prefix is that of the simulated driver (tests/simcuda). */
static bool is_simulated_name(const char *name)
{
    return strncmp(name, "simcuda_", strlen("simcuda_")) == 0;
}

/* Writes at most `max` names into `text`, separated by commas. */
static void list_names(char *text, size_t bytes, const char *const *name, size_t count, size_t max)
{
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && i < max && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", i ? ", " : "", name[i]);
    if (count > max && n < bytes)
        snprintf(text + n, bytes - n, ", …");
}

/* ---- the hook ---- */

static void read_hook(struct ct_doctor *doctor, const struct ct_elf *elf)
{
    ct_elf_functions(elf, is_runtime_name, &doctor->runtime_functions);
    /* Keep only libcudart's symbol versions, because the hook exports others as well. */
    struct ct_elf_names *versions = &doctor->runtime_versions;
    size_t kept = 0;
    ct_elf_versions(elf, versions);
    for (size_t i = 0; i < versions->count; i++) {
        if (strncmp(versions->name[i], "libcudart.so.", strlen("libcudart.so.")) == 0)
            versions->name[kept++] = versions->name[i];
    }
    versions->count = kept;
    if (ct_elf_note(elf, CT_HOOK_NOTE_OWNER, CT_HOOK_NOTE_TYPE, &doctor->hook, sizeof(doctor->hook)) != 0)
        doctor->hook = (struct ct_hook_note){ 0 };
    ct_elf_note_names(elf, CT_HOOK_NOTE_OWNER, CT_HOOK_NAMES_TYPE, doctor->hook.names_bytes,
                      &doctor->driver_functions);
    doctor->hook.version[sizeof(doctor->hook.version) - 1] = '\0';
}

static void check_hook(struct ct_doctor *doctor)
{
    struct ct_elf elf;
    if (!ct_installed_hook(doctor->hook_path)) {
        doctor->hook_path[0] = '\0';
        MISS("hook", "libcudatrace.so not found next to cudatrace; set CUDATRACE_HOOK to its path");
        return;
    }
    const int error = ct_elf_open(&elf, doctor->hook_path);
    if (!error && elf.native)
        read_hook(doctor, &elf);
    ct_elf_close(&elf);
    char runtime[160] = "";
    if (doctor->runtime_functions.count > 0) {
        char versions[96];
        list_names(versions, sizeof(versions), doctor->runtime_versions.name, doctor->runtime_versions.count,
                   6);
        snprintf(runtime, sizeof(runtime), ", %zu of the runtime (%s)", doctor->runtime_functions.count,
                 versions);
    }
    if (error)
        MISS("hook", "%s cannot be read: %s", doctor->hook_path, strerror(-error));
    else if (doctor->hook.proto_version != CT_PROTO_VERSION)
        MISS("hook",
             "%s is of another build than this cudatrace (shared memory of version %u, not %d; 0 is "
             "unknown): use hook, daemon and cudatrace of one build",
             doctor->hook_path, doctor->hook.proto_version, CT_PROTO_VERSION);
    else if (!ct_installed_is_nameable(doctor->hook_path))
        MISS("hook", CT_INSTALLED_UNNAMEABLE, doctor->hook_path);
    else
        FINE("hook", "%s, version %s: %zu functions of the driver%s", doctor->hook_path, doctor->hook.version,
             doctor->driver_functions.count, runtime);
}

void ct_doctor_runtime(struct ct_doctor *doctor, const char *file, const char *version)
{
    if (doctor->runtime_functions.count == 0)
        FINE("runtime", "%s (%s): of its calls, only the driver calls inside them are traced", file, version);
    else if (ct_elf_names_have(&doctor->runtime_versions, version))
        FINE("runtime", "%s (%s): its calls are traced, too", file, version);
    else
        MISS("runtime",
             "%s (%s): the hook does not know this version, so of its calls, only the driver calls inside "
             "them are traced: update cudatrace",
             file, version);
}

/* ---- the driver ---- */

/* The results of loading the driver in a child process, in memory shared with the child. */
struct driver_answer {
    bool is_whole;
    char path[PATH_MAX]; /* the path at which the loader found the driver, or empty if it found none */
    char error[512];
    int version; /* the result of cuDriverGetVersion(), or 0 if it failed */
};

/* Loads the driver in the child, and queries its version, for which the driver need not be initialised. */
static void ask_driver(struct driver_answer *answer)
{
    /* The hook may be preloaded into this process. An invalid session name keeps the hook from recording. */
    setenv(CT_SESSION_ENV, ".", 1);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!driver) {
        const char *error = dlerror();
        snprintf(answer->error, sizeof(answer->error), "%s", error ? error : "no reason given");
        return;
    }
    struct link_map *map = NULL;
    if (dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0 && map)
        snprintf(answer->path, sizeof(answer->path), "%s", map->l_name);
    int (*get_version)(int *) = (int (*)(int *))(uintptr_t)dlsym(driver, "cuDriverGetVersion");
    if (get_version && get_version(&answer->version) != 0)
        answer->version = 0;
}

/* Kills the child after PATIENCE_S seconds if it hangs. */
static void limit_time(void)
{
    enum { PATIENCE_S = 10 };
    sigset_t none;
    sigemptyset(&none);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(PATIENCE_S);
}

/* Loads the driver in a child process, because loading it may crash or hang. */
static void load_driver(struct driver_answer *answer)
{
    struct driver_answer *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(NULL);
    const pid_t child = shared != MAP_FAILED ? fork() : -1;
    if (child < 0) {
        snprintf(answer->error, sizeof(answer->error), "cannot fork: %s", strerror(errno));
        return;
    }
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
        limit_time();
        ask_driver(shared);
        shared->is_whole = true;
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (shared->is_whole)
        *answer = *shared;
    else if (WIFEXITED(status))
        snprintf(answer->error, sizeof(answer->error), "loading it makes the program exit with status %d",
                 WEXITSTATUS(status));
    else if (WTERMSIG(status) != SIGALRM)
        snprintf(answer->error, sizeof(answer->error), "loading it kills the program with signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(answer->error, sizeof(answer->error), "loading it does not return");
    munmap(shared, sizeof(*shared));
}

void ct_doctor_compare(struct ct_doctor *doctor, const struct ct_elf_names *driver)
{
    enum { SHOWN = 4 };
    const char **lacking = calloc(driver->count + 1, sizeof(*lacking));
    size_t count = 0;
    for (size_t i = 0; lacking && i < driver->count; i++) {
        if (!ct_elf_names_have(&doctor->driver_functions, driver->name[i]))
            lacking[count++] = driver->name[i];
    }
    char names[512];
    list_names(names, sizeof(names), lacking, count, SHOWN);
    free(lacking);
    if (count == 0 || doctor->driver_functions.count == 0)
        return;
    const bool many = count > doctor->hook.fallback_stubs;
    ct_doctor_say(
        doctor, many ? CT_VERDICT_MISS : CT_VERDICT_NOTE, "functions",
        "the hook does not know %zu of the driver's functions (%s): they are traced if looked up by dlsym or "
        "cuGetProcAddress, as libcudart does (at most %u in a process), but not if linked: update cudatrace",
        count, names, doctor->hook.fallback_stubs);
}

/* Checks the installed driver. The driver's file name contains its release, as in libcuda.so.580.159.04. */
static void check_driver(struct ct_doctor *doctor, bool *simulated)
{
    static struct driver_answer answer;
    struct ct_elf elf;
    struct ct_elf_names names = { 0 }, own = { 0 };
    load_driver(&answer);
    if (!realpath(answer.path, doctor->driver_path)) {
        doctor->driver_path[0] = '\0';
        NOTE("driver", "the loader finds none from here (%s)%s",
             answer.error[0] ? answer.error : "it has no path",
             doctor->patient ? "; the libraries of the process are listed below"
                             : ": no program can call CUDA. The source tree contains a simulated driver: "
                               "LD_LIBRARY_PATH=build/tests/simcuda");
        return;
    }
    if (ct_elf_open(&elf, doctor->driver_path) == 0 && elf.native) {
        ct_elf_functions(&elf, ct_doctor_is_driver_name, &names);
        *simulated = ct_elf_functions(&elf, is_simulated_name, &own) == 0 && own.count > 0;
    }
    ct_elf_close(&elf);
    char version[64] = "it does not report its version";
    if (answer.version > 0)
        snprintf(version, sizeof(version), "CUDA %d.%d", answer.version / 1000, answer.version % 1000 / 10);
    FINE("driver", "%s, %s%s", doctor->driver_path, version, *simulated ? ", the simulated driver" : "");
    ct_doctor_compare(doctor, &names);
    ct_elf_names_free(&names);
    ct_elf_names_free(&own);
}

/* Checks access to the devices without opening them, because opening one may start the driver. */
static void check_devices(struct ct_doctor *doctor)
{
    static const char *const patterns[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia[0-9]*" };
    char lacking[128] = "", closed[PATH_MAX] = "";
    size_t count = 0;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) != 0) {
            snprintf(lacking + strlen(lacking), sizeof(lacking) - strlen(lacking), "%s%s",
                     *lacking ? ", " : "", patterns[i]);
            continue;
        }
        count = found.gl_pathc;
        for (size_t j = 0; j < found.gl_pathc; j++) {
            if (access(found.gl_pathv[j], R_OK | W_OK) != 0)
                snprintf(closed, sizeof(closed), "%s", found.gl_pathv[j]);
        }
        globfree(&found);
    }
    if (*lacking)
        NOTE("devices",
             "%s does not exist: cuInit will find no GPU; load the kernel module (nvidia-modprobe -u), or "
             "give the container its GPUs",
             lacking);
    else if (*closed)
        NOTE("devices", "%s cannot be opened by this user: cuInit will fail; join the group that owns it",
             closed);
    else
        FINE("devices", "/dev/nvidiactl, /dev/nvidia-uvm and %zu %s", count, count == 1 ? "GPU" : "GPUs");
}

/* ---- the kernel ---- */

static void check_kernel(struct ct_doctor *doctor)
{
    struct utsname system;
    uname(&system);
    /* Try the system calls instead of checking the kernel's version, because a container may forbid calls
     * that the kernel supports. */
    const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    const int refused = errno;
    if (pidfd >= 0)
        close(pidfd);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const bool wipes = page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) == 0;
    if (page != MAP_FAILED)
        munmap(page, 4096);
    if (pidfd < 0)
        MISS("kernel",
             "%s: pidfd_open is refused (%s), so the daemon cannot follow processes: the call requires Linux "
             "5.3, and a container that allows it",
             system.release, strerror(refused));
    else if (!wipes)
        NOTE("kernel",
             "%s: MADV_WIPEONFORK (Linux 4.14) is missing: children made by a bare clone() may damage their "
             "parent's records",
             system.release);
    else
        FINE("kernel", "Linux %s", system.release);
}

/* ---- the probe ---- */

static bool may_load_programs(void)
{
    enum { SYS_ADMIN = 21, PERFMON = 38, BPF = 39 }; /* include/uapi/linux/capability.h of Linux 5.8 */
    const uint64_t bpf = UINT64_C(1) << BPF | UINT64_C(1) << PERFMON, admin = UINT64_C(1) << SYS_ADMIN;
    static const char field[] = "\nCapEff:";
    char *status = ct_proc_file(getpid(), "status", NULL);
    const char *line = status ? strstr(status, field) : NULL;
    const uint64_t effective = line ? strtoull(line + strlen(field), NULL, 16) : 0;
    free(status);
    return (effective & bpf) == bpf || effective & admin;
}

static bool has_file_system(const char *name)
{
    char line[128];
    bool has = false;
    FILE *list = fopen("/proc/filesystems", "re");
    while (list && !has && fgets(line, sizeof(line), list)) {
        const char *last = strrchr(line, '\t');
        has = last && strncmp(last + 1, name, strlen(name)) == 0 && last[1 + strlen(name)] == '\n';
    }
    if (list)
        fclose(list);
    return has;
}

/* Names the options of `cudatrace probe` that cannot work on this machine. */
static void check_probe_options(struct ct_doctor *doctor)
{
    if (access("/sys/bus/event_source/devices/kprobe", F_OK) != 0)
        NOTE("probe",
             "the kernel has no kprobes (CONFIG_KPROBES): hooks on functions of the kernel (kprobe:), and "
             "--discover, cannot work");
    if (!has_file_system("tracefs"))
        NOTE("probe",
             "the kernel has no tracefs (CONFIG_FTRACE): --ioctls, DMA fences and hooks on tracepoints "
             "cannot work");
    if (access("/sys/module/nvidia", F_OK) != 0)
        NOTE("probe",
             "the kernel module nvidia is not loaded: its functions and errors of GPUs (Xids) cannot be "
             "recorded");
}

/* Checks whether `cudatrace probe` would work. Findings are never reported as a miss, because the hook does
 * not need the probe. */
static void check_probe(struct ct_doctor *doctor)
{
    char path[PATH_MAX], lack[CT_LACK_BYTES];
    if (!ct_installed_probe(path))
        NOTE("probe", "cudatrace-probe not found next to cudatrace: `cudatrace probe` cannot run");
    else if (ct_kernel_lacks(lack))
        NOTE("probe", "`cudatrace probe` cannot run: %s", lack);
    else {
        FINE("probe", "%s can record driver calls of all processes by eBPF%s", path,
             may_load_programs() ? "" : ", as root or with CAP_BPF and CAP_PERFMON");
        check_probe_options(doctor);
    }
}

void ct_doctor_machine(struct ct_doctor *doctor)
{
    bool simulated = false;
    ct_doctor_head("This machine");
    check_hook(doctor);
    check_driver(doctor, &simulated);
    if (doctor->driver_path[0] && !simulated)
        check_devices(doctor);
    check_kernel(doctor);
    check_probe(doctor);
}
