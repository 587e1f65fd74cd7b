/* cudatrace-probe: finds the processes and the copies of libcuda on the machine, attaches the BPF programs,
 * and starts a writer for each process. */
#include "clock.h"
#include "discover.h"
#include "fences.h"
#include "hooks.h"
#include "interrupted.h"
#include "ioctls.h"
#include "kernel_ring.h"
#include "list.h"
#include "mapped_drivers.h"
#include "missed.h"
#include "parent.h"
#include "probe_options.h"
#include "probed.h"
#include "probed_files.h"
#include "proc_file.h"
#include "processes.h"
#include "program_costs.h"
#include "rights.h"
#include "session_lock.h"
#include "session_watch.h"
#include "spare_channels.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TURN_NS = 20000000, /* of a scan, before it is interrupted for other work */
    NOTICES_MAX = 32,   /* read at once */
    STOCK_CHANNELS = 8, /* for companions. The kernel takes long to make a channel */
    SEND_MS = 10,       /* between two attempts to send reports that a daemon does not take */
    SCAN_MS = 250,      /* between two scans of the mappings of the processes of --pid, */
    SCAN_ALL_MS = 1000, /* or of all, or those of --hooked */
};

struct probe {
    struct ct_probe_options options;
    struct ct_programs *programs;
    struct ct_function_table *functions;
    struct ct_probed_set probed;
    struct ct_processes processes; /* of the current scan, or of the last one */
    size_t scanned;                /* number of those that it has looked at */
    bool is_scanning;
    bool is_blocked; /* a file could not be attached to before the scan */
    struct ct_probed_files files;
    struct ct_spare_channels spare;
    struct ct_missed missed;
    struct ct_session_lock lock;
    struct ct_session_watch watch; /* for --hooked */
    struct ct_kernel_ring notices;
    struct ct_hooks hooks;
    struct ct_ioctls ioctls;
    struct ct_fences fences;
    bool has_fences; /* the kernel has them, and they are wanted */
    struct ct_channel stock[STOCK_CHANNELS];
    uint32_t stocked;
};

/* ---- files ---- */

static bool is_wanted(const struct probe *probe, const struct ct_mapped_driver *image)
{
    return !probe->options.only || fnmatch(probe->options.only, image->name, 0) == 0;
}

/* Attaches to files that processes may map later (the files of --library, and libcuda at its usual paths).
 * This way, the first calls of those processes are not missed. */
static void attach_ahead(struct probe *probe, pid_t pid)
{
    static const char *const usual[] = { "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                                         "/usr/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
                                         "/run/opengl-driver/lib/libcuda.so.1" };
    enum { USUAL = sizeof(usual) / sizeof(usual[0]) };
    for (size_t i = 0; i < probe->options.named_files + USUAL && !ct_is_interrupted(); i++) {
        struct ct_mapped_driver image;
        const char *path = i < probe->options.named_files ? probe->options.named_file[i]
                                                          : usual[i - probe->options.named_files];
        const int fd = ct_mapped_driver_open(&image, path);
        if (fd < 0)
            continue;
        if (is_wanted(probe, &image))
            ct_probed_files_attach(&probe->files, &image, pid);
        close(fd);
    }
}

/* ---- processes ---- */

/* Reports that the process is not recorded, or that its hook is not accompanied. */
static void miss(struct probe *probe, pid_t pid, uid_t uid, int error, bool is_companion)
{
    char name[CT_PROBE_COMM] = "?";
    struct ct_proc_stat stat = { 0 };
    ct_proc_stat(pid, &stat);
    if (ct_proc_read(pid, "comm", name, sizeof(name)) == 0)
        name[strcspn(name, "\n")] = '\0';
    ct_missed_add(&probe->missed, &(struct ct_missed_process){ .pid = pid,
                                                               .uid = uid,
                                                               .program = stat.start_ticks,
                                                               .name = name,
                                                               .error = error,
                                                               .is_companion = is_companion });
}

/* Makes a channel for a process of the user. */
static int make_channel(struct probe *probe, struct ct_channel *channel, uid_t uid)
{
    if (!ct_channels_allow(probe->programs, uid))
        return -EDQUOT;
    const int error = ct_channels_make(probe->programs, channel, 1);
    if (!error)
        ct_channel_hold(probe->programs, channel, uid);
    return error;
}

