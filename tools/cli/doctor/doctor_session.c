#include "doctor_session.h"

#include "client.h"
#include "clock_source.h"
#include "hindrance.h"
#include "lock_holder.h"
#include "printable.h"
#include "proc.h"
#include "schema_version.h"
#include "selection.h"
#include "series.h"
#include "session_files.h"
#include "trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- the control segment ---- */

/* Lists other sessions that a daemon serves, because the most likely mistake is to name the wrong session. */
static void list_served(const struct ct_doctor *doctor, char *text, size_t bytes)
{
    static struct ct_control control;
    text[0] = '\0';
    struct ct_session_file of;
    size_t n = 0;
    for (DIR *files = opendir(doctor->shm_folder); ct_session_files_next(files, &of);) {
        char path[PATH_MAX];
        if (of.kind != CT_FILE_CONTROL || n >= bytes ||
            (of.uid == doctor->uid && strcmp(of.session, doctor->session) == 0))
            continue;
        snprintf(path, sizeof(path), "%s/%s", doctor->shm_folder, of.name);
        /* Another user's control segment cannot be opened, and may be left over from a daemon that was
         * killed. */
        if (ct_control_read(path, of.uid, &control) != CT_SERVED && access(path, R_OK) == 0)
            continue;
        n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? ", " : "", of.session);
        if (of.uid != doctor->uid && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, " (user %u)", of.uid);
    }
}

/* ---- the daemon ---- */

/* Returns the daemon's full status text, which the caller frees, or NULL if the daemon does not answer. */
static char *ask_status(const struct ct_doctor *doctor)
{
    enum { PATIENCE_S = 5 };
    char path[CT_NAME_BYTES];
    ct_session_socket_path(path, doctor->shm_folder, doctor->daemon_uid, doctor->session);
    const int fd = ct_client_connect_path(path, doctor->daemon_uid);
    if (fd < 0)
        return NULL;
    char *text = ct_client_status(fd, PATIENCE_S);
    close(fd);
    return text;
}

static void say_selection(struct ct_doctor *doctor, const char *status)
{
    char layers[128], calls[CT_SELECTION_CALLS_BYTES + 8], sample[32];
    ct_client_status_word(status, "layers", layers, sizeof(layers));
    ct_client_status_word(status, "calls", calls, sizeof(calls));
    ct_client_status_word(status, "sample", sample, sizeof(sample));
    struct ct_selection all = ct_selection_everything(), set = all;
    const bool everything =
        (!*layers || (ct_selection_set_layers(&set, layers) && set.layers == all.layers)) &&
        (!*calls || strcmp(calls, "*") == 0) && (!*sample || strcmp(sample, "1") == 0);
    if (!everything)
        MISS("selection",
             "only layers %s, calls %s, 1 in %s are recorded; other calls are only counted (skipped in "
             "totals). To record everything: cudatrace set --session %s --layers all --calls '*' --sample 1",
             layers, calls, sample, doctor->session);
}

/* Reports whether the daemon has run out of room for processes or threads, and whether the session's files
 * were removed. The system daemon reports only the requesting user's shortages. */
static void say_shortage(struct ct_doctor *doctor, const char *status)
{
    const long long processes = ct_client_status_number(status, "waiting_processes"),
                    threads = ct_client_status_number(status, "waiting_threads"),
                    made_anew = ct_client_status_number(status, "made_anew"),
                    ignored = ct_client_status_number(status, "ignored"),
                    unrecorded = ct_client_status_number(status, "unrecorded"),
                    functions = ct_client_status_number(status, "merged_functions");
    if (processes > 0 || threads > 0)
        MISS("share",
             "%lld processes and %lld threads wait for others to end, and are not recorded once their shared "
             "memory is full: the daemon has no room for more (docs/operations.md, \"Shares\")",
             processes, threads);
    if (unrecorded > 0)
        MISS("unrecorded",
             "%lld processes made calls but could not be recorded; their reasons: cudatrace sql --session %s "
             "'SELECT * FROM unrecorded'",
             unrecorded, doctor->session);
    if (made_anew > 0)
        NOTE("files",
             "the session's files in %s were removed, and the daemon recreated them (%lld times): "
             "systemd-logind removes them when a user logs out, unless RemoveIPC=no or `loginctl "
             "enable-linger`",
             doctor->choice.shm_dir, made_anew);
    if (ignored > 0)
        NOTE("ignored",
             "%lld files in %s are named like segments of this session, but do not belong to the user in "
             "their name: `ls -l` shows who has created them",
             ignored, doctor->choice.shm_dir);
    if (functions > 0)
        NOTE("names",
             "%lld functions are counted as one, \"(other functions)\": there is no room for more names",
             functions);
}

