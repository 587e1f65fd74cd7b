/* Examines a running process. All facts come from /proc, and the process controls some of them. Paths are
 * opened below /proc/PID/root, and only if they are regular files. */
#include "doctor_process.h"

#include "doctor_machine.h"
#include "doctor_segment.h"
#include "hindrance.h"
#include "preloadable.h"
#include "proc.h"
#include "room.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file with mapped code. */
struct mapping {
    char *path;
    uint64_t inode, offset;
    bool deleted; /* the file was deleted or replaced by another file */
};

struct ct_patient {
    pid_t pid;
    pid_t thread;    /* a live thread, through whose files in /proc the process is read */
    int32_t own_pid; /* the pid in the process's own PID namespace */
    uint64_t start_ticks;
    bool ended;
    char *command;   /* its arguments, separated by spaces */
    char *variables; /* its environment at exec, with NULs between the variables */
    size_t variables_bytes;
    struct mapping *mappings;
    size_t mapping_count;
    bool secure; /* AT_SECURE: the loader ignored LD_PRELOAD */
    char root[CT_DOCTOR_ROOT_BYTES];
};

/* ---- /proc ---- */

static bool read_secure(const struct ct_patient *patient)
{
    size_t bytes = 0;
    char *text = ct_proc_file(patient->thread, "auxv", &bytes);
    bool secure = false;
    for (size_t at = 0; text && at + sizeof(Elf64_auxv_t) <= bytes; at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;
        memcpy(&entry, text + at, sizeof(entry));
        if (entry.a_type == AT_SECURE)
            secure = entry.a_un.a_val != 0;
    }
    free(text);
    return secure;
}

/* Returns the value of an environment variable, or NULL if it is not set. */
static const char *variable(const struct ct_patient *patient, const char *name)
{
    const size_t length = strlen(name);
    const char *end = patient->variables + patient->variables_bytes;
    for (const char *at = patient->variables; at && at < end; at += strlen(at) + 1) {
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    }
    return NULL;
}

static void below_root(const struct ct_patient *patient, const char *path, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s%s", patient->root, path);
}

/* Parses a line such as "7f12…-7f13… r-xp 00000000 08:02 135522   /usr/lib/libc.so.6". The line may end
 * in " (deleted)". */
static bool parse_mapping(const struct ct_patient *patient, char *line, struct mapping *mapping)
{
    static const char deleted[] = " (deleted)";
    unsigned long long inode, offset;
    char rights[8];
    int path_at = 0;
    if (sscanf(line, "%*s %7s %llx %*s %llu %n", rights, &offset, &inode, &path_at) != 3 ||
        rights[2] != 'x' || line[path_at] != '/')
        return false;
    *mapping = (struct mapping){ .path = line + path_at, .inode = inode, .offset = offset };
    const size_t length = strlen(mapping->path);
    if (length > strlen(deleted) && strcmp(mapping->path + length - strlen(deleted), deleted) == 0) {
        mapping->path[length - strlen(deleted)] = '\0';
        mapping->deleted = true;
        return true;
    }
    char path[PATH_MAX];
    struct stat status;
    below_root(patient, mapping->path, path);
    mapping->deleted = stat(path, &status) != 0 || status.st_ino != inode;
    return true;
}

/* Lists all mapped files that contain code, with one entry for each time that a file was loaded. The mappings
 * from one load are adjacent and ordered by file offset. */
static bool read_mappings(struct ct_patient *patient)
{
    char *text = ct_proc_file(patient->thread, "maps", NULL);
    if (!text)
        return false;
    size_t room = 0;
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        struct mapping mapping;
        if (!parse_mapping(patient, line, &mapping))
            continue;
        const struct mapping *last =
            patient->mapping_count ? &patient->mappings[patient->mapping_count - 1] : NULL;
        if (last && strcmp(last->path, mapping.path) == 0 && last->offset < mapping.offset)
            continue;
        mapping.path = strdup(mapping.path);
        if (!mapping.path ||
            !ct_make_room(&patient->mappings, patient->mapping_count, &room, sizeof(mapping))) {
            free(mapping.path);
            break;
        }
        patient->mappings[patient->mapping_count++] = mapping;
    }
    free(text);
    return true;
}