static void add_process(struct probe *probe, pid_t pid, uint64_t exec_ns)
{
    struct ct_channel channel;
    struct ct_proc_status status;
    int error = ct_proc_status(pid, &status);
    if (!error)
        error = make_channel(probe, &channel, status.effective);
    if (!error)
        error = ct_probed_add(&probe->probed, pid, &channel, exec_ns, NULL);
    if (error && error != -ESRCH && error != -ENOENT && error != -EEXIST)
        miss(probe, pid, status.effective, error, false);
}

static bool accompanies(const struct probe *probe)
{
    return probe->options.kernel_events || probe->options.ioctls || ct_hook_lines_exist(&probe->hooks.lines);
}

static bool may_accompany(const struct probe *probe, pid_t pid, const struct ct_mapped_drivers *images,
                          struct ct_companion *companion)
{
    return accompanies(probe) &&
           ct_companion_find(companion, images, pid, probe->options.shm_dir, probe->options.session);
}

static void accompany_process(struct probe *probe, const struct ct_companion *companion)
{
    struct ct_channel channel;
    int error = 0;
    if (probe->stocked > 0 && ct_channels_allow(probe->programs, companion->uid)) {
        channel = probe->stock[--probe->stocked];
        ct_channel_hold(probe->programs, &channel, companion->uid);
    } else {
        error = make_channel(probe, &channel, companion->uid);
    }
    if (!error)
        error = ct_probed_accompany(&probe->probed, companion, &channel);
    if (error && error != -ESRCH)
        miss(probe, companion->pid, companion->uid, error, true);
    else if (!error && probe->options.pids > 0)
        fprintf(stderr, "cudatrace-probe: process %d: the hook records its calls, and the probe its events\n",
                companion->pid);
}

static void skip_process(struct probe *probe, pid_t pid, const struct ct_mapped_drivers *images)
{
    if (ct_probed_skip(&probe->probed, pid, NULL) != 0)
        return;
    ct_probed_set_hook(ct_probed_find(&probe->probed, pid), images);
    if (!probe->options.all)
        fprintf(stderr, "cudatrace-probe: process %d is not recorded%s: the hook records it\n", pid,
                images->hook == CT_HOOK_MAY_LEAVE ? " before `cudatrace detach`" : "");
}

/* Begins to record a process that maps a driver, or to accompany its hook. */
static void take_process(struct probe *probe, pid_t pid, const struct ct_mapped_drivers *images)
{
    struct ct_companion companion;
    struct ct_probed *known = ct_probed_find(&probe->probed, pid);
    if (images->visit && !known)
        ct_programs_set_visit(probe->programs, pid, images->visit);
    if (known && known->is_skipped)
        ct_probed_set_hook(known, images);
    if ((!known || known->is_skipped) && may_accompany(probe, pid, images, &companion)) {
        accompany_process(probe, &companion);
    } else if (!known) {
        bool is_new = !probe->options.all;
        for (size_t i = 0; i < images->count; i++)
            is_new |= !ct_probed_files_know(&probe->files, &images->image[i]) || images->image[i].is_copied;
        if (ct_mapped_hook_records(images))
            skip_process(probe, pid, images);
        else if (is_new)
            add_process(probe, pid, images->exec_ns);
    }
}

/* Notes that calls of the process are missing, if its driver has code that cannot be probed, or if it has too
 * many drivers. */
static void note_unprobed_code(struct probe *probe, pid_t pid, const struct ct_mapped_drivers *images)
{
    struct ct_probed *probed = ct_probed_find(&probe->probed, pid);
    if (!probed || probed->is_skipped || probed->is_companion)
        return;
    ct_probed_set_left_out(&probe->probed, probed, images);
    for (size_t i = 0; i < images->count; i++) {
        if (images->image[i].is_copied)
            ct_probed_set_copied(&probe->probed, probed, &images->image[i]);
    }
}

/* Begins to accompany the hook of a process. */
static void look_at_hooked(void *data, pid_t pid)
{
    struct probe *probe = data;
    struct ct_mapped_drivers images;
    struct ct_companion companion;
    if (!ct_probed_find(&probe->probed, pid) && ct_mapped_drivers_find(&images, pid) == 0 &&
        may_accompany(probe, pid, &images, &companion))
        accompany_process(probe, &companion);
}

