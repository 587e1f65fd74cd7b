/* The main program of cudatraced: parses options, starts in the background, and returns the exit status. */
#include "database.h"
#include "file_sources.h"
#include "gpu_source.h"
#include "log.h"
#include "own_path.h"
#include "page_cache.h"
#include "private_file.h"
#include "real_user.h"
#include "segment.h"
#include "service.h"
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_USAGE = 2 };
#define SIZE_BYTES_MAX   ((uint64_t)1 << 50)
#define MAX_DB_BYTES_MIN ((uint64_t)16 << 20)

static const char help[] =
    "Usage: cudatraced [--db FILE] [--session NAME] [--shm-dir DIR] [--foreground]\n"
    "                  [--ring SIZE] [--keep DURATION] [--max-db SIZE] [--clock NAME]\n"
    "                  [--gpu-samples INTERVAL] [--workers N] [--log-level LEVEL] [--auto]\n"
    "                  [--group NAME] [--system] [--record FILE]\n"
    "       cudatraced [--db FILE] [--max-db SIZE] --replay FILE...\n"
    "\n"
    "Collects the CUDA calls of all processes that have libcudatrace.so preloaded and belong\n"
    "to the session, and stores them in a SQLite database while they run.\n"
    "\n"
    "  --db FILE         the database; created if it does not exist (default: ./trace.db)\n"
    "  --session NAME    the session: 1 to 48 letters, digits, '-' or '_' (default:\n"
    "                    $CUDATRACE_SESSION, or default)\n"
    "  --shm-dir DIR     the directory of the session's shared memory and socket, preferably a\n"
    "                    tmpfs; containers with access to it share the session\n"
    "                    (default: $CUDATRACE_SHM_DIR, or /dev/shm)\n"
    "  --foreground      stay in the foreground, and log to standard error\n"
    "  --ring SIZE       the maximum size of a traced thread's ring, a power of two from 64K to\n"
    "                    1G. A ring grows if calls wait to be stored and there is room, and\n"
    "                    shrinks again (default: 512M)\n"
    "  --keep DURATION   delete calls that returned longer ago than this: 90s, 10m, 24h or 7d.\n"
    "                    Sums still contain these calls (default: keep all)\n"
    "  --max-db SIZE     limit the trace on disk to this size, such as 500M or 20G. It continues\n"
    "                    in numbered files next to FILE, which `cudatrace sql` reads as one,\n"
    "                    and the oldest files are deleted (default: one file without limit)\n"
    "  --gpu-samples INTERVAL\n"
    "                    how often to sample each GPU while processes are traced: 100ms to 60s, or\n"
    "                    off (default: 1s)\n"
    "  --workers N       the number of threads that store calls, 1 or 2 (default: 2 if there are\n"
    "                    eight processors or more)\n"
    "  --clock NAME      the clock for times of calls: counter (the processor's) or monotonic\n"
    "                    (the kernel's; default: counter if the kernel trusts it)\n"
    "  --log-level LEVEL log error, warning, notice, info or debug, and all more severe levels\n"
    "                    (default: notice)\n"
    "  --auto            exit when the last `cudatrace run` that uses the daemon has ended\n"
    "  --group NAME      allow members of this group to read the database (default: only its\n"
    "                    owner)\n"
    "  --system          collect for all users whose processes find no daemon of their own in\n"
    "                    this session; requires root\n"
    "  --record FILE     also write everything that is stored to FILE, for --replay on any machine\n";

static const char help_end[] =
    "  --help, --version\n"
    "\n"
    "Without --foreground, the command returns when the daemon serves the session, and the\n"
    "daemon logs to FILE.log. In the foreground, it reports its state to a service manager\n"
    "(see sd_notify(3)). `cudatrace stop` or SIGTERM stops the daemon, after it has stored all\n"
    "recorded calls.\n"
    "Exit status: 0, 1 for a failure, 2 for wrong usage.\n";

/* Prints one line on standard error, even if the text quotes a path that contains newlines. */
static void say(const char *text)
{
    char line[CT_MESSAGE_BYTES * 4 + 64];
    ct_log_printable(text, line, sizeof(line));
    fprintf(stderr, "cudatraced: %s\n", line);
}