/* Returns the first mapped file whose name begins with the given prefix. */
static const struct mapping *find_mapping(const struct ct_patient *patient, const char *beginning)
{
    for (size_t i = 0; i < patient->mapping_count; i++) {
        if (strncmp(basename(patient->mappings[i].path), beginning, strlen(beginning)) == 0)
            return &patient->mappings[i];
    }
    return NULL;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static int open_mapped(const struct ct_patient *patient, const char *file, struct ct_elf *elf)
{
    char path[PATH_MAX];
    below_root(patient, file, path);
    return ct_elf_open(elf, path);
}

/* ---- opening ---- */

struct ct_patient *ct_patient_create(struct ct_doctor *doctor, pid_t pid)
{
    struct ct_patient *patient = calloc(1, sizeof(*patient));
    if (!patient || kill(pid, 0) != 0) {
        if (patient && errno == ESRCH)
            ct_fail(0, "doctor: no such process: %d", (int)pid);
        else
            ct_fail(0, "doctor: process %d: %s: run as its user, or as root", (int)pid, strerror(errno));
        free(patient);
        return NULL;
    }
    struct ct_proc_stat life = { 0 };
    struct ct_proc_status status = { 0 };
    ct_proc_stat(pid, &life);
    ct_proc_status(pid, &status);
    patient->pid = pid;
    patient->thread = ct_proc_thread(pid);
    patient->own_pid = status.inner_pid ? status.inner_pid : pid;
    patient->start_ticks = life.start_ticks;
    patient->ended = life.ended;
    snprintf(patient->root, sizeof(patient->root), "/proc/%d/root", (int)patient->thread);
    size_t bytes = 0;
    patient->command = ct_proc_file(patient->thread, "cmdline", &bytes);
    for (size_t i = 0; i + 1 < bytes; i++) {
        if ((unsigned char)patient->command[i] < ' ')
            patient->command[i] = ' ';
    }
    patient->variables = ct_proc_file(patient->thread, "environ", &patient->variables_bytes);
    /* A process without memory has exited or is a kernel thread. The /proc files of a process that has exited
     * belong to root, so its user may not be able to read them. */
    if (!patient->variables && (errno == ESRCH || (errno == EACCES && life.ended)))
        patient->variables = calloc(1, 1);
    if (!patient->variables || !read_mappings(patient)) {
        ct_fail(0, "doctor: process %d cannot be inspected: %s: run as its user, or as root", (int)pid,
                errno == ENOENT ? "it has ended" : strerror(errno));
        ct_patient_destroy(patient);
        return NULL;
    }
    patient->secure = read_secure(patient);

    doctor->uid = ct_session_uid_of(status.effective);
    const char *session = variable(patient, CT_SESSION_ENV);
    if (!doctor->choice.session_option)
        doctor->session = session && ct_session_valid(session) ? session : CT_SESSION_DEFAULT;
    const char *dir = variable(patient, CT_SHM_DIR_ENV);
    if (!doctor->choice.shm_dir_option && dir && dir[0] == '/' &&
        strlen(dir) < sizeof(doctor->choice.shm_dir))
        strcpy(doctor->choice.shm_dir, dir);
    /* A container may have its own shared memory folder. */
    struct stat ours, theirs;
    snprintf(doctor->shm_folder, sizeof(doctor->shm_folder), "%s%s", patient->root, doctor->choice.shm_dir);
    doctor->shm_is_its_own = stat(doctor->shm_folder, &theirs) == 0 &&
                             (stat(doctor->choice.shm_dir, &ours) != 0 || ours.st_dev != theirs.st_dev);
    if (!doctor->shm_is_its_own)
        strcpy(doctor->shm_folder, doctor->choice.shm_dir);
    return patient;
}

void ct_patient_destroy(struct ct_patient *patient)
{
    if (!patient)
        return;
    for (size_t i = 0; i < patient->mapping_count; i++)
        free(patient->mappings[i].path);
    free(patient->mappings);
    free(patient->variables);
    free(patient->command);
    free(patient);
}

/* ---- the hook in the process ---- */

static void say_how_to_load(struct ct_doctor *doctor, const struct ct_patient *patient, const char *why)
{
    MISS("hook",
         "not loaded: %s. `cudatrace attach %d` loads it now; next time, start the program with `cudatrace "
         "run`, or with LD_PRELOAD=%s",
         why, (int)patient->pid, doctor->hook_path[0] ? doctor->hook_path : "libcudatrace.so");
}

/* Reports why the loader did not load the hook. */
static void say_not_loaded(struct ct_doctor *doctor, const struct ct_patient *patient)
{
    char exe[PATH_MAX], why[512];
    const char *preload = variable(patient, "LD_PRELOAD");
    snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)patient->thread);
    const enum ct_program program = ct_program_judge(exe);
    const char *reason = ct_program_why(program);
    if (reason && program != CT_PROGRAM_SET_ID)
        MISS("hook", "not loaded: the program %s", reason);
    else if (patient->secure)
        MISS("hook",
             "not loaded: the process is set-user-ID or has capabilities, and therefore ignores LD_PRELOAD");
    else if (preload && strstr(preload, "libcudatrace.so")) {
        snprintf(why, sizeof(why),
                 "LD_PRELOAD is '%.200s', but the loader did not find it, or could not load it", preload);
        say_how_to_load(doctor, patient, why);
    } else {
        say_how_to_load(doctor, patient, "it was started without the hook");
    }
}

