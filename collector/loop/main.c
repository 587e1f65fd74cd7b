/* cudatraced: options, start in the background, exit status. */
#include "database.h"
#include "file_sources.h"
#include "log.h"
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
    "                  [--workers N] [--log-level LEVEL] [--auto] [--group NAME] [--system]\n"
    "                  [--record FILE]\n"
    "\n"
    "Collects the CUDA calls of all processes that have libcudatrace.so preloaded and belong\n"
    "to the session, and stores them in a SQLite database while they run.\n"
    "\n"
    "  --db FILE         the database; created if it does not exist (default: ./trace.db)\n"
    "  --session NAME    1 to 48 letters, digits, '-' or '_' (default: $CUDATRACE_SESSION,\n"
    "                    or default)\n"
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
    "  --workers N       the number of threads that store, 1 or 2 (default: 2 if there are eight\n"
    "                    processors or more)\n"
    "  --clock NAME      the clock for times of calls: counter (the processor's) or monotonic\n"
    "                    (the kernel's; default: counter if the kernel trusts it)\n"
    "  --log-level LEVEL log error, warning, notice, info or debug, and all more severe levels\n"
    "                    (default: notice)\n"
    "  --auto            exit when the last `cudatrace run` that uses the daemon has ended\n"
    "  --group NAME      allow members of this group to read the database (default: only its\n"
    "                    owner)\n"
    "  --system          collect for all users whose processes find no daemon of their own in\n"
    "                    this session; requires root\n"
    "  --record FILE     also write all that is stored to FILE, for --replay on any machine\n";

static const char help_end[] =
    "  --help, --version\n"
    "\n"
    "Without --foreground, the command returns when the daemon serves the session, and the\n"
    "daemon logs to FILE.log. In the foreground, it reports its state to a service manager\n"
    "(see sd_notify(3)). `cudatrace stop` or SIGTERM stops the daemon, after it has stored all\n"
    "recorded calls.\n"
    "Exit status: 0, 1 for a failure, 2 for wrong usage.\n";

/* Prints one line on standard error. A path on the command line may contain newlines. */
static void say(const char *text)
{
    char line[CT_MESSAGE_BYTES * 4 + 64];
    ct_log_printable(text, line, sizeof(line));
    fprintf(stderr, "cudatraced: %s\n", line);
}

static int wrong(const char *format, const char *what)
{
    char text[CT_MESSAGE_BYTES];
    int length = snprintf(text, sizeof(text), format, what);
    length = (size_t)length < sizeof(text) ? length : (int)sizeof(text) - 1;
    snprintf(text + length, sizeof(text) - (size_t)length, " (see cudatraced --help)");
    say(text);
    return EXIT_USAGE;
}

/* Converts "1M" to bytes. Returns 0 for an invalid size. */
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

/* Converts "10m" to nanoseconds. Returns 0 unless it is a duration from one second to ten years. */
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

/* Returns a quarter of the available processors, at least 1. tests/faults use 2, which has more points of
 * failure. */
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

/* Opens /dev/null for closed standard descriptors. Otherwise the database's lock, for example, could be
 * opened as standard error, and log lines would be written to it. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* The parent of a background daemon waits for one byte, which means ready. At the end of the pipe without
 * one, it returns the exit status of the daemon, which has printed the error. */
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
    /* Redirect the log first, since the worker may log at any time. */
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