__attribute__((format(printf, 1, 2))) static int wrong(const char *format, ...)
{
    char text[CT_MESSAGE_BYTES];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    length = (size_t)length < sizeof(text) ? length : (int)sizeof(text) - 1;
    snprintf(text + length, sizeof(text) - (size_t)length, " (see cudatraced --help)");
    say(text);
    return EXIT_USAGE;
}

/* Converts a size such as "1M" to bytes. Returns 0 for an invalid size. */
static uint64_t parse_size(const char *text)
{
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    uint64_t unit = 1;
    if (*end == 'K' || *end == 'k')
        unit = 1024;
    else if (*end == 'M' || *end == 'm')
        unit = 1024 * 1024;
    else if (*end == 'G' || *end == 'g')
        unit = 1024 * 1024 * 1024;
    if (unit > 1)
        end++;
    if (errno || text[0] < '0' || text[0] > '9' || *end || number > SIZE_BYTES_MAX / unit)
        return 0;
    return number * unit;
}

/* Converts a duration such as "10m" to nanoseconds. Returns 0 unless it is between one second and ten
 * years. */
static uint64_t parse_duration(const char *text)
{
    static const struct {
        char unit;
        uint64_t seconds;
    } units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 } };
    const uint64_t seconds_max = UINT64_C(3653) * 86400;
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno || text[0] < '0' || text[0] > '9' || !*end || end[1])
        return 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (*end == units[i].unit && number <= seconds_max / units[i].seconds)
            return number * units[i].seconds * 1000000000;
    }
    return 0;
}

static unsigned parse_workers(const char *text)
{
    const unsigned number = (unsigned)(text[0] - '0');
    return number >= 1 && number <= CT_WORKERS_MAX && !text[1] ? number : 0;
}

/* Returns a quarter of the available processors, but at least 1 and at most CT_WORKERS_MAX. The tests in
 * tests/faults use two workers, because two workers can fail at more points than one. */
static unsigned usual_workers(void)
{
#ifdef CT_WORKERS_USUAL
    return CT_WORKERS_USUAL;
#else
    const unsigned workers = uv_available_parallelism() / 4;
    return workers < 1 ? 1 : workers > CT_WORKERS_MAX ? CT_WORKERS_MAX : workers;
#endif
}

/* Accepts a group's name or number. */
static bool parse_group(const char *text, struct ct_private_readers *readers)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    const struct group *group = getgrnam(text);
    if (!group && (text[0] < '0' || text[0] > '9' || *end || number >= UINT32_MAX))
        return false;
    *readers = (struct ct_private_readers){ .mode = 0640, .group = group ? group->gr_gid : (gid_t)number };
    return true;
}

/* ---- the command line ---- */

/* The settings from the command line and the environment. The pointers to paths in `options` refer to this
 * struct's own arrays. */
struct command_line {
    const char *database, *record, *shm_dir; /* as given; `record` and `shm_dir` may be NULL */
    struct ct_private_readers readers;
    const struct ct_file_source *source; /* the kind of the files to store; NULL to serve a session */
    char **files;
    size_t file_count;
    struct ct_daemon_options options;
    char database_path[4096], log_path[4200], record_path[4096], shm_path[CT_SHM_DIR_BYTES];
};

static bool set_database(struct command_line *line, const char *value)
{
    line->database = value;
    return true;
}

static bool set_session(struct command_line *line, const char *value)
{
    line->options.session = value;
    return true;
}

static bool set_shm_dir(struct command_line *line, const char *value)
{
    line->shm_dir = value;
    return *value;
}

static bool set_foreground(struct command_line *line, const char *value)
{
    (void)value;
    line->options.foreground = true;
    return true;
}

static bool set_ring(struct command_line *line, const char *value)
{
    line->options.ring_bytes = parse_size(value);
    return ct_ring_bytes_valid(line->options.ring_bytes);
}

static bool set_keep(struct command_line *line, const char *value)
{
    line->options.bounds.keep_ns = parse_duration(value);
    return line->options.bounds.keep_ns != 0;
}

static bool set_max_db(struct command_line *line, const char *value)
{
    line->options.bounds.max_bytes = parse_size(value);
    return line->options.bounds.max_bytes >= MAX_DB_BYTES_MIN;
}