/* Returns whether the process has loaded a hook that may record. */
static bool check_hook(struct ct_doctor *doctor, const struct ct_patient *patient, bool is_probed)
{
    const struct mapping *hook = find_mapping(patient, "libcudatrace.so");
    if (!hook && find_mapping(patient, "memfd:libcudatrace.so")) {
        FINE("hook", "loaded by `cudatrace attach`: it records for the session of that command, or nothing "
                     "if it has since been detached");
        return true;
    }
    if (!hook && is_probed) {
        FINE("probe", "cudatrace-probe records its driver calls");
        NOTE("hook", "not loaded: calls of the runtime and ranges of NVTX are not recorded, and ioctls only "
                     "with `cudatrace probe --ioctls`");
        return false;
    }
    if (!hook) {
        say_not_loaded(doctor, patient);
        return false;
    }
    char path[PATH_MAX];
    struct ct_elf elf;
    struct ct_hook_note note = { 0 };
    below_root(patient, hook->path, path);
    const bool same = is_same_file(path, doctor->hook_path);
    if (ct_elf_open(&elf, path) == 0)
        ct_elf_note(&elf, CT_HOOK_NOTE_OWNER, CT_HOOK_NOTE_TYPE, &note, sizeof(note));
    ct_elf_close(&elf);
    if (hook->deleted)
        NOTE("hook", "%s is loaded, but has been replaced on disk: restart the process to use the new build",
             hook->path);
    else if (note.proto_version == 0)
        NOTE("hook", "%s is loaded, but does not report its build", hook->path);
    else if (note.proto_version != CT_PROTO_VERSION)
        MISS("hook",
             "%s is loaded, but is of another build (shared memory of version %u, not %d), which does not "
             "find a daemon of this build: restart the process with %s",
             hook->path, note.proto_version, CT_PROTO_VERSION, doctor->hook_path);
    else
        FINE("hook", "%s is loaded%s", hook->path,
             same ? "" : ", which is another file of a compatible build");
    return true;
}

/* Checks the libraries that precede the hook in LD_PRELOAD. The loader searches these libraries first, so
 * they may hide calls from the hook. */
static void check_preloaded(struct ct_doctor *doctor, const struct ct_patient *patient)
{
    const char *preload = variable(patient, "LD_PRELOAD");
    char *list = preload ? strdup(preload) : NULL;
    char *rest = list;
    for (char *entry; rest && (entry = strsep(&rest, " :")) != NULL;) {
        const struct mapping *mapping = *entry ? find_mapping(patient, basename(entry)) : NULL;
        struct ct_elf elf;
        struct ct_elf_names names = { 0 };
        if (strncmp(basename(entry), "libcudatrace.so", strlen("libcudatrace.so")) == 0)
            break;
        if (mapping && open_mapped(patient, mapping->path, &elf) == 0) {
            ct_elf_functions(&elf, ct_doctor_is_way_in, &names);
            ct_elf_close(&elf);
        }
        if (names.count > 0)
            MISS("LD_PRELOAD", "%s comes before the hook and implements %s itself: put the hook first",
                 mapping->path, names.name[0]);
        ct_elf_names_free(&names);
    }
    free(list);
}

