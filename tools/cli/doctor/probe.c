#include "probe.h"

#include "clock.h"
#include "proc.h"
#include "room.h"
#include "session_files.h"
#include "traced_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_NS = 20000000, GRACE_S = 2 };
#define SECOND_NS UINT64_C(1000000000)

/* ---- a process ---- */

/* Returns the number after a keyword in /proc/PID/status, or -1 if the keyword is missing. */
static long status_number(pid_t pid, const char *word)
{
    char text[4096];
    const char *line = ct_proc_read(pid, "status", text, sizeof(text)) == 0 ? strstr(text, word) : NULL;
    return line ? strtol(line + strlen(word), NULL, 10) : -1;
}

static bool is_asked(pid_t pid)
{
    static const char name[] = "LD_PRELOAD=";
    size_t bytes = 0;
    char *text = ct_proc_file(ct_proc_thread(pid), "environ", &bytes);
    bool found = false;
    for (const char *at = text; text && !found && at < text + bytes; at += strlen(at) + 1)
        found = strncmp(at, name, strlen(name)) == 0 && strstr(at, "libcudatrace.so");
    free(text);
    return found;
}

static void examine(struct ct_probed *process, const char *shm_dir)
{
    char path[CT_SHM_DIR_BYTES + 64];
    struct stat ours, its;
    struct ct_proc_status status;
    const pid_t pid = process->pid;
    if (process->has_ended)
        return;
    process->has_hook = ct_proc_has_mapped(pid, "libcudatrace.so");
    process->has_driver = ct_proc_has_mapped(pid, "/libcuda.so.");
    process->is_asked = is_asked(pid);
    process->is_filtered = status_number(pid, "\nSeccomp:") == SECCOMP_MODE_FILTER;
    if (ct_proc_status(pid, &status) == 0 && status.inner_pid > 0)
        process->own_pid = status.inner_pid;
    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, shm_dir);
    process->has_own_shm = stat(shm_dir, &ours) == 0 &&
                           (stat(path, &its) != 0 || its.st_dev != ours.st_dev || its.st_ino != ours.st_ino);
    ct_hindrance_find(pid, ct_proc_thread(pid), ct_session_uid(), shm_dir, process->hindrance);
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    const ssize_t length = readlink(path, process->program, sizeof(process->program) - 1);
    if (length > 0)
        process->program[length] = '\0';
}

/* Returns the process with this pid, adding it to the list if it is new. Returns NULL if the pid belongs to a
 * thread. */
static struct ct_probed *process_of(struct ct_probe *probe, pid_t pid)
{
    for (size_t i = probe->count; i-- > 0;) {
        if (probe->process[i].pid == pid && !probe->process[i].has_ended)
            return &probe->process[i];
    }
    if (status_number(pid, "\nTgid:") != pid ||
        !ct_make_room(&probe->process, probe->count, &probe->room, sizeof(*probe->process)))
        return NULL;
    probe->process[probe->count] = (struct ct_probed){ .pid = pid, .own_pid = pid };
    return &probe->process[probe->count++];
}

/* ---- watching ---- */

struct watch {
    struct ct_probe *probe;
    const struct ct_session_choice *choice;
    pid_t command;
    bool is_ending;
};

static void note_stop(struct watch *watch, pid_t pid, int status)
{
    const int number = WSTOPSIG(status), event = status >> 16;
    struct ct_probed *process = process_of(watch->probe, pid);
    const bool is_group_stop = event == PTRACE_EVENT_STOP && number != SIGTRAP;
    if (event == PTRACE_EVENT_EXIT && process)
        examine(process, watch->choice->shm_dir);
    ptrace(is_group_stop ? PTRACE_LISTEN : PTRACE_CONT, pid, NULL, (void *)(uintptr_t)(event ? 0 : number));
}

static void note_end(struct watch *watch, pid_t pid, int status)
{
    for (size_t i = 0; i < watch->probe->count; i++)
        watch->probe->process[i].has_ended |= watch->probe->process[i].pid == pid;
    if (pid == watch->command && !watch->is_ending)
        watch->probe->wait_status = status;
}

/* Handles all pending changes of the watched processes. Returns whether any process is left. */
static bool take_changes(struct watch *watch)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
        if (WIFSTOPPED(status))
            note_stop(watch, pid, status);
        else
            note_end(watch, pid, status);
    }
    return pid == 0;
}

/* Returns whether the segment contains a record, or counts a lost call. */
static bool has_record(const char *path)
{
    static struct ct_segment segment;
    struct ct_lane lane;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const bool is_valid = fd >= 0 && pread(fd, &segment, sizeof(segment), 0) == (ssize_t)sizeof(segment) &&
                          ct_segment_valid(&segment);
    bool found = false;
    for (int i = 0; is_valid && i < CT_UNLANED_COUNT; i++)
        found = found || segment.unlaned[i].calls > 0;
    for (uint32_t i = 0; is_valid && !found && ct_session_file_lane(fd, &segment, i, &lane); i++)
        found = ct_lane_state(&lane).position > 0;
    if (fd >= 0)
        close(fd);
    return found;
}