static bool set_gpu_samples(struct command_line *line, const char *value)
{
    return ct_gpu_interval_parse(value, &line->options.gpu_interval_ns);
}

static bool set_clock(struct command_line *line, const char *value)
{
    const bool is_counter = strcmp(value, "counter") == 0;
    line->options.clock = is_counter ? CT_CLOCK_COUNTER : CT_CLOCK_MONOTONIC;
    return is_counter || strcmp(value, "monotonic") == 0;
}

static bool set_log_level(struct command_line *line, const char *value)
{
    (void)line;
    enum ct_log_level level;
    if (!ct_log_parse_level(value, &level))
        return false;
    ct_log_set_level(level);
    return true;
}

static bool set_auto(struct command_line *line, const char *value)
{
    (void)value;
    line->options.leave_when_unused = true;
    return true;
}

static bool set_group(struct command_line *line, const char *value)
{
    return parse_group(value, &line->readers);
}

static bool set_system(struct command_line *line, const char *value)
{
    (void)value;
    line->options.system = true;
    return true;
}

static bool set_record(struct command_line *line, const char *value)
{
    line->record = value;
    return true;
}

static bool set_workers(struct command_line *line, const char *value)
{
    line->options.workers = parse_workers(value);
    return line->options.workers != 0;
}

static bool print_help(struct command_line *line, const char *value)
{
    (void)line, (void)value;
    fputs(help, stdout);
    for (size_t i = 0; ct_file_sources[i]; i++)
        fputs(ct_file_sources[i]->help, stdout);
    fputs(help_end, stdout);
    exit(EXIT_SUCCESS);
}

static bool print_version(struct command_line *line, const char *value)
{
    (void)line, (void)value;
    puts("cudatraced " CUDATRACE_VERSION);
    exit(EXIT_SUCCESS);
}

/* The daemon's options. In addition, each kind of file source has its own option. */
static const struct option_row {
    const char *name;
    int has_value;                                             /* as in struct option */
    bool (*set)(struct command_line *line, const char *value); /* returns false if the value is invalid */
    const char *problem; /* the error for an invalid value; NULL if all are valid */
} option_rows[] = {
    { "db", required_argument, set_database, NULL },
    { "session", required_argument, set_session, NULL },
    { "shm-dir", required_argument, set_shm_dir, "expected a directory" },
    { "foreground", no_argument, set_foreground, NULL },
    { "ring", required_argument, set_ring, "expected a power of two from 64K to 1G" },
    { "keep", required_argument, set_keep,
      "expected a duration from 1s to 3653d, such as 90s, 10m, 24h or 7d" },
    { "max-db", required_argument, set_max_db, "expected a size of 16M or more, such as 500M or 20G" },
    { "gpu-samples", required_argument, set_gpu_samples, "expected an interval from 100ms to 60s, or off" },
    { "clock", required_argument, set_clock, "expected counter or monotonic" },
    { "log-level", required_argument, set_log_level, "expected error, warning, notice, info or debug" },
    { "auto", no_argument, set_auto, NULL },
    { "group", required_argument, set_group, "no such group" },
    { "system", no_argument, set_system, NULL },
    { "record", required_argument, set_record, NULL },
    { "workers", required_argument, set_workers, "expected 1 or 2" },
    { "help", no_argument, print_help, NULL },
    { "version", no_argument, print_version, NULL },
};

enum {
    OPTION_ROWS = sizeof(option_rows) / sizeof(option_rows[0]),
    /* getopt_long() returns one of these values plus an index in `option_rows` or `ct_file_sources`. These
     * values are greater than the characters that getopt_long() may also return. */
    FIRST_ROW = 256,
    FIRST_SOURCE = FIRST_ROW + OPTION_ROWS,
    KNOWN_MAX = 32,
};

static void list_options(struct option known[KNOWN_MAX])
{
    for (int i = 0; i < OPTION_ROWS; i++)
        *known++ = (struct option){ option_rows[i].name, option_rows[i].has_value, NULL, FIRST_ROW + i };
    for (int i = 0; ct_file_sources[i]; i++)
        *known++ = (struct option){ ct_file_sources[i]->name, no_argument, NULL, FIRST_SOURCE + i };
}