/* ---- the CUDA libraries in the process ---- */

static void check_driver(struct ct_doctor *doctor, const struct ct_patient *patient,
                         const struct mapping *driver)
{
    char path[PATH_MAX];
    below_root(patient, driver->path, path);
    const bool same = is_same_file(path, doctor->driver_path);
    FINE("driver", "%s%s", driver->path, driver->deleted ? ", which has been replaced on disk" : "");
    struct ct_elf elf;
    struct ct_elf_names names = { 0 };
    if (same || open_mapped(patient, driver->path, &elf) != 0)
        return;
    if (ct_elf_functions(&elf, ct_doctor_is_driver_name, &names) == 0)
        ct_doctor_compare(doctor, &names);
    ct_elf_names_free(&names);
    ct_elf_close(&elf);
}

static bool is_driver(const struct mapping *mapping)
{
    static const char name[] = "libcuda.so";
    const char *rest = basename(mapping->path);
    return strncmp(rest, name, strlen(name)) == 0 &&
           (rest[strlen(name)] == '\0' || rest[strlen(name)] == '.');
}

/* Reports drivers other than the first one. dlmopen() may load the same file twice. */
static void check_other_drivers(struct ct_doctor *doctor, const struct ct_patient *patient,
                                const struct mapping *driver, unsigned recorded)
{
    unsigned count = 1;
    for (size_t i = 0; i < patient->mapping_count; i++)
        count += &patient->mappings[i] != driver && is_driver(&patient->mappings[i]);
    for (size_t i = 0; i < patient->mapping_count && recorded > 0; i++) {
        const struct mapping *other = &patient->mappings[i];
        if (other == driver || !is_driver(other))
            continue;
        if (count > recorded)
            MISS("drivers", "%s is loaded in addition to %s: only the first %u that were loaded are traced",
                 other->path, driver->path, recorded);
        else
            NOTE("drivers",
                 "%s is loaded in addition to %s: calls to the later one are traced without their details",
                 other->path, driver->path);
    }
}

static void check_runtimes(struct ct_doctor *doctor, const struct ct_patient *patient)
{
    for (size_t i = 0; i < patient->mapping_count; i++) {
        const char *path = patient->mappings[i].path;
        struct ct_elf elf;
        if (strncmp(basename(path), "libcudart", strlen("libcudart")) != 0 ||
            open_mapped(patient, path, &elf) != 0)
            continue;
        if (elf.soname)
            ct_doctor_runtime(doctor, path, elf.soname);
        ct_elf_close(&elf);
    }
}

/* Returns the first mapped file that is linked with the driver, or NULL if there is none. */
static const char *find_linked(const struct ct_patient *patient)
{
    for (size_t i = 0; i < patient->mapping_count; i++) {
        struct ct_elf elf;
        bool linked = false;
        if (open_mapped(patient, patient->mappings[i].path, &elf) != 0)
            continue;
        for (const char **needed = elf.needed; needed && *needed; needed++)
            linked = linked || strcmp(*needed, "libcuda.so.1") == 0;
        ct_elf_close(&elf);
        if (linked)
            return patient->mappings[i].path;
    }
    return NULL;
}

static void say_way_in(struct ct_doctor *doctor, const struct ct_patient *patient, const char *asks)
{
    const char *linked = find_linked(patient);
    if (asks)
        FINE("way in", "it looks up functions by %s, as libcudart does%s%s", asks,
             linked ? "; linked with the driver as well: " : "", linked ? linked : "");
    else if (linked)
        FINE("way in", "linked: %s needs libcuda.so.1", linked);
    else if (find_mapping(patient, "libcudart.so."))
        FINE("way in", "by libcudart, which looks up functions by cuGetProcAddress");
    else
        FINE("way in", "by dlopen and dlsym: nothing in it is linked with libcuda.so.1");
}