/* Returns whether a process has recorded something in the session. */
static bool has_joined(const struct ct_session_choice *choice)
{
    struct ct_session_file file;
    bool found = false;
    for (DIR *files = opendir(choice->shm_dir); ct_session_files_next(files, &file);) {
        char path[CT_SHM_DIR_BYTES + CT_NAME_BYTES];
        snprintf(path, sizeof(path), "%s/%s", choice->shm_dir, file.name);
        found = found || (file.kind == CT_FILE_SEGMENT && strcmp(file.session, choice->session) == 0 &&
                          has_record(path));
    }
    return found;
}

/* Returns the signals to wait for: SIGCHLD, and signals that would end this process, which are blocked until
 * the probe's files have been removed. */
static sigset_t awaited(void)
{
    static const int numbers[] = { SIGCHLD, SIGINT, SIGTERM, SIGHUP };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaddset(&set, numbers[i]);
    return set;
}

static void pause_until_change(struct ct_probe *probe)
{
    const sigset_t set = awaited();
    const int number = sigtimedwait(&set, NULL, &(struct timespec){ .tv_nsec = LOOK_NS });
    if (number > 0 && number != SIGCHLD)
        probe->signalled = number;
}

/* Ends all processes with SIGTERM, followed by SIGKILL after GRACE_S seconds. */
static void end_all(struct watch *watch)
{
    const uint64_t until_ns = ct_monotonic_ns() + GRACE_S * SECOND_NS;
    struct ct_probe *probe = watch->probe;
    watch->is_ending = true;
    for (size_t i = 0; i < probe->count; i++)
        examine(&probe->process[i], watch->choice->shm_dir);
    kill(-watch->command, SIGTERM);
    while (take_changes(watch)) {
        const bool is_late = ct_monotonic_ns() >= until_ns;
        for (size_t i = 0; is_late && i < probe->count; i++) {
            if (!probe->process[i].has_ended)
                kill(probe->process[i].pid, SIGKILL);
        }
        if (is_late)
            kill(-watch->command, SIGKILL);
        pause_until_change(probe);
    }
}

/* ---- the command ---- */

struct starting {
    int go[2], failed[2];
};

static void become_command(struct starting *starting, char **argv, const char *hook,
                           const struct ct_session_choice *choice, const sigset_t *mask)
{
    char byte;
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    close(starting->go[1]);
    setsid();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (read(starting->go[0], &byte, 1) == 1 && ct_traced_environment_set(hook, choice))
        execvp(argv[0], argv);
    const int error = errno;
    if (write(starting->failed[1], &error, sizeof(error)) != sizeof(error))
        _exit(126);
    _exit(127);
}

/* Lets the command start running, under ptrace if permitted. */
static void begin(struct watch *watch, struct starting *starting)
{
    const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                         PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
    close(starting->go[0]);
    close(starting->failed[1]);
    if (ptrace(PTRACE_SEIZE, watch->command, NULL, (void *)options) != 0)
        watch->probe->watch_error = errno;
    if (write(starting->go[1], "", 1) != 1)
        watch->probe->start_error = errno;
    close(starting->go[1]);
}

void ct_probe_run(struct ct_probe *probe, char **argv, const char *hook,
                  const struct ct_session_choice *choice, uint64_t patience_ns)
{
    struct starting starting;
    struct watch watch = { .probe = probe, .choice = choice };
    const sigset_t set = awaited();
    sigset_t mask;
    *probe = (struct ct_probe){ .end = CT_PROBE_ENDED };
    sigprocmask(SIG_BLOCK, &set, &mask);
    signal(SIGCHLD, SIG_DFL);
    if (pipe2(starting.go, O_CLOEXEC) != 0 || pipe2(starting.failed, O_CLOEXEC) != 0 ||
        (watch.command = fork()) < 0) {
        probe->start_error = errno;
        return;
    }
    if (watch.command == 0)
        become_command(&starting, argv, hook, choice, &mask);
    begin(&watch, &starting);
    const uint64_t until_ns = ct_monotonic_ns() + patience_ns;
    while (take_changes(&watch)) {
        if (has_joined(choice))
            probe->end = CT_PROBE_JOINED;
        else if (ct_monotonic_ns() >= until_ns || probe->signalled)
            probe->end = CT_PROBE_LATE;
        if (probe->end != CT_PROBE_ENDED)
            end_all(&watch);
        else
            pause_until_change(probe);
    }
    int error = 0;
    if (read(starting.failed[0], &error, sizeof(error)) == sizeof(error))
        probe->start_error = error;
    close(starting.failed[0]);
}

void ct_probe_free(struct ct_probe *probe)
{
    free(probe->process);
}