static void set_defaults(struct command_line *line)
{
    const char *session = getenv(CT_SESSION_ENV);
    *line = (struct command_line){ .database = "trace.db",
                                   .shm_dir = getenv(CT_SHM_DIR_ENV),
                                   .readers = CT_PRIVATE,
                                   .options = { .session = session && *session ? session : CT_SESSION_DEFAULT,
                                                .ring_bytes = CT_RING_BYTES_DEFAULT,
                                                .gpu_interval_ns = CT_GPU_INTERVAL_DEFAULT_NS,
                                                .workers = usual_workers(),
                                                .starter = -1,
                                                .clock = CT_CLOCK_CHOSEN } };
}

/* Each of the following functions returns 0, or prints the error and returns the exit status. */

static int read_options(struct command_line *line, int argc, char **argv)
{
    struct option known[KNOWN_MAX] = { 0 };
    list_options(known);
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        if (option == ':')
            return wrong("option '%s' requires a value", argv[optind - 1]);
        if (option == '?')
            return wrong("unknown option %s", argv[optind - 1]);
        if (option == 'h')
            print_help(line, NULL);
        if (option >= FIRST_SOURCE) {
            line->source = ct_file_sources[option - FIRST_SOURCE];
            continue;
        }
        const struct option_row *row = &option_rows[option - FIRST_ROW];
        if (!row->set(line, optarg))
            return wrong("invalid value '%s' for --%s: %s", optarg, row->name, row->problem);
    }
    line->files = argv + optind;
    line->file_count = (size_t)(argc - optind);
    return 0;
}

/* Checks that the options and the files can be combined. */
static int check_combination(const struct command_line *line)
{
    const struct ct_daemon_options *options = &line->options;
    if (line->source && line->file_count == 0)
        return wrong("--%s requires a file", line->source->name);
    if (!line->source && line->file_count > 0)
        return wrong("unexpected argument '%s'", line->files[0]);
    if (!ct_session_valid(options->session))
        return wrong("invalid session name '%s': use 1 to 48 letters, digits, '-' or '_'", options->session);
    if (options->system && options->leave_when_unused)
        return wrong("--system cannot be combined with --auto");
    if (options->system && ct_real_euid() != 0) {
        fputs("cudatraced: --system requires root\n", stderr);
        return EXIT_FAILURE;
    }
    return 0;
}

/* Makes the path absolute, because the daemon changes its working directory. The file need not exist. Returns
 * NULL on success, or the reason for the failure. */
static const char *absolute(const char *path, char *out, size_t bytes)
{
    char cwd[4096] = "";
    if (path[0] != '/' && !getcwd(cwd, sizeof(cwd)))
        return errno == ENOENT
                   ? "the current directory was deleted: change to another one, or use an absolute path"
                   : strerror(errno);
    const int n = snprintf(out, bytes, "%s%s%s", cwd, path[0] == '/' ? "" : "/", path);
    return n > 0 && (size_t)n < bytes ? NULL : "the path is too long";
}

static int refuse(const char *option, const char *path, const char *why, int status)
{
    char text[CT_MESSAGE_BYTES];
    snprintf(text, sizeof(text), "%s %s: %s", option, path, why);
    say(text);
    return status;
}

/* Writes the absolute path of a file, without links in its folder. */
static int place_file(const char *option, const char *path, char *out, size_t bytes)
{
    if (!*path)
        return wrong("invalid value '%s' for %s: expected a file name", path, option);
    const char *why = absolute(path, out, bytes);
    if (why)
        return refuse(option, path, why, EXIT_USAGE);
    why = ct_own_path_resolve(out, bytes);
    return why ? refuse(option, path, why, EXIT_FAILURE) : 0;
}

static int place_database(struct command_line *line)
{
    const int status = place_file("--db", line->database, line->database_path, sizeof(line->database_path));
    line->options.database = line->database_path;
    ct_database_share(&line->readers);
    line->options.readers = line->readers.group;
    return status;
}

static int place_recording(struct command_line *line)
{
    if (!line->record)
        return 0;
    line->options.record = line->record_path;
    return place_file("--record", line->record, line->record_path, sizeof(line->record_path));
}

