#include "probe_options.h"

#include "duration.h"
#include "elf_reader.h"
#include "number.h"
#include "own_path.h"
#include "proc_file.h"
#include "session_names.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool take_pid(const struct ct_option *option, const char *value)
{
    struct ct_probe_options *options = option->to;
    int64_t pid;
    if (options->pids == CT_PROBE_PIDS_MAX || !ct_number_parse(value, 1, INT32_MAX, &pid))
        return false;
    options->pid[options->pids++] = (pid_t)pid;
    return true;
}

static bool take_children(const struct ct_option *option, const char *value)
{
    struct ct_probe_options *options = option->to;
    int64_t pid;
    if (!ct_number_parse(value, 1, INT32_MAX, &pid))
        return false;
    options->children = (pid_t)pid;
    return true;
}

static bool take_library(const struct ct_option *option, const char *value)
{
    struct ct_probe_options *options = option->to;
    if (options->named_files == CT_PROBE_FILES_MAX)
        return false;
    options->named_file[options->named_files++] = value;
    return true;
}

static bool take_pattern(const struct ct_option *option, const char *value)
{
    struct ct_probe_options *options = option->to;
    if (options->patterns == CT_PROBE_PATTERNS_MAX || *value == '\0')
        return false;
    options->pattern[options->patterns++] = value;
    return true;
}

bool ct_probe_take_hook(const struct ct_option *option, const char *value)
{
    struct ct_probe_options *options = option->to;
    if (options->hook_lines == CT_PROBE_HOOKS_MAX || strchr(value, '\n'))
        return false;
    options->hook[options->hook_lines++] = value;
    return true;
}

static bool is_library(const char *path)
{
    struct ct_elf elf;
    const int error = ct_elf_open(&elf, path);
    const bool is_native = !error && elf.native;
    if (!error)
        ct_elf_close(&elf);
    if (is_native)
        return true;
    return ct_fail(false, "probe: --library %s: not a library for this processor%s%s", path,
                   error && error != -ENOEXEC ? ": " : "",
                   error && error != -ENOEXEC ? strerror(-error) : "");
}

int ct_probe_check_table(struct ct_probe_options *options, const char *command)
{
    struct stat status;
    if (options->hooks && strcmp(options->hooks, "/dev/stdin") == 0)
        options->hooks = "-";
    if (!options->hooks || strcmp(options->hooks, "-") == 0)
        return CT_GO_ON;
    const int error = stat(options->hooks, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
    if (!error && S_ISREG(status.st_mode))
        return CT_GO_ON;
    return ct_fail(EXIT_USAGE, "%s: --hooks %s: %s", command, options->hooks,
                   error ? strerror(error) : "not a regular file");
}

static int check_table(struct ct_probe_options *options)
{
    if (!options->hooks && options->hook_lines == 0 && (options->dry_run || options->bpftrace))
        return ct_fail(EXIT_USAGE, "probe: --%s needs --hooks FILE or --hook LINE",
                       options->dry_run ? "dry-run" : "bpftrace");
    return ct_probe_check_table(options, "probe");
}

/* Makes the path absolute. */
static int settle_shm_dir(struct ct_probe_options *options)
{
    static char absolute[PATH_MAX];
    struct stat status;
    const int error = !realpath(options->shm_dir, absolute) || stat(absolute, &status) != 0 ? errno
                      : S_ISDIR(status.st_mode)                                             ? 0
                                                                                            : ENOTDIR;
    if (error)
        return ct_fail(EXIT_USAGE, "probe: --shm-dir '%s': %s", options->shm_dir, strerror(error));
    options->shm_dir = absolute;
    return CT_GO_ON;
}

static int check_process(const char *option, pid_t pid)
{
    char status[4096];
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return ct_fail(EXIT_FAILURE, "probe: no such process: %d", (int)pid);
    const char *line =
        ct_proc_read(pid, "status", status, sizeof(status)) == 0 ? strstr(status, "\nTgid:") : NULL;
    const int process = line ? atoi(line + strlen("\nTgid:")) : 0;
    if (process > 0 && process != pid)
        return ct_fail(EXIT_FAILURE, "probe: %d is a thread of process %d: use --%s with the process",
                       (int)pid, process, option);
    return CT_GO_ON;
}

/* --discover records nothing, so options for a recording would have no effect. */
static int check_discovering(struct ct_probe_options *options)
{
    static const char driver[] = "nvidia,nvidia_uvm,nvidia_drm,nvidia_modeset";
    if (!options->discover && options->save)
        return ct_fail(EXIT_USAGE, "probe: --save %s needs --discover", options->save);
    if (!options->discover && options->modules)
        return ct_fail(EXIT_USAGE, "probe: --modules %s needs --discover", options->modules);
    if (!options->discover)
        return CT_GO_ON;
    if (options->all || options->children || options->hooked || options->pids > 0 || options->hooks ||
        options->hook_lines > 0 || options->patterns > 0)
        return ct_fail(EXIT_USAGE,
                       "probe: --discover follows only COMMAND: omit --all, --children, --hooked, "
                       "--pid, --hooks, --hook and --list");
    if (!options->command)
        return ct_fail(EXIT_USAGE,
                       "probe: --discover needs a command: cudatrace probe --discover -- COMMAND");
    if (!options->modules)
        options->modules = driver;
    return CT_GO_ON;
}

/* COMMAND is started and probed by `cudatrace run --probe`, which has only some of the options. */
static int check_command(const struct ct_probe_options *options)
{
    const struct {
        bool is_given;
        const char *option;
    } others[] = {
        { options->pids > 0, "pid" },
        { options->all, "all" },
        { options->children > 0, "children" },
        { options->hooked, "hooked" },
        { options->named_files > 0, "library" },
        { options->only != NULL, "only" },
        { options->dry_run, "dry-run" },
        { options->bpftrace, "bpftrace" },
        { options->patterns > 0, "list" },
        { options->for_ns != 0, "for" },
        { options->method != 0, "method" },
        { options->verbose, "verbose" },
    };
    const char *command = options->command[0];
    if (command[strspn(command, "0123456789")] == '\0')
        return ct_fail(EXIT_USAGE, "probe: unknown argument '%s': use --pid with a process", command);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (others[i].is_given)
            return ct_fail(EXIT_USAGE, "probe: --%s cannot be combined with the command '%s'",
                           others[i].option, command);
    }
    return CT_GO_ON;
}