/* Adds the process before attaching to its libraries, so that every call has a channel. */
static void look_at(struct probe *probe, pid_t pid)
{
    struct ct_mapped_drivers images;
    if (pid == getpid() || (probe->options.children && !ct_programs_follow(probe->programs, pid)) ||
        ct_mapped_drivers_find(&images, pid) != 0)
        return;
    size_t wanted = 0;
    for (size_t i = 0; i < images.count; i++) {
        if (is_wanted(probe, &images.image[i]))
            images.image[wanted++] = images.image[i];
    }
    images.count = wanted;
    if (wanted > 0)
        take_process(probe, pid, &images);
    note_unprobed_code(probe, pid, &images);
    /* The hook records all calls of this process, so probes would only slow them down. */
    if (images.hook == CT_HOOK_STAYS && !probe->options.all)
        return;
    for (size_t i = 0; i < wanted && !ct_is_interrupted(); i++)
        ct_probed_files_attach(&probe->files, &images.image[i], pid);
    if (!probe->options.all)
        attach_ahead(probe, pid);
}

static void begin_scan(struct probe *probe)
{
    ct_ioctls_look(&probe->ioctls);
    probe->is_blocked = ct_probed_files_retry(&probe->files);
    for (size_t i = 0; i < probe->options.pids && !ct_is_interrupted(); i++)
        look_at(probe, probe->options.pid[i]);
    if (probe->options.hooked)
        ct_session_watch_each(&probe->watch, look_at_hooked, probe);
    if (!probe->options.all)
        return;
    ct_processes_look(&probe->processes);
    probe->scanned = 0;
    probe->is_scanning = true;
}

/* Continues the scan of all processes, for about `most_ns`. Reading the mappings of a process waits while the
 * process changes them, and other work must not wait for hundreds of processes. */
static void go_on_scanning(struct probe *probe, uint64_t most_ns)
{
    const uint64_t begun_ns = ct_monotonic_ns();
    while (probe->scanned < probe->processes.count && !ct_is_interrupted()) {
        const struct ct_process *process = &probe->processes.process[probe->scanned++];
        const struct ct_probed *known = ct_probed_find(&probe->probed, process->pid);
        /* If the process is skipped, its hook may have a new segment. */
        if (probe->is_blocked || process->change != CT_PROCESS_SAME || (known && known->is_skipped))
            look_at(probe, process->pid);
        if (ct_monotonic_ns() - begun_ns > most_ns)
            return;
    }
    attach_ahead(probe, 0);
    probe->is_scanning = false;
}

static void stock_channels(struct probe *probe)
{
    const uint32_t count = STOCK_CHANNELS - probe->stocked;
    if (accompanies(probe) && count > STOCK_CHANNELS / 2 &&
        ct_channels_make(probe->programs, &probe->stock[probe->stocked], count) == 0)
        probe->stocked = STOCK_CHANNELS;
}

static void take_notice(struct probe *probe, const struct ct_probe_notice *notice)
{
    struct ct_mapped_drivers images = { 0 };
    const pid_t pid = (pid_t)notice->tgid;
    struct ct_probed *known = ct_probed_find(&probe->probed, pid);
    if (notice->kind == CT_PROBE_EXEC && known) {
        ct_probed_exec(known);
    } else if (notice->kind == CT_PROBE_HOOK) {
        look_at(probe, pid);
    } else if (notice->kind == CT_PROBE_FULL) {
        static const int errors[] = {
            [CT_FULL_NONE_FREE] = -ENOSPC, [CT_FULL_SHARE] = -EDQUOT, [CT_FULL_MEMORY] = -ENOMEM
        };
        ct_missed_add(&probe->missed,
                      &(struct ct_missed_process){ .pid = pid,
                                                   .uid = notice->uid,
                                                   .program = notice->missed_ns,
                                                   .name = notice->name,
                                                   .error = errors[notice->cause % (CT_FULL_MEMORY + 1)] });
    } else if (notice->kind == CT_PROBE_FOUND && notice->channel < CT_PROBE_PROCESSES) {
        struct ct_channel channel = ct_spare_channels_take(&probe->spare, notice->channel, notice->uid);
        /* If the hook has not visited the process, the writer examines it. */
        const bool has_hook =
            known && ct_mapped_drivers_find(&images, pid) == 0 && ct_mapped_hook_records(&images);
        const int error = has_hook ? ct_probed_skip(&probe->probed, pid, &channel)
                                   : ct_probed_add(&probe->probed, pid, &channel, images.exec_ns, notice);
        if (error)
            miss(probe, pid, notice->uid, error, false);
        if (error || has_hook)
            __atomic_store_n(&probe->functions->arriving[notice->channel], 0, __ATOMIC_RELEASE);
        if (has_hook && !error)
            look_at(probe, pid);
    }
}

