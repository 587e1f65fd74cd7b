#include "target.h"

#include "interrupted.h"
#include "mounts.h"
#include "proc.h"
#include "user_dispatch.h"

#include <dirent.h>
#include <errno.h>
#include <linux/kcmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool refuse(struct ct_target *target, enum ct_target_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct ct_target *target, enum ct_target_kind kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(target->why, sizeof(target->why), format, arguments);
    va_end(arguments);
    target->kind = kind;
    return false;
}

/* ---- /proc/PID/status ---- */

/* Returns the number after a keyword in the status file, or -1 if the keyword is missing. */
static long long status_number(const char *status, const char *word)
{
    const char *at = strstr(status, word);
    return at ? strtoll(at + strlen(word), NULL, 10) : -1;
}

static void name_of(pid_t pid, char name[64])
{
    char text[64];
    snprintf(name, 64, "%s", "?");
    if (ct_proc_read((int32_t)pid, "comm", text, sizeof(text)) != 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    }
    snprintf(name, 64, "%s", text);
}

static bool is_kernels(pid_t pid)
{
    enum { FLAGS = 9, KERNEL_THREAD = 0x200000 };
    char text[1024];
    if (ct_proc_read((int32_t)pid, "stat", text, sizeof(text)) != 0)
        return false;
    const char *field = strrchr(text, ')');
    for (int i = 2; field && i < FLAGS; i++)
        field = strchr(field + 1, ' ');
    return field && strtoul(field, NULL, 10) & KERNEL_THREAD;
}

/* ---- the process ---- */

static bool check_process(struct ct_target *target)
{
    struct ct_proc_stat life;
    struct ct_proc_status users;
    char status[4096];
    int error = ct_proc_stat((int32_t)target->pid, &life);
    if (!error)
        error = ct_proc_status((int32_t)target->pid, &users);
    if (!error)
        error = ct_proc_read((int32_t)target->pid, "status", status, sizeof(status));
    if (error == -ESRCH)
        return refuse(target, CT_TARGET_GONE, "does not exist");
    if (error)
        return refuse(target, CT_TARGET_REFUSED, "cannot be inspected: %s", strerror(-error));
    name_of(target->pid, target->name);
    target->start_ticks = life.start_ticks;
    target->uid = users.effective;
    target->inner_pid = users.inner_pid ? users.inner_pid : (int32_t)target->pid;
    const long long group = status_number(status, "\nTgid:"), tracer = status_number(status, "\nTracerPid:");
    if (group > 0 && group != target->pid)
        return refuse(target, CT_TARGET_REFUSED, "is a thread of process %lld: use that process ID", group);
    if (target->pid == getpid())
        return refuse(target, CT_TARGET_REFUSED, "is this command itself");
    if (is_kernels(target->pid))
        return refuse(target, CT_TARGET_REFUSED, "is a kernel thread");
    if (life.ended)
        return refuse(target, CT_TARGET_GONE, "is a zombie: its parent has not waited for it");
    if (tracer > 0) {
        char name[64];
        name_of((pid_t)tracer, name);
        return refuse(target, CT_TARGET_REFUSED,
                      "is traced by process %lld (%s), and only one debugger is possible: detach that first",
                      tracer, name);
    }
    return true;
}

/* Refuses a child of vfork(), because it briefly uses its parent's memory, and a visit would change the
 * parent. The check must precede opening the memory, because the descriptor would keep referring to the
 * parent's memory. */
static bool check_own_memory(struct ct_target *target)
{
    char status[4096];
    if (ct_proc_read((int32_t)target->pid, "status", status, sizeof(status)) != 0)
        return true; /* opening the memory fails as well, and reports the error */
    const long long parent = status_number(status, "\nPPid:");
    return parent <= 0 || syscall(SYS_kcmp, target->pid, (pid_t)parent, KCMP_VM, 0, 0) != 0 ||
           refuse(target, CT_TARGET_NO_DRIVER,
                  "shares the memory of its parent, process %lld, until it executes a program (vfork): "
                  "attach to that process",
                  parent);
}

/* ---- permissions ---- */