/* Keeps links in the path, because programs know the session by it. */
static int place_session(struct command_line *line)
{
    const char *dir = line->shm_dir && *line->shm_dir ? line->shm_dir : CT_SHM_DIR;
    const char *why = absolute(dir, line->shm_path, sizeof(line->shm_path));
    if (why)
        return refuse("--shm-dir", dir, why, EXIT_USAGE);
    why = ct_own_path_check_folder(line->shm_path);
    line->options.shm_dir = line->shm_path;
    return why ? refuse("--shm-dir", dir, why, EXIT_FAILURE) : 0;
}

/* In the background, the daemon logs to a file next to the database. */
static int place_log(struct command_line *line)
{
    char message[CT_MESSAGE_BYTES] = "", text[sizeof(message) + 64];
    snprintf(line->log_path, sizeof(line->log_path), "%s.log", line->database_path);
    if (line->options.foreground ||
        ct_private_own(line->log_path, &CT_PRIVATE, message, sizeof(message)) == 0)
        return 0;
    snprintf(text, sizeof(text), "%s; remove this log file, or name another database with --db", message);
    say(text);
    return EXIT_FAILURE;
}

/* ---- the process ---- */

/* Opens /dev/null on each standard descriptor that is closed. Otherwise, the database could be opened on the
 * descriptor of standard error, for example, and log lines would be written to the database. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* The parent of a background daemon reads a pipe and waits for one byte, which means that the daemon is
 * ready. If the pipe is closed without that byte, the daemon has failed and printed the error, and the parent
 * returns its exit status. */
struct readiness {
    int fd; /* -1 in the foreground */
    const char *log_path;
};

static void on_ready(void *data)
{
    const struct readiness *readiness = data;
    if (readiness->fd < 0)
        return;
    const char ready = 0;
    if (write(readiness->fd, &ready, 1) != 1)
        ct_log(CT_LOG_nobody_waited,
               "the process that started the daemon exited before the daemon served its session");
    close(readiness->fd);
    /* Redirect the log first, because the worker may log at any time. */
    ct_log_to(readiness->log_path);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    close(null);
}

static int run(const struct ct_daemon_options *options, const struct readiness *readiness)
{
    char message[CT_MESSAGE_BYTES] = "";
    const int status = ct_daemon_run(options, on_ready, (void *)(uintptr_t)readiness, message);
    if (message[0])
        say(message);
    return status;
}

static int run_in_background(struct ct_daemon_options *options, struct readiness *readiness)
{
    /* Close all descriptors inherited from the caller, such as a pipe or a lock that another process is
     * waiting for. */
    syscall(SYS_close_range, 3U, ~0U, 0U);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fprintf(stderr, "cudatraced: cannot create a pipe: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    const pid_t child = fork();
    if (child < 0) {
        fprintf(stderr, "cudatraced: cannot fork: %s\n", strerror(errno));
        return EXIT_FAILURE;
    }
    if (child == 0) {
        close(ends[0]);
        setsid();
        if (chdir("/") != 0)
            fprintf(stderr, "cudatraced: cannot change to the directory '/': %s\n", strerror(errno));
        readiness->fd = options->starter = ends[1];
        exit(run(options, readiness));
    }
    close(ends[1]);
    char ready;
    if (read(ends[0], &ready, 1) == 1)
        return EXIT_SUCCESS;
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int store_files(const struct command_line *line)
{
    return ct_file_sources_store(line->source, line->files, line->file_count, line->database_path,
                                 &line->options.bounds, say);
}

static int serve(struct command_line *line)
{
    struct ct_daemon_options *options = &line->options;
    int status = place_recording(line);
    if (!status)
        status = place_session(line);
    if (!status)
        status = place_log(line);
    if (status)
        return status;
    struct readiness readiness = { .fd = -1, .log_path = line->log_path };
    options->on_terminal = options->foreground && isatty(STDERR_FILENO);
    return options->foreground ? run(options, &readiness) : run_in_background(options, &readiness);
}

int main(int argc, char **argv)
{
    struct command_line line;
    open_standard_files();
    ct_page_cache_install();
    set_defaults(&line);
    int status = read_options(&line, argc, argv);
    if (!status)
        status = check_combination(&line);
    if (!status)
        status = place_database(&line);
    if (status)
        return status;
    signal(SIGXFSZ, SIG_IGN); /* makes a write past the file size limit fail, like a write to a full disk */
    return line.source ? store_files(&line) : serve(&line);
}