/* Checks that the options are consistent, and that the given processes, libraries and directory exist. */
static int check(struct ct_probe_options *options)
{
    if (!options->session)
        options->session = getenv(CT_SESSION_ENV);
    if (!options->session || !*options->session)
        options->session = CT_SESSION_DEFAULT;
    if (!ct_session_valid(options->session))
        return ct_fail(EXIT_USAGE,
                       "probe: invalid session name '%s': use 1 to 48 letters, digits, '-' or '_'",
                       options->session);
    const char *dir = options->shm_dir ? options->shm_dir : getenv(CT_SHM_DIR_ENV);
    const char *why = dir ? ct_own_path_check_folder(dir) : NULL;
    if (why)
        return ct_fail(EXIT_FAILURE, "probe: --shm-dir %s: %s", dir, why);
    const int settled = options->shm_dir ? settle_shm_dir(options) : CT_GO_ON;
    if (settled != CT_GO_ON)
        return settled;
    if (!options->shm_dir)
        options->shm_dir = getenv(CT_SHM_DIR_ENV);
    if (!options->shm_dir || !*options->shm_dir)
        options->shm_dir = CT_SHM_DIR;
    for (size_t i = 0; i < options->named_files; i++) {
        if (!is_library(options->named_file[i]))
            return EXIT_USAGE;
    }
    const int discovering = check_discovering(options);
    if (discovering != CT_GO_ON || options->discover)
        return discovering;
    if (options->command)
        return check_command(options);
    if (options->print || options->relative)
        return ct_fail(EXIT_USAGE,
                       "probe: --%s needs COMMAND: `cudatrace tail` prints the calls of running processes",
                       options->print ? "print" : "relative");
    const int table = check_table(options);
    if (table != CT_GO_ON || options->dry_run || options->bpftrace)
        return table;
    if (options->patterns > 0 &&
        (options->all || options->children || options->hooked || options->hooks || options->hook_lines > 0))
        return ct_fail(EXIT_USAGE, "probe: --list records nothing: omit --%s",
                       options->all        ? "all"
                       : options->children ? "children"
                       : options->hooked   ? "hooked"
                       : options->hooks    ? "hooks"
                                           : "hook");
    if (options->patterns == 0 &&
        (options->pids > 0) + (options->children > 0) + options->all + options->hooked != 1)
        return ct_fail(EXIT_USAGE,
                       "probe: specify either --pid PID, --all, --children PID, --hooked or COMMAND "
                       "(see cudatrace probe --help)");
    if (options->hooked && !options->kernel_events && !options->ioctls && !options->hooks &&
        options->hook_lines == 0)
        return ct_fail(EXIT_USAGE, "probe: --hooked needs --kernel, --ioctls, --hooks FILE or --hook LINE");
    int status = options->children ? check_process("children", options->children) : CT_GO_ON;
    for (size_t i = 0; i < options->pids && status == CT_GO_ON; i++)
        status = check_process("pid", options->pid[i]);
    options->all |= options->children > 0;
    return status;
}