static void say_unserved(struct ct_doctor *doctor, enum ct_serving serving, const struct ct_control *control)
{
    char served[512], others[600] = "", left[128] = "";
    list_served(doctor, served, sizeof(served));
    if (*served)
        snprintf(others, sizeof(others), " Sessions with a daemon: %s.", served);
    if (serving == CT_SERVED_LEFT)
        snprintf(left, sizeof(left),
                 " (process %d did, and was killed; a new daemon continues where it left off)",
                 control->daemon_pid);
    if (doctor->patient)
        MISS("daemon",
             "none serves it%s, so its processes record nothing: start `cudatraced --session %s --db FILE`. "
             "Processes with the hook find it within a second, at their next call.%s",
             left, doctor->session, others);
    else if (doctor->is_derived)
        NOTE("daemon", "none serves it%s: `cudatrace run --db %s` starts one and ends it.%s", left,
             doctor->choice.database, others);
    else
        NOTE(
            "daemon",
            "none serves it%s: `cudatrace run` starts one and ends it. For other programs, start `cudatraced "
            "--session %s --db FILE`.%s",
            left, doctor->session, others);
}

static enum ct_serving read_control_of(const struct ct_doctor *doctor, uint32_t uid,
                                       struct ct_control *control)
{
    char path[CT_NAME_BYTES];
    ct_session_control_path(path, doctor->shm_folder, uid, doctor->session);
    return ct_control_read(path, uid, control);
}

/* Prints the daemon's status. Stores the path of the daemon's database in `database`. The system daemon does
 * not reveal its database's path. */
static void say_status(struct ct_doctor *doctor, const char *status, char *database, size_t bytes)
{
    char processes[32], threads[32], state[512], serves[32];
    if (ct_client_status_word(status, "serves", serves, sizeof(serves))) {
        FINE("daemon",
             "process %d, the system daemon, serves it for all users, and the trace is root's; for a trace "
             "of your own, use `cudatrace run --db FILE`",
             doctor->daemon_pid);
        say_shortage(doctor, status);
        return;
    }
    ct_client_status_word(status, "database", database, bytes);
    ct_client_status_word(status, "processes", processes, sizeof(processes));
    ct_client_status_word(status, "threads", threads, sizeof(threads));
    ct_client_status_word(status, "state", state, sizeof(state));
    if (strcmp(state, "ok") == 0)
        FINE("daemon", "process %d serves it; it follows %s %s, %s %s", doctor->daemon_pid, processes,
             strcmp(processes, "1") == 0 ? "process" : "processes", threads,
             strcmp(threads, "1") == 0 ? "thread" : "threads");
    else
        MISS("daemon", "process %d serves it and cannot store: %s", doctor->daemon_pid, state);
    char storing[512];
    if (ct_client_status_word(status, "storing", storing, sizeof(storing)) &&
        strncmp(storing, "one by one", strlen("one by one")) == 0)
        NOTE("storing", "calls are stored %s; at high rates, more calls are lost", storing);
    say_selection(doctor, status);
    say_shortage(doctor, status);
}

/* Returns whether a daemon serves the session. Stores the path of the daemon's database in `database`. */
static bool check_daemon(struct ct_doctor *doctor, char *database, size_t bytes)
{
    static struct ct_control control, of_system;
    doctor->daemon_uid = doctor->uid;
    enum ct_serving serving = read_control_of(doctor, doctor->uid, &control);
    /* Search in the same order as the hook: first for the user's own daemon, then for the system daemon. */
    if (serving != CT_SERVED && doctor->uid != 0 && read_control_of(doctor, 0, &of_system) == CT_SERVED &&
        of_system.system) {
        control = of_system;
        serving = CT_SERVED;
        doctor->daemon_uid = 0;
    }
    if (serving != CT_SERVED) {
        say_unserved(doctor, serving, &control);
        return false;
    }
    doctor->daemon_pid = control.daemon_pid;
    doctor->daemon_clock = control.clock;
    doctor->ring_bytes = control.ring_bytes;
    doctor->selections = control.selections;
    if (control.magic != CT_CONTROL_MAGIC || control.version != CT_PROTO_VERSION ||
        control.bytes != sizeof(control)) {
        MISS("daemon",
             "process %d serves it and is of another build (shared memory of version %u, not %d), so hooks "
             "of this build ignore it: stop it, and start the cudatraced of this build",
             control.daemon_pid, control.version, CT_PROTO_VERSION);
        return false;
    }
    char *status = ask_status(doctor);
    if (!status) {
        MISS("daemon",
             "process %d serves it but does not respond (stopped, hung or exiting); check it with ps and "
             "kill it if this persists; a new daemon continues where it left off",
             control.daemon_pid);
        return false;
    }
    doctor->daemon_system = control.system;
    say_status(doctor, status, database, bytes);
    free(status);
    return true;
}

