#include "run_probe.h"

#include "installed.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool ct_run_probe_find(struct ct_run_probe *probe, const struct ct_probe_options *events)
{
    probe->path[0] = '\0';
    if (!events->kernel_events && !events->ioctls && !events->hooks && events->hook_lines == 0 &&
        events->children == 0)
        return true;
    return ct_installed_probe(probe->path) || ct_fail(false, "run: " CT_PROBE_NOT_FOUND);
}

struct probe_arguments {
    const char *argv[32 + 2 * CT_PROBE_HOOKS_MAX];
    size_t count;
};

static void pass_on(struct probe_arguments *arguments, const char *option, const char *value)
{
    arguments->argv[arguments->count++] = option;
    if (value)
        arguments->argv[arguments->count++] = value;
}

/* Names the driver that the loader finds in LD_LIBRARY_PATH, so that the first calls are probed. */
static void pass_on_driver(struct probe_arguments *arguments)
{
    static char path[PATH_MAX];
    const char *folders = getenv("LD_LIBRARY_PATH");
    while (folders && *folders) {
        const int length = (int)strcspn(folders, ":;");
        const int bytes = snprintf(path, sizeof(path), "%.*s/libcuda.so.1", length, folders);
        if (length > 0 && bytes < (int)sizeof(path) && access(path, R_OK) == 0) {
            pass_on(arguments, "--library", path);
            return;
        }
        folders += length + (folders[length] != '\0');
    }
}

/* Executes the probe, with a process group of its own, because it must survive Ctrl-C, and without the
 * command's standard input. */
static void become_probe(const char *path, int ready, const struct ct_probe_options *events,
                         const struct ct_session_choice *choice)
{
    struct probe_arguments arguments = { { path }, 1 };
    char number[16], pid[16];
    snprintf(pid, sizeof(pid), "%d", (int)events->children);
    if (events->children) {
        pass_on(&arguments, "--children", pid);
        pass_on_driver(&arguments);
    } else {
        pass_on(&arguments, "--hooked", NULL);
    }
    pass_on(&arguments, "--session", choice->session);
    pass_on(&arguments, "--shm-dir", choice->shm_dir);
    if (events->selecting.calls)
        pass_on(&arguments, "--calls", events->selecting.calls);
    if (events->kernel_events)
        pass_on(&arguments, "--kernel", NULL);
    if (events->ioctls)
        pass_on(&arguments, "--ioctls", NULL);
    if (events->hooks)
        pass_on(&arguments, "--hooks", events->hooks);
    for (size_t i = 0; i < events->hook_lines; i++)
        pass_on(&arguments, "--hook", events->hook[i]);
    snprintf(number, sizeof(number), "%d", ready);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
        fcntl(ready, F_SETFD, 0) == 0 && setenv(CT_PROBE_READY_ENV, number, 1) == 0)
        execv(path, (char **)(uintptr_t)arguments.argv);
    ct_fail(0, "run: cannot start %s: %s", path, strerror(errno));
    _exit(EXIT_FAILURE);
}

static bool await(struct ct_run_probe *probe, int ready)
{
    char byte;
    ssize_t got;
    while ((got = read(ready, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (got == 1)
        return true;
    waitpid(probe->pid, NULL, 0);
    probe->pid = 0;
    return ct_fail(false, "run: the command was not started, because its events cannot be recorded");
}

bool ct_run_probe_start(struct ct_run_probe *probe, const struct ct_probe_options *events,
                        const struct ct_session_choice *choice)
{
    int ends[2];
    if (!*probe->path)
        return true;
    if (pipe2(ends, O_CLOEXEC) != 0 || (probe->pid = fork()) < 0)
        return ct_fail(false, "run: cannot start a process: %s", strerror(errno));
    if (probe->pid == 0)
        become_probe(probe->path, ends[1], events, choice);
    close(ends[1]);
    const bool is_ready = await(probe, ends[0]);
    close(ends[0]);
    return is_ready;
}

void ct_run_probe_end(struct ct_run_probe *probe)
{
    if (probe->pid <= 0)
        return;
    if (waitpid(probe->pid, NULL, WNOHANG) == 0) {
        kill(probe->pid, SIGINT);
        waitpid(probe->pid, NULL, 0);
    } else {
        ct_fail(0, "run: the probe ended before the command, so later events are missing");
    }
    probe->pid = 0;
}