int ct_probe_options_parse(int argc, char **argv, struct ct_probe_options *options)
{
    *options = (struct ct_probe_options){ .selecting.selection = ct_selection_everything() };
    const struct ct_option table[] = {
        { "pid", "PID", "probe this process; may be repeated", options, .take = take_pid,
          .wrong = "expected a process ID; at most 256 are possible", .or_next = true },
        { "all", NULL, "probe every process, including those that start later", &options->all,
          .or_next = true },
        { "children", "PID", "probe the processes that this process starts from now on, and their children",
          options, .take = take_children, .wrong = "expected a process ID", .or_next = true },
        { "hooked", NULL,
          "probe no driver calls, and record only events inside the calls of processes that\n"
          "the hook records into the session, including those that start later",
          &options->hooked },
        { "library", "FILE",
          "a copy of libcuda.so in an unusual place, which processes may load later;\n"
          "may be repeated",
          options, .take = take_library, .wrong = "at most 16 libraries are possible" },
        { "only", "PATTERN", "only libraries whose path matches, such as '/opt/cuda/*' (default: all)",
          &options->only, ct_take_name, "expected a pattern" },
        CT_OPTION_CALLS(&options->selecting,
                        "probe these functions, by pattern, with '!' before those to exclude; the last\n"
                        "match decides: 'cuMem*,!cuMemGetInfo*' (default: every function of the driver)"),
        CT_OPTIONS_OF_EVENTS(options,
                             "also record functions of libraries and of the kernel, and tracepoints, as the\n"
                             "lines of this table choose them (layer hook); SIGHUP reads the table again;\n"
                             "- is standard input (default: /etc/cudatrace/hooks, if it exists)"),
        { "print", NULL, "print the calls of COMMAND as they return, like `cudatrace tail`",
          &options->print },
        { "relative", NULL, "print the seconds since the first line instead of the time of day",
          &options->relative },
        { "dry-run", NULL,
          "check the table of --hooks and --hook, find its functions and tracepoints, and\n"
          "record nothing",
          &options->dry_run },
        { "bpftrace", NULL, "print this table as a script for bpftrace, and record nothing",
          &options->bpftrace },
        { "list", "PATTERN",
          "print what a line of such a table can name, and record nothing; may be repeated:\n"
          "'nv*', 'kprobe:nvidia_*', 'tracepoint:sched:*', 'uprobe:/opt/*.so:run*', or with\n"
          "--pid, 'uprobe:libcudart*:cuda*'; with --verbose, prints lines for a table",
          options, .take = take_pattern, .wrong = "expected a pattern; at most 64 are possible" },
        { "discover", NULL,
          "run COMMAND, and print the functions of the driver's kernel modules that it\n"
          "calls, with counts, as such a table; record nothing",
          &options->discover },
        { "modules", "LIST",
          "the modules for --discover\n"
          "(default: nvidia,nvidia_uvm,nvidia_drm,nvidia_modeset)",
          &options->modules, ct_take_name, "expected names of modules, separated by commas" },
        { "order", "ORDER", "sort that table by first call or by number of calls (default: first)",
          &options->order, ct_take_choice, "expected first or calls", .choices = "first|calls" },
        { "save", "FILE", "write that table to FILE (default: standard error)", &options->save, ct_take_name,
          "expected a file" },
        { "for", "DURATION", "stop after this time: 30s, 10m or 24h (default: at Ctrl-C)", &options->for_ns,
          ct_take_duration, CT_DURATION_WRONG },
        { "session", "NAME", "record into this session (default: $CUDATRACE_SESSION, or default)",
          &options->session, ct_take_name, "expected a name" },
        { "shm-dir", "DIR", "the directory of its shared memory (default: $CUDATRACE_SHM_DIR, or /dev/shm)",
          &options->shm_dir, ct_take_name, "expected a directory" },
        { "method", "METHOD",
          "how to attach probes: session (Linux 6.13), multi (6.6) or event; if the kernel\n"
          "lacks one, the next is tried (default: session)",
          &options->method, ct_take_choice, "expected session, multi or event",
          .choices = "session|multi|event" },
        { "verbose", NULL,
          "print the method, its cost per call, the time to attach, and at the end the cost\n"
          "of the BPF programs and the number of events",
          &options->verbose, .letter = 'v' },
        { 0 }
    };
    const struct ct_usage usage = {
        .options = table,
        .arguments = "[[--] COMMAND [ARGUMENT…]]",
        .runs_command = true,
        .about = "Records driver calls of running processes by eBPF. It loads nothing into a process, and\n"
                 "changes nothing in it. It needs root, or CAP_BPF and CAP_PERFMON. A daemon must serve the\n"
                 "session; the probe waits for one. With COMMAND, it starts a daemon if there is none, as\n"
                 "`cudatrace run` does, and records COMMAND and the processes that it starts. Only --calls,\n"
                 "--kernel, --ioctls, --hooks, --hook, --print, --relative, --session and --shm-dir can\n"
                 "precede COMMAND.\n",
        .more =
            "A call costs about a microsecond more; `cudatrace attach` costs less. Durations are corrected\n"
            "for the cost of the probe itself. Processes that the hook records are skipped.\n"
            "The probe ends with Ctrl-C, or with the last process of --pid. --dry-run, --bpftrace, --list\n"
            "and --discover need no daemon, and none of --pid, --all, --children and --hooked.\n"
            "Exit status: 0, 1 for a failure, 2 for wrong usage; with COMMAND, its status.\n",
    };
    int first;
    int status = ct_options_parse(argc, argv, &usage, &first);
    if (status == CT_GO_ON && first < argc)
        options->command = argv + first;
    return status == CT_GO_ON ? check(options) : status;
}