/* Reads as many notices as given. Others must not keep the probe from removing processes that have ended. */
static void read_notices(struct probe *probe, size_t most)
{
    const struct ct_probe_notice *next;
    size_t bytes;
    while (most-- > 0 && (next = ct_kernel_ring_next(&probe->notices, ct_kernel_ring_end(&probe->notices),
                                                     sizeof(*next), &bytes))) {
        const struct ct_probe_notice notice = *next;
        if (notice.kind == CT_PROBE_FOUND && notice.channel < CT_PROBE_PROCESSES)
            __atomic_store_n(&probe->functions->arriving[notice.channel], 1, __ATOMIC_RELEASE);
        ct_kernel_ring_pass(&probe->notices);
        take_notice(probe, &notice);
    }
}

/* ---- recording ---- */

/* Returns whether all processes of --pid have ended, or that of --children and all that it started. */
static bool is_over(const struct probe *probe)
{
    const struct ct_probe_options *options = &probe->options;
    const pid_t *pid = options->children ? &options->children : options->pid;
    const size_t count = options->children ? 1 : options->pids;
    for (size_t i = 0; i < count; i++) {
        struct ct_proc_stat stat;
        const int error = ct_proc_stat(pid[i], &stat);
        if (error ? error != -ESRCH : !stat.ended)
            return false;
    }
    return count > 0 && ct_probed_is_empty(&probe->probed);
}

/* Records until a signal arrives, the time of --for is over, or all processes of --pid have ended. */
static void record(struct probe *probe, int signals)
{
    struct pollfd files[] = { { .fd = signals, .events = POLLIN },
                              { .fd = ct_programs_notices(probe->programs), .events = POLLIN },
                              { .fd = probe->watch.fd, .events = POLLIN } };
    uint64_t scanned_ns = ct_monotonic_ns();
    const uint64_t end_ns = probe->options.for_ns ? scanned_ns + probe->options.for_ns : UINT64_MAX;
    while (ct_monotonic_ns() < end_ns) {
        struct signalfd_siginfo signal;
        const bool is_sending = ct_missed_send(&probe->missed);
        const int ready = poll(files, 3, probe->is_scanning ? 0 : is_sending ? SEND_MS : SCAN_MS);
        const bool has_signal =
            ready > 0 && files[0].revents && read(signals, &signal, sizeof(signal)) == sizeof(signal);
        if (has_signal && signal.ssi_signo == SIGHUP && ct_hook_lines_exist(&probe->hooks.lines))
            ct_hooks_reload(&probe->hooks);
        else if (has_signal && signal.ssi_signo != SIGCHLD)
            return;
        read_notices(probe, NOTICES_MAX);
        ct_missed_add_unlisted(&probe->missed, ct_channels_take_unnoticed(probe->programs));
        ct_probed_reap(&probe->probed);
        if (!probe->spare.is_running && !probe->options.hooked)
            ct_spare_channels_offer(&probe->spare);
        stock_channels(probe);
        /* If the probe could not attach to a file, calls are being missed, so the next scan must follow
         * soon. */
        const uint64_t scan_ms =
            probe->options.pids == 0 && probe->files.is_announced ? SCAN_ALL_MS : SCAN_MS;
        const bool has_come = ct_session_watch_take(&probe->watch);
        const bool is_due =
            has_come || (!probe->is_scanning && ct_monotonic_ns() - scanned_ns >= scan_ms * 1000000);
        if (is_due)
            begin_scan(probe);
        if (probe->is_scanning)
            go_on_scanning(probe, TURN_NS);
        if (ct_is_interrupted())
            continue; /* takes the signal */
        if (is_due)
            scanned_ns = ct_monotonic_ns();
        if (!probe->is_scanning)
            ct_probed_files_announce(&probe->files);
        if (is_over(probe))
            return;
    }
}

