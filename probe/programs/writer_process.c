#include "writer_process.h"

#include "mapped_drivers.h"
#include "proc.h"
#include "session_lock.h"
#include "session_names.h"
#include "writer_link.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Called in the writer: closes all descriptors that are not in the plan. If a writer kept a BPF link open,
 * the programs would stay attached even after the probe was killed. */
static void close_others(const struct ct_writer_plan *plan)
{
    const int kept[] = { plan->pidfd,   plan->ring, plan->threads, plan->lost,
                         plan->notices, plan->link, plan->hook->fd };
    DIR *open_files = opendir("/proc/self/fd");
    if (!open_files)
        _exit(EXIT_FAILURE);
    for (struct dirent *entry; (entry = readdir(open_files)) != NULL;) {
        const int fd = atoi(entry->d_name); /* 0 for "." and ".." */
        bool is_kept = fd <= STDERR_FILENO || fd == dirfd(open_files);
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            is_kept |= kept[i] == fd;
        if (!is_kept)
            close(fd);
    }
    closedir(open_files);
}

/* Called in the arrivals writer at its end. A probe that ends normally keeps the link open for reading until
 * its writers have ended. Waits for the end of a killed probe, which then no longer holds its lock. */
static bool is_probe_killed(const struct ct_writer_plan *plan)
{
    enum { EXIT_MS = 1000 };
    struct pollfd link = { .fd = plan->link }, probe = { .fd = plan->pidfd, .events = POLLIN };
    return poll(&link, 1, 0) > 0 && link.revents & POLLHUP && poll(&probe, 1, EXIT_MS) > 0;
}

/* Completes the description of a process that the BPF programs have found. Returns false if the hook records
 * the process. All of this waits while the process changes its mappings, so the probe leaves it to the
 * writer. If the process has ended or has executed another program, the notice's description remains. */
static bool examine(struct ct_writer_plan *plan)
{
    static struct ct_program program;
    struct ct_mapped_drivers images;
    ct_program_describe(&program, ct_proc_thread(plan->pid), false);
    const int error = ct_mapped_drivers_find(&images, plan->pid);
    const uint32_t end = __atomic_load_n(plan->end, __ATOMIC_ACQUIRE);
    struct ct_proc_stat stat;
    if (error || end & CT_PROBE_EXECUTED || ct_proc_stat(plan->pid, &stat) != 0 ||
        stat.start_ticks != plan->program->start_ticks)
        return true;
    if (ct_mapped_hook_records(&images)) {
        ct_link_send(plan->link, CT_LINK_HOOK, -1);
        return false;
    }
    program.start_ticks = plan->program->start_ticks;
    if (!program.cmdline[0])
        strcpy(program.cmdline, plan->program->cmdline);
    plan->program = &program;
    if (images.exec_ns)
        plan->exec_ns = images.exec_ns;
    return true;
}

static void be_writer(struct ct_writer_plan *plan, bool is_found)
{
    sigset_t none;
    close_others(plan);
    /* Ctrl-C ends the probe, which then ends its writers. */
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const int status = is_found && plan->pidfd >= 0 && !examine(plan) ? EXIT_SUCCESS : ct_writer_run(plan);
    if (plan->maker == CT_MAKER_MACHINE && is_probe_killed(plan))
        ct_session_lock_clear(getenv(CT_SESSION_ENV));
    _exit(status);
}

int ct_writer_process_start(struct ct_writer_plan *plan, bool is_found, pid_t *pid, int *link)
{
    int end[2];
    const int error = ct_link_make(end);
    if (error)
        return error;
    plan->link = end[1];
    const pid_t writer = fork();
    if (writer == 0)
        be_writer(plan, is_found);
    close(end[1]);
    if (writer < 0) {
        const int refused = -errno;
        close(end[0]);
        return refused;
    }
    *pid = writer;
    *link = end[0];
    return 0;
}