static bool refuse_rights(struct ct_target *target, int error)
{
    char scope[16] = "", path[64];
    struct stat owner = { 0 };
    const uid_t own = geteuid();
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)target->pid);
    stat(path, &owner); /* root owns the files of a process that is not dumpable, but not its folder */
    FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
    if (file && !fgets(scope, sizeof(scope), file))
        scope[0] = '\0';
    if (file)
        fclose(file);
    const int value = atoi(scope);
    if (error == -ENOENT || error == -ESRCH)
        return refuse(target, CT_TARGET_GONE, "has ended");
    if (error != -EACCES && error != -EPERM)
        return refuse(target, CT_TARGET_REFUSED, "cannot be inspected: %s", strerror(-error));
    if (own != 0 && target->uid != own)
        return refuse(target, CT_TARGET_REFUSED, "belongs to user %u: run as that user or as root",
                      target->uid);
    if (own != 0 && owner.st_uid != own)
        return refuse(target, CT_TARGET_REFUSED,
                      "cannot be inspected, even by its own user: it is set-user-ID, has capabilities, or is "
                      "not dumpable (PR_SET_DUMPABLE); run as root");
    if (value > 0)
        return refuse(
            target, CT_TARGET_REFUSED,
            "may not be traced: /proc/sys/kernel/yama/ptrace_scope is %d, which permits %s; run as root%s",
            value,
            value == 1   ? "only ancestors of the process"
            : value == 2 ? "only root"
                         : "no process until the next reboot",
            value < 3 ? ", or `sysctl kernel.yama.ptrace_scope=0`" : "");
    return refuse(target, CT_TARGET_REFUSED,
                  "may not be traced: the container or a security module forbids ptrace (docker run "
                  "--cap-add SYS_PTRACE)");
}

/* ---- the program ---- */

/* Reads from memory what kind of program the process executes. The file of the program is not opened, because
 * it may be on a file system that the process controls. Returns NULL if the kind is a usual one. */
static const char *unusual_program(const struct ct_memory *memory)
{
    const char *const foreign = "is of another architecture or a 32-bit program: the hook is for x86-64";
    enum { SEGMENTS_MOST = 64 };
    Elf64_Phdr segments[SEGMENTS_MOST];
    Elf64_Ehdr header = { 0 };
    bool has_loader = false, is_musl = false;
    size_t i = 0;
    while (i < memory->count &&
           (memory->mappings[i].offset != 0 || memory->mappings[i].path[0] != '/' ||
            !ct_memory_read(memory, memory->mappings[i].begin, &header, sizeof(header)) ||
            memcmp(header.e_ident, ELFMAG, SELFMAG) != 0))
        i++;
    if (i == memory->count)
        return NULL;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
        return foreign;
    if (header.e_phnum > SEGMENTS_MOST || !ct_memory_read(memory, memory->mappings[i].begin + header.e_phoff,
                                                          segments, header.e_phnum * sizeof(*segments)))
        return NULL;
    for (size_t n = 0; n < header.e_phnum; n++)
        has_loader |= segments[n].p_type == PT_INTERP;
    for (i = 0; i < memory->count; i++)
        is_musl |= strstr(memory->mappings[i].path, "/ld-musl") != NULL;
    return !has_loader ? "is statically linked: it cannot load a library"
           : is_musl   ? "uses musl: the hook requires glibc"
                       : NULL;
}

static bool refuse_program(struct ct_target *target)
{
    const char *why = unusual_program(&target->memory);
    return refuse(target, CT_TARGET_REFUSED, "%s",
                  why ? why : "has not mapped glibc, which the hook requires");
}

static bool check_libraries(struct ct_target *target)
{
    static const char *const allocator[CT_ALLOCATOR_FUNCTIONS] = { "malloc", "calloc", "realloc", "free" };
    struct ct_image c_library, loader;
    if (ct_image_find(&c_library, &target->memory, "libc.so.6") != 0)
        return refuse_program(target);
    target->find_dlopen = ct_image_symbol(&c_library, "dlopen");
    target->find_dlerror = ct_image_symbol(&c_library, "dlerror");
    target->find_cancel = ct_image_symbol(&c_library, "pthread_setcancelstate");
    target->find_errno = ct_image_symbol(&c_library, "__errno_location");
    target->find_cancel_type = ct_image_symbol(&c_library, "pthread_setcanceltype");
    target->find_atfork = ct_image_symbol(&c_library, "__register_atfork");
    for (size_t i = 0; i < CT_ALLOCATOR_FUNCTIONS; i++)
        target->allocator[i] = ct_image_binding(&c_library, allocator[i]);
    ct_image_close(&c_library);
    if (ct_image_find(&loader, &target->memory, "ld-linux-x86-64.so.2") == 0) {
        target->loader_state = ct_image_object(&loader, "_rtld_global", &target->loader_state_bytes);
        ct_image_close(&loader);
    }
    /* Before glibc 2.34. */
    if (!target->find_dlopen && ct_image_find(&loader, &target->memory, "libdl.so.2") == 0) {
        target->find_dlopen = ct_image_symbol(&loader, "dlopen");
        target->find_dlerror = ct_image_symbol(&loader, "dlerror");
        ct_image_close(&loader);
    }
    const bool has_all = target->find_dlopen && target->find_dlerror && target->find_cancel &&
                         target->find_errno && target->find_cancel_type && target->find_atfork;
    return has_all || refuse(target, CT_TARGET_REFUSED,
                             "has an unknown C library, without dlopen() or pthread_setcancelstate()");
}

