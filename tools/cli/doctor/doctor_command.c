#include "doctor_command.h"

#include "descriptors.h"
#include "doctor_machine.h"
#include "held_daemon.h"
#include "installed.h"
#include "preloadable.h"
#include "probe.h"
#include "trace_file.h"
#include "trace_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- its file ---- */

/* Reports whether the program is linked with the CUDA driver or runtime. */
static void say_needed(struct ct_doctor *doctor, const char *file)
{
    struct ct_elf elf;
    bool driver = false, runtime = false;
    if (ct_elf_open(&elf, file) != 0 || !elf.native) {
        ct_elf_close(&elf);
        return;
    }
    for (const char **needed = elf.needed; needed && *needed; needed++) {
        if (strcmp(*needed, "libcuda.so.1") == 0)
            driver = true;
        if (strncmp(*needed, "libcudart.so.", strlen("libcudart.so.")) == 0) {
            runtime = true;
            ct_doctor_runtime(doctor, basename(file), *needed);
        }
    }
    if (driver)
        ct_doctor_say(doctor, doctor->driver_path[0] ? CT_VERDICT_OK : CT_VERDICT_NOTE, "way in",
                      "linked with libcuda.so.1%s",
                      doctor->driver_path[0] ? ""
                                             : ", which the loader does not find: the program cannot start");
    else
        FINE("way in", "%s",
             runtime
                 ? "the runtime loads the driver and looks up its functions"
                 : "loads CUDA while it runs, if at all: look-ups by dlsym and cuGetProcAddress are traced");
    ct_elf_close(&elf);
}

void ct_doctor_command(struct ct_doctor *doctor, char **argv, char *file)
{
    ct_doctor_head("Command %s", argv[0]);
    char named[PATH_MAX];
    memcpy(named, file, sizeof(named));
    const bool script = ct_program_follow(file);
    const enum ct_program program = ct_program_judge(file);
    if (script)
        FINE("script", "%s is run by %s", named, file);
    struct ct_elf elf;
    const int error = ct_elf_open(&elf, file);
    ct_elf_close(&elf);
    if (program != CT_PROGRAM_UNKNOWN)
        MISS("program", "%s %s", file, ct_program_why(program));
    else if (error)
        NOTE("program", "%s cannot be read (%s), so it was not inspected", file,
             error == -ENOEXEC ? "not an ELF file" : strerror(-error));
    else
        FINE("program", "%s accepts LD_PRELOAD, and passes it to the programs that it starts", file);
    if (program == CT_PROGRAM_UNKNOWN && !error)
        say_needed(doctor, file);
    const char *preload = getenv("LD_PRELOAD");
    if (preload && *preload && !strstr(preload, "libcudatrace.so"))
        FINE("LD_PRELOAD", "%s: run inserts the hook before this value", preload);
}

/* ---- what happens ---- */

enum finding {
    FINDING_NONE, /* the process did not load the driver, or was killed before it could record */
    FINDING_RECORDED,
    FINDING_NO_HOOK,
    FINDING_OWN_SHM,
    FINDING_HINDERED,
    FINDING_FILTERED,
    FINDING_SILENT,
};

/* Returns whether the trace contains the process, and not only the number of its lost calls. A process that
 * was terminated at its first call may be in the trace without any call. */
static bool is_recorded(sqlite3 *trace, const struct ct_probed *process)
{
    static const char sql[] =
        "SELECT count(*) FROM processes WHERE pid = ?1 AND (SELECT sum(stored) = 0 AND sum(lost) > 0 "
        "FROM totals WHERE totals.process_id = processes.process_id) IS NOT 1";
    return trace && ct_ask_number(trace, sql, process->own_pid, 0) > 0;
}

static enum finding find(const struct ct_probe *probe, const struct ct_probed *process, sqlite3 *trace)
{
    if (is_recorded(trace, process))
        return FINDING_RECORDED;
    if (!process->has_driver)
        return FINDING_NONE;
    if (!process->has_hook)
        return FINDING_NO_HOOK;
    if (process->has_own_shm)
        return FINDING_OWN_SHM;
    if (*process->hindrance)
        return FINDING_HINDERED;
    if (probe->end == CT_PROBE_JOINED)
        return FINDING_NONE;
    return process->is_filtered ? FINDING_FILTERED : FINDING_SILENT;
}

static void say_finding(struct ct_doctor *doctor, const struct ct_probed *process, enum finding finding)
{
    const char *program = process->program, *shm_dir = doctor->choice.shm_dir;
    switch (finding) {
    case FINDING_NONE:
        break;
    case FINDING_RECORDED:
        FINE("recording", "%s: its calls reach the daemon", program);
        break;
    case FINDING_NO_HOOK:
        MISS("hook", "%s loads the driver but not the hook: %s", program,
             process->is_asked ? "the loader did not load the hook from LD_PRELOAD"
                               : "it was started without LD_PRELOAD, which an earlier program has removed");
        break;
    case FINDING_OWN_SHM:
        MISS("container",
             "%s loads the driver and the hook, and has its own %s, so no daemon outside finds it: share %s "
             "(bwrap --bind %s %s, docker run --ipc=host), or a directory for --shm-dir",
             program, shm_dir, shm_dir, shm_dir, shm_dir);
        break;
    case FINDING_HINDERED:
        MISS("recording", "%s loads the driver and the hook, but its calls are not recorded: %s", program,
             process->hindrance);
        break;
    case FINDING_FILTERED:
        MISS("system calls",
             "%s loads the driver and the hook, but records nothing, because of its system call filter "
             "(seccomp): the filter must allow the system calls of the hook (SECURITY.md)",
             program);
        break;
    case FINDING_SILENT:
        MISS("recording",
             "%s loads the driver and the hook, but records nothing: it makes no calls, or calls the driver "
             "in a way that the hook cannot intercept",
             program);
        break;
    }
}