static int run_in_background(const struct ct_daemon_options *options, struct readiness *readiness)
{
    /* Close everything that the caller had open, such as a lock or a pipe that another process waits on. */
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
        readiness->fd = ends[1];
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

/* Makes the path absolute, since the daemon changes its directory. The file need not exist. Returns NULL, or
 * the reason for failing. */
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

static int refuse(const char *option, const char *path, const char *why)
{
    char text[CT_MESSAGE_BYTES];
    snprintf(text, sizeof(text), "%s %s: %s", option, path, why);
    say(text);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    enum { FILE_SOURCES = 256 }; /* above all characters */
    enum { KNOWN_MAX = 32 };
    int foreground = 0, leaves = 0, system = 0;
    struct option known[KNOWN_MAX] = {
        { "db", required_argument, NULL, 'd' },
        { "session", required_argument, NULL, 's' },
        { "shm-dir", required_argument, NULL, 'm' },
        { "foreground", no_argument, &foreground, 1 },
        { "ring", required_argument, NULL, 'r' },
        { "keep", required_argument, NULL, 'k' },
        { "max-db", required_argument, NULL, 'x' },
        { "clock", required_argument, NULL, 'c' },
        { "log-level", required_argument, NULL, 'l' },
        { "auto", no_argument, &leaves, 1 },
        { "group", required_argument, NULL, 'g' },
        { "system", no_argument, &system, 1 },
        { "record", required_argument, NULL, 'e' },
        { "workers", required_argument, NULL, 'w' },
        { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    const struct ct_file_source *files = NULL;
    size_t options_known = 0;
    while (known[options_known].name)
        options_known++;
    for (int i = 0; ct_file_sources[i]; i++)
        known[options_known++] =
            (struct option){ ct_file_sources[i]->name, no_argument, NULL, FILE_SOURCES + i };
    open_standard_files();
    ct_page_cache_install();
    const char *database = "trace.db", *record = NULL;
    struct ct_daemon_options options = { .session = CT_SESSION_DEFAULT,
                                         .ring_bytes = CT_RING_BYTES_DEFAULT,
                                         .workers = usual_workers(),
                                         .clock = CT_CLOCK_CHOSEN };
    const char *session = getenv(CT_SESSION_ENV);
    if (session && *session)
        options.session = session;
    struct ct_private_readers readers = CT_PRIVATE;
    const char *shm_dir = getenv(CT_SHM_DIR_ENV);
    for (int option; (option = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
        switch (option) {
        case 0:
            break; /* a flag */
        case 'd':
            database = optarg;
            break;
        case 's':
            options.session = optarg;
            break;
        case 'm':
            shm_dir = optarg;
            if (!*shm_dir)
                return wrong("invalid value '%s' for --shm-dir: expected a directory", shm_dir);
            break;
        case 'r':
            options.ring_bytes = parse_size(optarg);
            if (!ct_ring_bytes_valid(options.ring_bytes))
                return wrong("invalid value '%s' for --ring: expected a power of two from 64K to 1G", optarg);
            break;
        case 'k':
            options.bounds.keep_ns = parse_duration(optarg);
            if (options.bounds.keep_ns == 0)
                return wrong("invalid value '%s' for --keep: expected a duration from 1s to 3653d, such as "
                             "90s, 10m, 24h or 7d",
                             optarg);
            break;
        case 'x':
            options.bounds.max_bytes = parse_size(optarg);
            if (options.bounds.max_bytes < MAX_DB_BYTES_MIN)
                return wrong(
                    "invalid value '%s' for --max-db: expected a size of 16M or more, such as 500M or 20G",
                    optarg);
            break;
        case 'w':
            options.workers = parse_workers(optarg);
            if (options.workers == 0)
                return wrong("invalid value '%s' for --workers: expected 1 or 2", optarg);
            break;
        case 'c':
            if (strcmp(optarg, "counter") != 0 && strcmp(optarg, "monotonic") != 0)
                return wrong("invalid value '%s' for --clock: expected counter or monotonic", optarg);
            options.clock = optarg[0] == 'c' ? CT_CLOCK_COUNTER : CT_CLOCK_MONOTONIC;
            break;
        case 'l': {
            enum ct_log_level level;
            if (!ct_log_parse_level(optarg, &level))
                return wrong(
                    "invalid value '%s' for --log-level: expected error, warning, notice, info or debug",
                    optarg);
            ct_log_set_level(level);
            break;
        }
        case 'g':
            if (!parse_group(optarg, &readers))
                return wrong("invalid value '%s' for --group: no such group", optarg);
            break;
        case 'e':
            record = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            for (size_t i = 0; ct_file_sources[i]; i++)
                fputs(ct_file_sources[i]->help, stdout);
            fputs(help_end, stdout);
            return EXIT_SUCCESS;
        case 'v':
            puts("cudatraced " CUDATRACE_VERSION);
            return EXIT_SUCCESS;
        case ':':
            return wrong("option '%s' requires a value", argv[optind - 1]);
        case '?':
            return wrong("unknown option %s", argv[optind - 1]);
        default:
            files = ct_file_sources[option - FILE_SOURCES];
        }
    }
    options.foreground = foreground;
    options.leave_when_unused = leaves;
    options.system = system;
    if (files && optind == argc)
        return wrong("--%s requires a file", files->name);
    if (!files && optind < argc)
        return wrong("unexpected argument '%s'", argv[optind]);
    if (!ct_session_valid(options.session))
        return wrong("invalid session name '%s': use 1 to 48 letters, digits, '-' or '_'", options.session);
    if (options.system && options.leave_when_unused)
        return wrong("--system cannot be combined with --auto%s", "");
    if (options.system && ct_real_euid() != 0) {
        fputs("cudatraced: --system requires root\n", stderr);
        return EXIT_FAILURE;
    }
    if (!*database)
        return wrong("invalid value '%s' for --db: expected a file name", database);

    ct_database_share(&readers);
    options.readers = readers.group;
    char path[4096], log_path[4200];
    const char *why = absolute(database, path, sizeof(path));
    if (why)
        return refuse("--db", database, why);
    options.database = path;
    char message[CT_MESSAGE_BYTES] = "";
    signal(SIGXFSZ, SIG_IGN); /* makes a write beyond the file size limit fail like one on a full disk */
    if (files) {
        const int status = ct_file_sources_store(files, argv + optind, (size_t)(argc - optind), path,
                                                 &options.bounds, message);
        if (message[0])
            say(message);
        return status;
    }
    char record_path[4096];
    if (record && !*record)
        return wrong("invalid value '%s' for --record: expected a file name", record);
    if (record && (why = absolute(record, record_path, sizeof(record_path))) != NULL)
        return refuse("--record", record, why);
    options.record = record ? record_path : NULL;
    char dir[CT_SHM_DIR_BYTES];
    if ((why = absolute(shm_dir && *shm_dir ? shm_dir : CT_SHM_DIR, dir, sizeof(dir))) != NULL)
        return refuse("--shm-dir", shm_dir, why);
    options.shm_dir = dir;
    snprintf(log_path, sizeof(log_path), "%s.log", path);
    if (!options.foreground && ct_private_own(log_path, &CT_PRIVATE, message, sizeof(message)) != 0) {
        char text[sizeof(message) + 64];
        snprintf(text, sizeof(text), "%s; remove this log file, or name another database with --db", message);
        say(text);
        return EXIT_FAILURE;
    }
    struct readiness readiness = { .fd = -1, .log_path = log_path };
    options.on_terminal = options.foreground && isatty(STDERR_FILENO);
    return options.foreground ? run(&options, &readiness) : run_in_background(&options, &readiness);
}