/* ---- its surroundings ---- */

/* Checks that the process belongs to the session that the user named. Returns false after reporting that the
 * process belongs to another session. */
static bool check_session(struct ct_doctor *doctor, const struct ct_patient *patient, const char *own)
{
    if (!ct_session_valid(own))
        MISS("session",
             "its " CT_SESSION_ENV " is '%.100s', which is not a valid session name: it records nothing",
             own);
    else if (strcmp(own, doctor->session) != 0)
        MISS("session",
             "it belongs to session %s and not to %s, so it will not be in the latter's trace: cudatrace "
             "doctor --session %s %d",
             own, doctor->session, own, (int)patient->pid);
    if (!ct_session_valid(own) || strcmp(own, doctor->session) != 0)
        return false;
    /* The pid of a daemon in another container has no meaning in our namespace. */
    struct ct_proc_stat daemon;
    const bool known =
        doctor->daemon_pid && !doctor->shm_is_its_own && ct_proc_stat(doctor->daemon_pid, &daemon) == 0;
    if (known && daemon.start_ticks > patient->start_ticks)
        NOTE("before", "the daemon started %.1f s after the process: earlier calls are not in its trace",
             (double)(daemon.start_ticks - patient->start_ticks) / (double)sysconf(_SC_CLK_TCK));
    return true;
}

/* Reports whether the process has its own shared memory folder, in which case a daemon outside its container
 * cannot find it. */
static void check_namespaces(struct ct_doctor *doctor, const struct ct_patient *patient)
{
    if (doctor->shm_is_its_own)
        ct_doctor_say(doctor, doctor->daemon_pid ? CT_VERDICT_NOTE : CT_VERDICT_MISS, "container",
                      "it has its own %s, so only a daemon in its container finds it: start one there, or "
                      "share %s (docker run --ipc=host), or a directory for --shm-dir",
                      doctor->choice.shm_dir, doctor->choice.shm_dir);
    else if (patient->own_pid != patient->pid)
        NOTE("container", "its own process ID is %d, and the trace uses that", patient->own_pid);
}

void ct_doctor_process(struct ct_doctor *doctor)
{
    const struct ct_patient *patient = doctor->patient;
    enum { COMMAND_SHOWN = 120 };
    ct_doctor_head("Process %d: %.*s", (int)patient->pid, COMMAND_SHOWN,
                   patient->command && *patient->command ? patient->command : "(no command line)");
    if (patient->ended) {
        NOTE("state", "it is a zombie: its parent has not waited for it");
        return;
    }
    if (patient->mapping_count == 0) {
        NOTE("state", "it is a kernel thread: it makes no CUDA calls");
        return;
    }
    const char *session = variable(patient, CT_SESSION_ENV);
    session = session && *session ? session : CT_SESSION_DEFAULT;
    const struct mapping *driver = find_mapping(patient, "libcuda.so.");
    char hindrance[CT_HINDRANCE_BYTES];
    ct_hindrance_find(patient->pid, patient->thread, doctor->uid, doctor->choice.shm_dir, hindrance);
    struct ct_traced traced = { .pid = patient->own_pid,
                                .uid = doctor->uid,
                                .session = doctor->session,
                                .start_ticks = patient->start_ticks,
                                .driver_loaded = driver != NULL,
                                .hindrance = hindrance };
    const bool hooked = check_hook(doctor, patient, ct_doctor_is_probed(doctor, &traced));
    struct ct_recorded recorded = { 0 };
    if (hooked) {
        check_preloaded(doctor, patient);
        check_namespaces(doctor, patient);
    }
    if (!hooked || check_session(doctor, patient, session)) {
        traced.session = hooked ? session : doctor->session;
        traced.hooked = hooked;
        ct_doctor_segment(doctor, &traced, &recorded);
    }
    if (driver) {
        check_driver(doctor, patient, driver);
        check_runtimes(doctor, patient);
        if (hooked) {
            check_other_drivers(doctor, patient, driver, recorded.drivers);
            say_way_in(doctor, patient, recorded.way_in);
        }
    } else {
        FINE("driver", "libcuda.so.1 is not loaded: it has made no CUDA call yet");
    }
}