static void say_end(struct ct_doctor *doctor, const struct ct_probe *probe, uint64_t patience_ns)
{
    const int status = probe->wait_status;
    if (probe->end == CT_PROBE_JOINED)
        FINE("started", "started the command, and terminated it after its first recorded call");
    else if (probe->end == CT_PROBE_LATE)
        NOTE("started",
             "started the command, and terminated it after %llu s without a recorded call: --wait gives it "
             "more time",
             (unsigned long long)(patience_ns / 1000000000));
    else if (WIFSIGNALED(status))
        NOTE("started", "started the command; signal %d (%s) killed it", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
    else
        ct_doctor_say(doctor, WEXITSTATUS(status) ? CT_VERDICT_NOTE : CT_VERDICT_OK, "started",
                      "started the command; it exited with status %d", WEXITSTATUS(status));
}

/* Reports what happened in each process. A finding is reported only once per program. */
static void say_processes(struct ct_doctor *doctor, const struct ct_probe *probe, sqlite3 *trace)
{
    bool has_driver = false;
    for (size_t i = 0; i < probe->count; i++) {
        const struct ct_probed *process = &probe->process[i];
        const enum finding finding = find(probe, process, trace);
        bool is_known = false;
        for (size_t j = 0; j < i && !is_known; j++)
            is_known = strcmp(probe->process[j].program, process->program) == 0 &&
                       find(probe, &probe->process[j], trace) == finding;
        has_driver |= process->has_driver || finding == FINDING_RECORDED;
        if (!is_known)
            say_finding(doctor, process, finding);
    }
    if (probe->watch_error)
        NOTE("watching",
             "the processes of the command cannot be watched (ptrace: %s), so some problems may not be "
             "reported",
             strerror(probe->watch_error));
    else if (!has_driver)
        NOTE(
            "driver",
            "no process of the command has loaded libcuda.so.1: it makes no CUDA calls, or makes them later");
}

static void say_probe(struct ct_doctor *doctor, const struct ct_probe *probe, const char *database,
                      uint64_t patience_ns)
{
    sqlite3 *trace = NULL;
    if (sqlite3_open_v2(database, &trace, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        sqlite3_close(trace);
        trace = NULL;
    }
    if (probe->start_error) {
        MISS("started", "the command cannot be executed: %s", strerror(probe->start_error));
    } else {
        say_end(doctor, probe, patience_ns);
        say_processes(doctor, probe, trace);
    }
    sqlite3_close(trace);
}

/* Returns whether the command can open too few files to be recorded, after reporting it. A hook needs fewer
 * than a daemon. */
static bool has_few_descriptors(struct ct_doctor *doctor)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= CT_DAEMON_DESCRIPTORS_MIN)
        return false;
    MISS("open files",
         "the limit on open files (ulimit -n, RLIMIT_NOFILE) is %llu, too low for a daemon or a recorded "
         "program: raise it to at least %d; the command was not started",
         (unsigned long long)files.rlim_cur, CT_DAEMON_DESCRIPTORS_MIN);
    return true;
}

/* Runs the command under a daemon of its own, and reports the outcome. Returns the signal that must end this
 * process, or 0 if there is none. */
static int probe_with(struct ct_doctor *doctor, char **argv, const char *folder, uint64_t patience_ns)
{
    static const char *const no_values[CT_DAEMON_OPTIONS];
    char session[CT_SESSION_MAX + 1], database[PATH_MAX + 16], written[CT_ANSWER_BYTES];
    struct ct_session_choice choice = doctor->choice;
    struct ct_probe probe;
    int status;
    snprintf(session, sizeof(session), "doctor-%d", (int)getpid());
    snprintf(database, sizeof(database), "%s/trace.db", folder);
    choice.session = choice.session_option = session;
    choice.session_named = true;
    choice.database = database;
    const int daemon = ct_daemon_hold("doctor", &choice, no_values, written, &status);
    if (daemon < 0) {
        NOTE("started", "the command was not started, since no daemon could be started");
        return 0;
    }
    ct_probe_run(&probe, argv, doctor->hook_path, &choice, patience_ns);
    if (ct_client_ask(daemon, "flush", written, 0) != CT_ANSWER_NONE)
        ct_client_ask(daemon, "release", written, 0);
    close(daemon);
    if (!probe.signalled)
        say_probe(doctor, &probe, database, patience_ns);
    ct_probe_free(&probe);
    return probe.signalled;
}

void ct_doctor_probe(struct ct_doctor *doctor, char **argv, uint64_t patience_ns)
{
    static const char *const files[] = { "trace.db", "trace.db-wal", "trace.db-shm", "trace.db.log" };
    const char *temporary = getenv("TMPDIR");
    char folder[PATH_MAX], path[PATH_MAX + 16];
    if (!doctor->hook_path[0] || !ct_installed_is_nameable(doctor->hook_path))
        return; /* the problem is already reported, and there is nothing to try */
    if (has_few_descriptors(doctor))
        return;
    snprintf(folder, sizeof(folder), "%s/cudatrace-doctor-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        NOTE("started", "the command was not started, since %s cannot be created: %s", folder,
             strerror(errno));
        return;
    }
    const int signalled = probe_with(doctor, argv, folder, patience_ns);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    if (signalled) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, signalled);
        raise(signalled);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
    }
}