/* ---- the database ---- */

/* Returns the name of the folder's network file system, or NULL if the folder is local. SQLite's write-ahead
 * log needs memory shared by all users of the database, which must therefore be on one machine. */
static const char *network_file_system(const char *folder)
{
    static const struct {
        long magic;
        const char *name;
    } known[] = { { NFS_SUPER_MAGIC, "NFS" }, { (long)SMB2_SUPER_MAGIC, "SMB" },
                  { 0xff534d42, "CIFS" },     { 0x0bd00bd0, "Lustre" },
                  { V9FS_MAGIC, "9p" },       { CEPH_SUPER_MAGIC, "Ceph" },
                  { AFS_SUPER_MAGIC, "AFS" } };
    struct statfs system;
    if (statfs(folder, &system) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if ((uint32_t)system.f_type == (uint32_t)known[i].magic)
            return known[i].name;
    }
    return NULL;
}

static bool is_this_boot(const char *boot_id)
{
    char line[64] = "";
    FILE *from = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (from && !fgets(line, sizeof(line), from))
        line[0] = '\0';
    if (from)
        fclose(from);
    line[strcspn(line, "\n")] = '\0';
    return strcmp(line, boot_id) == 0;
}

/* Returns whether the next daemon can continue writing this file. If not, reports the reason. */
static bool check_file(struct ct_doctor *doctor, const char *path, const struct stat *status, char *what,
                       size_t bytes)
{
    struct ct_trace_facts facts;
    char problem[512] = "";
    if (!S_ISREG(status->st_mode))
        snprintf(problem, sizeof(problem), "it is %s",
                 S_ISDIR(status->st_mode) ? "a directory" : "not a regular file");
    else if (access(path, R_OK | W_OK) != 0)
        snprintf(problem, sizeof(problem), "it is not writable: %s", strerror(errno));
    else if (status->st_size == 0)
        snprintf(what, bytes, "is empty and will be used");
    else if (!ct_trace_inspect(path, &facts, problem, sizeof(problem)))
        ;
    else if (facts.application != CT_APPLICATION_ID && facts.objects > 0)
        snprintf(problem, sizeof(problem), "it is a database of another program");
    else if (facts.schema > CT_SCHEMA_VERSION)
        snprintf(problem, sizeof(problem),
                 "it was written by a newer cudatrace (schema %lld, this one reads %d)",
                 (long long)facts.schema, CT_SCHEMA_VERSION);
    else if (facts.schema < CT_SCHEMA_VERSION)
        snprintf(what, bytes,
                 "was written by an older cudatrace (schema %lld, not %d): the next numbered file next to it "
                 "will be written",
                 (long long)facts.schema, CT_SCHEMA_VERSION);
    else if (!is_this_boot(facts.boot_id))
        snprintf(what, bytes, "is from an earlier boot: the next numbered file next to it will be written");
    else
        snprintf(what, bytes, "is a trace and will be continued");
    char who[CT_LOCK_HOLDER_BYTES];
    const pid_t holder = ct_lock_holder(&(struct ct_lock_query){ .inode = status->st_ino, .is_flock = true });
    if (!*problem && holder)
        snprintf(problem, sizeof(problem),
                 ct_lock_holder_describe(holder, who) ? "%s writes it for another session"
                                                      : "%s has locked it",
                 who);
    if (*problem)
        MISS("database", "%s cannot be the database: %s. Use another file with --db", path, problem);
    return !*problem;
}

static void say_room(struct ct_doctor *doctor, const char *path, const char *what)
{
    enum { LITTLE_MIB = 512 };
    char folder[PATH_MAX], size[32];
    struct statvfs system;
    ct_trace_folder(path, folder);
    const char *network = network_file_system(folder);
    const bool known = statvfs(folder, &system) == 0;
    const uint64_t free_bytes = known ? (uint64_t)system.f_bavail * system.f_frsize : 0;
    if (network)
        NOTE("database",
             "%s %s; it is on %s, where SQLite is slow and only this machine can read it: a local disk is "
             "better",
             path, what, network);
    else if (known && free_bytes >> 20 < LITTLE_MIB)
        NOTE("database", "%s %s; only %s are free there, and a million calls take some 20 MiB", path, what,
             ct_size_text(size, free_bytes));
    else
        FINE("database", "%s %s; %s%s", path, what,
             known ? ct_size_text(size, free_bytes) : "the free space is unknown", known ? " free" : "");
}