/* Returns the seccomp mode of a thread that has one, or 0. */
static int filter_mode(const struct ct_target *target)
{
    char path[64];
    int mode = 0;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)target->pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && mode == 0 && (task = readdir(tasks)) != NULL;) {
        const pid_t thread = (pid_t)strtol(task->d_name, NULL, 10);
        mode = thread > 0 ? ct_thread_filter_mode(target->pid, thread) : 0;
    }
    if (tasks)
        closedir(tasks);
    return mode;
}

bool ct_target_check_filters(struct ct_target *target)
{
    const int mode = filter_mode(target);
    return mode == 0 || refuse(target, CT_TARGET_REFUSED,
                               "has a system call filter (seccomp mode %d), which may kill it for the "
                               "system calls of attach: start it with `cudatrace run`",
                               mode);
}

/* Refuses a process that was started with the hook, and names the process's session. */
static bool check_preloaded(struct ct_target *target)
{
    bool is_preloaded = false;
    char session[CT_SESSION_MAX + 1] = "";
    for (size_t i = 0; i < target->memory.count; i++) {
        const char *path = target->memory.mappings[i].path, *slash = strrchr(path, '/');
        struct ct_session_file file;
        if (!slash)
            continue;
        is_preloaded |= path[1] != 'm' && strncmp(slash, "/libcudatrace.so", 16) == 0;
        if (strncmp(slash, "/cudatrace.", 11) != 0)
            continue;
        char name[CT_NAME_BYTES];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(slash + 1, " "), slash + 1);
        if (ct_session_file_parse(name, &file) && file.kind == CT_FILE_SEGMENT)
            strcpy(session, file.session);
    }
    if (!is_preloaded)
        return true;
    if (*session)
        return refuse(target, CT_TARGET_HOOKED,
                      "was started with the hook, and already records for session '%s': `cudatrace status "
                      "--session %s` shows the trace",
                      session, session);
    return refuse(target, CT_TARGET_HOOKED,
                  "was started with the hook, and records once a daemon serves its session "
                  "(" CT_SESSION_ENV " of its environment, or '" CT_SESSION_DEFAULT "'): start `cudatraced "
                  "--session NAME --db FILE`");
}

static bool check_proc(struct ct_target *target)
{
    return ct_mounts_have_proc(target->pid, target->memory.thread) ||
           refuse(target, CT_TARGET_REFUSED,
                  "has no /proc in its mount namespace, which loading the library requires");
}

static bool check_driver(struct ct_target *target)
{
    struct ct_image driver;
    if (ct_image_find(&driver, &target->memory, "libcuda.so.1") != 0)
        return refuse(target, CT_TARGET_NO_DRIVER, "has not loaded the driver (libcuda.so.1) yet");
    const struct ct_mapping *mapping = ct_memory_at(&target->memory, driver.begin);
    snprintf(target->driver, sizeof(target->driver), "%.*s", (int)sizeof(target->driver) - 1,
             mapping ? mapping->path : "");
    ct_image_close(&driver);
    return true;
}

void ct_target_open(struct ct_target *target, pid_t pid)
{
    *target = (struct ct_target){ .pid = pid, .memory = { .fd = -1, .process = -1 } };
    if (!check_process(target) || !check_own_memory(target))
        return;
    const int error = ct_memory_open(&target->memory, pid);
    if (error) {
        refuse_rights(target, error);
        return;
    }
    if (target->memory.start_ticks != target->start_ticks) {
        refuse(target, CT_TARGET_GONE, "has ended");
        return;
    }
    if (check_libraries(target) && check_preloaded(target) && check_driver(target) &&
        ct_target_check_filters(target) && check_proc(target))
        target->kind = CT_TARGET_FINE;
}

bool ct_target_check_dispatch(struct ct_target *target)
{
    return !ct_process_dispatches(&target->memory) ||
           refuse(target, CT_TARGET_REFUSED,
                  "uses Syscall User Dispatch: its handler of SIGSYS would receive the system calls of "
                  "attach. Start it with `cudatrace run`");
}

bool ct_target_is_confined(const struct ct_target *target)
{
    return filter_mode(target) != 0 || ct_process_dispatches(&target->memory);
}

