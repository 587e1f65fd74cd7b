#include "survivors.h"

#include "clock.h"
#include "proc.h"
#include "processes.h"
#include "room.h"
#include "session_files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* MOMENT_MS is how long to wait for processes that exit shortly after the command, such as Python's resource
 * tracker. LOOK_MS is the polling interval for processes without a pidfd. */
enum { MOMENT_MS = 500, LOOK_MS = 1000 };

void ct_mark_make(struct ct_mark *mark, const struct ct_session_choice *choice)
{
    mark->choice = choice;
    mark->is_probed = false;
    struct ct_proc_stat self = { 0 };
    ct_proc_stat(getpid(), &self);
    mark->start_ticks = self.start_ticks;
    snprintf(mark->text, sizeof(mark->text), CT_RUN_ENV "=%d.%llu", (int)getpid(),
             (unsigned long long)ct_monotonic_ns());
}

/* ---- looking ---- */

/* Returns whether the session has a segment of the process. */
static bool is_traced(pid_t pid, const struct ct_session_choice *choice)
{
    struct ct_session_file file;
    struct ct_proc_status status = { 0 };
    bool found = false;
    ct_proc_status(pid, &status);
    for (DIR *files = opendir(choice->shm_dir); ct_session_files_next(files, &file);)
        found |= file.kind == CT_FILE_SEGMENT && file.pid == (status.inner_pid ? status.inner_pid : pid) &&
                 strcmp(file.session, choice->session) == 0;
    return found;
}

/* Returns whether the process has the mark. A program that overwrites its environment with its title, as
 * setproctitle() does, loses the mark, and counts as a survivor if it is traced. */
static bool has_mark(pid_t pid, const struct ct_mark *mark)
{
    size_t bytes = 0;
    char *text = ct_proc_file(ct_proc_thread(pid), "environ", &bytes);
    bool found = false;
    for (const char *at = text; text && !found && at < text + bytes; at += strlen(at) + 1)
        found = strcmp(at, mark->text) == 0;
    if (text && !found && !memchr(text, '=', bytes))
        found = is_traced(pid, mark->choice);
    free(text);
    return found;
}

/* Returns whether the process is a cudatrace program, or ends. */
static bool is_ours(pid_t pid)
{
    char name[32] = "";
    return ct_proc_read(pid, "comm", name, sizeof(name)) != 0 ||
           strncmp(name, "cudatrace", strlen("cudatrace")) == 0;
}

/* Returns whether the process has loaded the hook and is not a cudatrace program. Any cudatrace program or
 * daemon that the command started has also loaded the hook, but makes no calls. */
static bool has_hook(pid_t pid)
{
    return ct_proc_has_mapped(pid, "libcudatrace.so") && !is_ours(pid);
}

static void look(struct ct_survivors *survivors, const struct ct_mark *mark)
{
    struct ct_processes all = { 0 };
    size_t room = 0;
    *survivors = (struct ct_survivors){ 0 };
    ct_processes_look(&all);
    for (size_t i = 0; i < all.count; i++) {
        const struct ct_process *process = &all.process[i];
        if (process->start_ticks < mark->start_ticks || !has_mark(process->pid, mark) ||
            !(mark->is_probed ? !is_ours(process->pid) : has_hook(process->pid)) ||
            !ct_make_room(&survivors->survivor, survivors->count, &room, sizeof(*survivors->survivor)))
            continue;
        survivors->survivor[survivors->count++] = (struct ct_survivor){
            .pid = process->pid,
            .start_ticks = process->start_ticks,
            .pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0),
        };
    }
    ct_processes_free(&all);
}

void ct_survivors_free(struct ct_survivors *survivors)
{
    for (size_t i = 0; i < survivors->count; i++) {
        if (survivors->survivor[i].pidfd >= 0)
            close(survivors->survivor[i].pidfd);
    }
    free(survivors->survivor);
    *survivors = (struct ct_survivors){ 0 };
}

void ct_survivors_name(const struct ct_survivors *survivors, char *text, size_t bytes)
{
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < survivors->count && n < bytes; i++)
        n += (size_t)snprintf(text + n, bytes - n, "%s%d", n ? ", " : "", (int)survivors->survivor[i].pid);
}

/* ---- waiting ---- */

static bool has_ended(const struct ct_survivor *survivor)
{
    struct ct_proc_stat stat;
    struct pollfd end = { .fd = survivor->pidfd, .events = POLLIN };
    if (survivor->pidfd >= 0)
        return poll(&end, 1, 0) == 1;
    return ct_proc_stat(survivor->pid, &stat) == 0 ? stat.ended || stat.start_ticks != survivor->start_ticks
                                                   : true;
}

static void drop_ended(struct ct_survivors *survivors)
{
    size_t kept = 0;
    for (size_t i = 0; i < survivors->count; i++) {
        if (!has_ended(&survivors->survivor[i]))
            survivors->survivor[kept++] = survivors->survivor[i];
        else if (survivors->survivor[i].pidfd >= 0)
            close(survivors->survivor[i].pidfd);
    }
    survivors->count = kept;
}

/* Waits for the first survivor to exit, for at most `ms` milliseconds (-1: no limit). Returns whether the
 * daemon is still running. `daemon` is -1 if there is none. */
static bool await_one(const struct ct_survivors *survivors, int daemon, int ms)
{
    const struct ct_survivor *first = &survivors->survivor[0];
    struct pollfd files[] = { { .fd = daemon, .events = POLLRDHUP },
                              { .fd = first->pidfd, .events = POLLIN } };
    poll(files, 2, first->pidfd >= 0 ? ms : ms >= 0 && ms < LOOK_MS ? ms : LOOK_MS);
    return files[0].revents == 0;
}

void ct_survivors_find(struct ct_survivors *survivors, const struct ct_mark *mark)
{
    const uint64_t until_ns = ct_monotonic_ns() + MOMENT_MS * UINT64_C(1000000);
    look(survivors, mark);
    for (uint64_t now_ns; survivors->count > 0 && (now_ns = ct_monotonic_ns()) < until_ns;) {
        await_one(survivors, -1, (int)((until_ns - now_ns) / 1000000) + 1);
        drop_ended(survivors);
    }
    /* Find processes that the survivors have started during the wait. */
    ct_survivors_free(survivors);
    look(survivors, mark);
}

/* Detaches from the terminal, its session and the current folder. Redirects the standard descriptors, except
 * `kept`, to /dev/null. */
static void leave_starter(int kept)
{
    sigset_t none;
    setsid();
    for (int number = 1; number < NSIG; number++)
        signal(number, number == SIGHUP ? SIG_IGN : SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++) {
        if (fd != kept)
            dup2(null, fd);
    }
    if (null > STDERR_FILENO)
        close(null);
    if (chdir("/") != 0)
        return; /* the folder's file system stays busy and cannot be unmounted */
}

void ct_survivors_await(const struct ct_mark *mark, int daemon)
{
    enum { LOOKS = 2 }; /* a scan may miss a process whose parent starts it and exits during the scan */
    bool is_served = true;
    leave_starter(daemon);
    for (int idle = 0; is_served && idle < LOOKS;) {
        struct ct_survivors survivors;
        look(&survivors, mark);
        idle = survivors.count > 0 ? 0 : idle + 1;
        while (is_served && survivors.count > 0) {
            is_served = await_one(&survivors, daemon, -1);
            drop_ended(&survivors);
        }
        ct_survivors_free(&survivors);
    }
}