/* Returns whether a writer records events of the whole machine. */
static bool wants_machine(const struct probe *probe)
{
    return ct_hooks_are_wanted(&probe->hooks) || probe->has_fences;
}

/* Returns whether the probe will need to create perf events after it has started. */
static bool makes_events_later(const struct probe *probe)
{
    return ct_programs_method(probe->programs) == CT_METHOD_EVENTS ||
           ct_hook_lines_exist(&probe->hooks.lines);
}

static int begin(struct probe *probe)
{
    char why[CT_WHY_BYTES];
    probe->has_fences = probe->options.kernel_events && ct_fences_find(&probe->fences, probe->hooks.tracefs);
    const struct ct_program_set optional = { .kernel_events = probe->options.kernel_events,
                                             .pid = probe->options.pid,
                                             .pids = probe->options.pids,
                                             .children = probe->options.children,
                                             .hooks = ct_hook_lines_exist(&probe->hooks.lines),
                                             .machine = ct_hooks_are_wanted(&probe->hooks),
                                             .ioctls = probe->options.ioctls,
                                             .fences = probe->has_fences };
    int error = ct_programs_load((enum ct_method)probe->options.method, optional, &probe->programs, why);
    if (error)
        return ct_programs_refused(error, why);
    const int status = probe->options.ioctls ? ct_ioctls_attach(&probe->ioctls, probe->programs) : CT_GO_ON;
    if (status != CT_GO_ON)
        return status;
    if (probe->options.verbose && ct_program_costs_begin() < 0)
        fprintf(stderr, "probe: the kernel does not measure the BPF programs: %s\n", strerror(errno));
    error = ct_rights_keep(makes_events_later(probe) || wants_machine(probe));
    if (error)
        return ct_fail(EXIT_FAILURE, "probe: cannot drop capabilities: %s", strerror(-error));
    probe->functions = ct_functions_create();
    probe->spare.programs = probe->hooks.programs = probe->programs;
    probe->hooks.functions = probe->functions;
    probe->missed = (struct ct_missed){ .session = probe->options.session, .dir = probe->options.shm_dir };
    probe->probed = (struct ct_probed_set){ .programs = probe->programs, .functions = probe->functions };
    probe->files = (struct ct_probed_files){
        .programs = probe->programs,
        .functions = probe->functions,
        .selection = &probe->options.selecting.selection,
        .is_for_all = probe->options.all,
        .is_verbose = probe->options.verbose,
    };
    if (!probe->functions ||
        ct_kernel_ring_map(&probe->notices, ct_programs_notices(probe->programs), CT_NOTICES_BYTES) != 0)
        return ct_fail(EXIT_FAILURE, "probe: out of memory");
    const struct ct_probe_cost cost = ct_programs_cost(probe->programs);
    if (probe->options.verbose)
        fprintf(stderr,
                "probe: by %s; a call takes %llu ns longer, and its duration is corrected by %llu ns\n",
                ct_method_names[ct_programs_method(probe->programs)], (unsigned long long)cost.whole_ns,
                (unsigned long long)cost.seen_ns);
    return CT_GO_ON;
}

/* Starts the arrivals writer (writer.h), which writes the probe's own segment and the events of the
 * machine. */
static void begin_machine(struct probe *probe)
{
    struct ct_channel machine;
    probe->hooks.has_machine = wants_machine(probe) && ct_channels_make(probe->programs, &machine, 1) == 0;
    if (probe->hooks.has_machine)
        ct_programs_set_machine(probe->programs, &machine);
    if (ct_probed_begin(&probe->probed, probe->hooks.has_machine ? &machine : NULL) == 0)
        return;
    probe->hooks.has_machine = false;
    fputs("cudatrace-probe: the first calls of a process may be stored late\n", stderr);
}

/* Attaches the hooks, and the programs for fences. Afterwards, the probe's own hook and the fence programs no
 * longer need the right to create perf events. */
static void attach_hooks(struct probe *probe)
{
    ct_hooks_attach(&probe->hooks);
    if (probe->has_fences && probe->hooks.has_machine)
        ct_fences_attach(&probe->fences, probe->programs);
    const int error = ct_rights_keep(makes_events_later(probe));
    if (error)
        fprintf(stderr, "cudatrace-probe: cannot drop CAP_SYS_ADMIN: %s\n", strerror(-error));
}