bool ct_target_has_ended(const struct ct_target *target)
{
    enum { TRIES = 500 };
    for (int i = 0; i < TRIES; i++) {
        struct ct_proc_stat life;
        struct ct_memory other;
        if (ct_proc_stat((int32_t)target->pid, &life) != 0 || life.ended ||
            life.start_ticks != target->start_ticks)
            return true;
        const int error = ct_memory_open(&other, target->pid);
        ct_memory_close(&other);
        if (!error || error == -EACCES || error == -EPERM)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return true;
}

void ct_target_find_slots(struct ct_target *target)
{
    enum { TRIES = 50, TRIES_IF_NONE_WILL_DO = 3, PAUSE_NS = 10000000 };
    const int tries = target->may_have_no_slots ? TRIES_IF_NONE_WILL_DO : TRIES;
    struct ct_image driver;
    for (int i = 0; i < tries && target->slots.count == 0; i++) {
        if (i > 0)
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        ct_driver_slots_free(&target->slots);
        if (ct_memory_look(&target->memory) != 0 ||
            ct_image_find(&driver, &target->memory, "libcuda.so.1") != 0)
            break;
        ct_driver_slots_find(&target->slots, &driver);
        ct_image_close(&driver);
    }
    if (!ct_memory_is_there(&target->memory))
        refuse(target, CT_TARGET_GONE, "has ended, or executes another program now");
    else if (target->slots.breakpoints > 0)
        refuse(target, CT_TARGET_REFUSED,
               "has breakpoints at %zu functions of its driver: end `cudatrace probe` or the debugger first",
               target->slots.breakpoints);
    else if (target->slots.count == 0 && !target->may_have_no_slots)
        refuse(target, CT_TARGET_REFUSED,
               "has an unknown driver (%s): none of its %zu functions uses a table. Start it with `cudatrace "
               "run`, or attach with --inline",
               target->driver, target->slots.functions);
}

void ct_target_close(struct ct_target *target)
{
    ct_driver_slots_free(&target->slots);
    ct_memory_close(&target->memory);
}

void ct_target_check_folder(struct ct_target *target, const char *shm_dir)
{
    if (ct_mounts_share(target->pid, target->memory.thread, shm_dir))
        return;
    if (!ct_memory_is_there(&target->memory)) {
        refuse(target, CT_TARGET_GONE, "has ended, or executes another program now");
        return;
    }
    refuse(target, CT_TARGET_REFUSED,
           "has its own %s (a container?), which a daemon outside does not see: attach inside the container, "
           "or share the directory (docker run --ipc=host, or --shm-dir)",
           shm_dir);
}

/* Returns whether a thread of the process is in an uninterruptible wait. A thread that has called vfork() is,
 * until the child executes a program or exits. */
static bool may_await_child(pid_t pid)
{
    char path[64], text[1024];
    bool waits = false;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && !waits && (task = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof(path), "task/%.16s/stat", task->d_name);
        const char *name_end =
            ct_proc_read((int32_t)pid, path, text, sizeof(text)) == 0 ? strrchr(text, ')') : NULL;
        waits = name_end && strncmp(name_end, ") D", 3) == 0;
    }
    if (tasks)
        closedir(tasks);
    return waits;
}

/* Returns whether the other process still uses the memory after some time, or at Ctrl-C. The time is short if
 * no thread awaits the end of vfork(). A single check is not enough, because the child may begin to run
 * before its parent begins to wait. */
static bool keeps_sharing(const struct ct_memory *memory, pid_t sharer)
{
    enum { TRIES = 2000, PAUSE_NS = 1000000, TRIES_PER_CHECK = 50, CHECKS = 2 };
    int i = 0, not_awaited = 0;
    while (i < TRIES && not_awaited < CHECKS && !ct_is_interrupted_or_hung_up() &&
           syscall(SYS_kcmp, memory->thread, sharer, KCMP_VM, 0, 0) == 0) {
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
        if (++i % TRIES_PER_CHECK == 0)
            not_awaited = may_await_child(memory->pid) ? 0 : not_awaited + 1;
    }
    return i == TRIES || not_awaited == CHECKS || ct_is_interrupted_or_hung_up();
}

void ct_target_check_sharer(struct ct_target *target)
{
    enum { TRIES = 10 }; /* a program may call vfork() all the time */
    pid_t sharer = 0;
    for (int i = 0; i < TRIES && (sharer = ct_memory_sharer(&target->memory)) != 0; i++) {
        if (keeps_sharing(&target->memory, sharer)) {
            refuse(target, CT_TARGET_REFUSED,
                   "shares its memory with another process, %d, which is not one of its threads (clone with "
                   "CLONE_VM): end that process first",
                   (int)sharer);
            return;
        }
    }
}