/* Checks the database to which the next daemon would write. */
static void check_database(struct ct_doctor *doctor)
{
    const char *path = doctor->choice.database ? doctor->choice.database : "trace.db";
    char folder[PATH_MAX], what[256];
    struct stat status;
    ct_trace_folder(path, folder);
    if (stat(path, &status) == 0) {
        if (!check_file(doctor, path, &status, what, sizeof(what)))
            return;
    } else if (errno != ENOENT || access(folder, W_OK | X_OK) != 0) {
        MISS("database", "%s cannot be created (%s): use another file with --db", path, strerror(errno));
        return;
    } else {
        snprintf(what, sizeof(what), "does not exist yet and will be created");
    }
    say_room(doctor, path, what);
}

static void check_served_database(struct ct_doctor *doctor, const char *database)
{
    const char *wanted = doctor->choice.database;
    if (wanted && !ct_series_has(wanted, database))
        MISS("database", "the daemon writes %s and not %s: omit --db, or choose another --session", database,
             wanted);
    else
        say_room(doctor, database, "is being written");
}

/* ---- clock and shared memory ---- */

static void check_clock(struct ct_doctor *doctor)
{
    char source[CT_CLOCK_SOURCES_BYTES];
    uint32_t clock = ct_clock_choose(source);
    if (doctor->daemon_pid)
        clock = doctor->daemon_clock;
    if (clock == CT_CLOCK_COUNTER)
        FINE("clock", "the processor's counter, on which the kernel's clock source is based (%s)",
             *source ? source : "unknown");
    else
        NOTE("clock",
             "clock_gettime, because the kernel's clock source (%s) is based on no counter that programs may "
             "trust: times are correct, but each call costs two readings of that clock",
             *source ? source : "unknown");
}

static void check_shared_memory(struct ct_doctor *doctor)
{
    enum { FEW_THREADS = 64 };
    const char *subject = doctor->choice.shm_dir;
    const char *folder = doctor->shm_folder;
    char room[32], ring[32];
    struct statfs kind;
    struct statvfs system;
    if (statfs(folder, &kind) != 0 || statvfs(folder, &system) != 0 || access(folder, W_OK | X_OK) != 0 ||
        system.f_flag & ST_RDONLY) {
        MISS(subject, "cannot be written (%s): mount it: mount -t tmpfs -o mode=1777 none %s",
             strerror(errno), subject);
        return;
    }
    const uint64_t free_bytes = ct_hindrance_room(system.f_frsize, system.f_blocks, system.f_bavail);
    const uint64_t threads = free_bytes / (CT_CHUNK_BYTES + CT_LANE_HEADER_BYTES);
    ct_size_text(room, free_bytes);
    ct_size_text(ring, doctor->ring_bytes);
    if (free_bytes < CT_HINDRANCE_ROOM_MIN)
        MISS(subject,
             "only %s free (half of the file system is reserved for others): no further thread can record, "
             "and its calls are counted as lost; free space, or enlarge it (docker run --shm-size=1g)",
             room);
    else if (threads < FEW_THREADS)
        NOTE(subject,
             "%s free (half of the file system is reserved for others), enough for %llu more threads; calls "
             "of further threads are counted as lost: enlarge it (docker run --shm-size=1g)",
             room, (unsigned long long)threads);
    else
        FINE(subject, "%s free for tracing; rings of up to %s for each thread that makes calls", room, ring);
    if (kind.f_type != TMPFS_MAGIC)
        NOTE(subject, "is not a tmpfs: each record may go to a disk; mount a tmpfs there");
}

void ct_doctor_session(struct ct_doctor *doctor)
{
    char database[PATH_MAX] = "";
    if (doctor->uid == ct_session_uid())
        ct_doctor_head("Session %s", doctor->session);
    else
        ct_doctor_head("Session %s of user %u", doctor->session, doctor->uid);
    doctor->ring_bytes = CT_RING_BYTES_DEFAULT;
    const bool served = check_daemon(doctor, database, sizeof(database));
    if (served && *database)
        check_served_database(doctor, database);
    else if (!doctor->daemon_pid && (!doctor->patient || doctor->choice.database))
        check_database(doctor);
    if (!ct_ring_bytes_valid(doctor->ring_bytes))
        doctor->ring_bytes = CT_RING_BYTES_DEFAULT;
    check_clock(doctor);
    check_shared_memory(doctor);
}