/* Prepares to find the processes of --hooked. Returns CT_GO_ON, or the exit status after reporting an
 * error. */
static int begin_watch(struct probe *probe)
{
    const char *dir = probe->options.shm_dir;
    const int error =
        probe->options.hooked ? ct_session_watch_begin(&probe->watch, dir, probe->options.session) : 0;
    return error ? ct_fail(EXIT_FAILURE, "probe: cannot watch %s: %s", dir, strerror(-error)) : CT_GO_ON;
}

static int run(struct probe *probe)
{
    const int ready = ct_parent_begin();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN); /* a writer may have ended, or the reader of standard error */
    /* On a busy machine, the rings could become full before writers with normal priority run. If the probe
     * lacks the right to raise its priority, it continues with normal priority. */
    setpriority(PRIO_PROCESS, 0, -10);
    /* Each recorded process needs four descriptors. */
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    const int from = signalfd(-1, &signals, SFD_CLOEXEC);
    const bool is_locked = ct_session_lock_take(&probe->lock, probe->options.session);
    probe->hooks = (struct ct_hooks){
        .lines = ct_hook_lines_of(&probe->options),
        .pid = probe->options.pid,
        .pids = probe->options.pids,
        .selection = probe->options.hooked ? NULL : &probe->options.selecting.selection,
    };
    probe->watch.fd = -1;
    int status = !is_locked || from < 0 ? EXIT_FAILURE : ct_hooks_begin(&probe->hooks);
    if (status == CT_GO_ON)
        status = begin_watch(probe);
    if (status == CT_GO_ON)
        status = begin(probe);
    if (status == CT_GO_ON) {
        if (!probe->options.hooked)
            ct_spare_channels_offer(&probe->spare);
        stock_channels(probe);
        begin_machine(probe);
        begin_scan(probe);
        if (probe->is_scanning)
            go_on_scanning(probe, UINT64_MAX);
        if (!ct_is_interrupted()) {
            attach_hooks(probe);
            probe->files.is_announced |= ct_parent_tell(ready);
            ct_probed_files_announce(&probe->files);
        }
        if (!probe->options.hooked)
            ct_spare_channels_start(&probe->spare);
        record(probe, from);
        ct_spare_channels_stop(&probe->spare);
        if (probe->options.verbose)
            ct_program_costs_print(probe->programs, probe->functions);
        ct_hooks_detach(&probe->hooks);
        ct_ioctls_detach(&probe->ioctls);
        ct_fences_detach(&probe->fences);
        ct_probed_files_detach(&probe->files);
        /* Adds the processes that the BPF programs have reported since notices were last read. */
        read_notices(probe, SIZE_MAX);
        ct_missed_add_unlisted(&probe->missed, ct_channels_take_unnoticed(probe->programs));
        ct_probed_finish(&probe->probed);
        ct_missed_finish(&probe->missed);
        status = EXIT_SUCCESS;
    }
    ct_programs_unload(probe->programs);
    ct_session_watch_end(&probe->watch);
    ct_session_lock_give(&probe->lock);
    return status;
}

int main(int argc, char **argv)
{
    static struct probe probe;
    ct_parent_fill_files();
    const int status = ct_probe_options_parse(argc, argv, &probe.options);
    if (status != CT_GO_ON)
        return status;
    if (probe.options.discover)
        return ct_discover(&probe.options);
    if (probe.options.command)
        return ct_fail(EXIT_USAGE, "probe: only `cudatrace probe` can run a command");
    if (probe.options.patterns > 0)
        return ct_list(&probe.options);
    if (probe.options.dry_run || probe.options.bpftrace) {
        struct ct_hook_lines lines = ct_hook_lines_of(&probe.options);
        const bool records = !probe.options.hooked && !probe.options.bpftrace;
        return ct_hooks_print(&lines, records ? &probe.options.selecting.selection : NULL,
                              probe.options.bpftrace);
    }
    /* Like the hook, the writers find the session through the environment. */
    setenv(CT_SESSION_ENV, probe.options.session, 1);
    setenv(CT_SHM_DIR_ENV, probe.options.shm_dir, 1);
    return run(&probe);
}
