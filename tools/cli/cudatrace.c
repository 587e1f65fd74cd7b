/* cudatrace: which command, and the options that all of them take. */
#include "cudatrace.h"

#include "session_names.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    ct_command *run;
    const char *summary;
} commands[] = {
    { "run", ct_run, "run a command and trace its CUDA calls" },
    { "sql", ct_sql, "ask the trace a question in SQL" },
    { "report", ct_report, "where the time went, in sections: phases, functions, kernels, copies, gaps, …" },
    { "diff", ct_diff, "what differs between two traces" },
    { "timeline", ct_timeline, "what each thread did when, as lines of letters" },
    { "top", ct_top, "what the traced processes do now: calls, time, memory, open calls, losses" },
    { "html", ct_html, "the trace as one page for a browser: timeline, charts, tables" },
    { "export", ct_export, "the calls of a trace for other programs: Perfetto, scripts" },
    { "flush", ct_flush, "return when all that was recorded before can be asked for" },
    { "set", ct_set, "choose what a running session records" },
    { "status", ct_status, "what the session's daemon does" },
    { "stop", ct_stop, "stop the session's daemon, which stores what was recorded first" },
    { "doctor", ct_doctor, "what would be missed here, in a process or of a command, and why" },
    { "gc", ct_gc, "remove what killed daemons and programs have left in shared memory" },
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

int ct_fail(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments); /* it may quote a trace: a column's name, say */
    va_end(arguments);
    fprintf(stderr, "cudatrace: %s\n", text ? text : "out of memory");
    free(text);
    return status;
}

enum { OPTION_DB = 1000, OPTION_SESSION, OPTION_SHM_DIR, OPTION_HELP, OPTIONS_MAX = 16, OPTIONS_COMMON = 4 };

/* The directory of the session's files, made absolute. */
static bool take_shm_dir(const char *command, const char *dir, struct ct_options *options)
{
    char cwd[PATH_MAX] = "";
    struct stat status;
    if (options->shm_dir_given && !*dir) {
        ct_fail(EXIT_USAGE, "%s: --shm-dir wants a folder", command);
        return false;
    }
    const int error = !options->shm_dir_given   ? 0
                      : stat(dir, &status) != 0 ? errno
                      : S_ISDIR(status.st_mode) ? 0
                                                : ENOTDIR;
    if (error) {
        ct_fail(EXIT_USAGE, "%s: --shm-dir '%s': %s", command, dir, strerror(error));
        return false;
    }
    if (!dir || !*dir)
        dir = CT_SHM_DIR;
    if (dir[0] != '/' && !getcwd(cwd, sizeof(cwd))) {
        ct_fail(EXIT_USAGE, "%s: --shm-dir %s: %s", command, dir, strerror(errno));
        return false;
    }
    const int n = snprintf(options->shm_dir, sizeof(options->shm_dir), "%s%s%s", cwd, *cwd ? "/" : "", dir);
    if ((size_t)n < sizeof(options->shm_dir) &&
        ct_session_socket_fits(options->shm_dir, ct_session_uid(), options->session))
        return true;
    ct_fail(
        EXIT_USAGE,
        "%s: the path of the directory %s is too long: with the session's name it leaves no address for a "
        "socket, which has 107 bytes at most; choose a shorter --shm-dir",
        command, dir);
    return false;
}

int ct_options_parse(int argc, char **argv, const struct option *known, const char *help,
                     struct ct_options *options, bool (*on_option)(int option, const char *value, void *data),
                     void *data, bool *done, int *status)
{
    struct option all[OPTIONS_MAX] = {
        { "db", required_argument, NULL, OPTION_DB },
        { "session", required_argument, NULL, OPTION_SESSION },
        { "shm-dir", required_argument, NULL, OPTION_SHM_DIR },
        { "help", no_argument, NULL, OPTION_HELP },
    };
    for (size_t i = 0; known && known[i].name && i + OPTIONS_COMMON + 1 < OPTIONS_MAX; i++)
        all[i + OPTIONS_COMMON] = known[i];
    const char *session = getenv(CT_SESSION_ENV);
    const bool named = session && *session;
    *options = (struct ct_options){ .session = named ? session : CT_SESSION_DEFAULT, .session_named = named };
    const char *shm_dir = getenv(CT_SHM_DIR_ENV);
    *done = true;
    *status = EXIT_USAGE;
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, "+:h", all, NULL)) != -1;) {
        switch (option) {
        case OPTION_DB:
            options->database = optarg;
            break;
        case OPTION_SESSION:
            options->session = optarg;
            options->session_given = options->session_named = true;
            break;
        case OPTION_SHM_DIR:
            shm_dir = optarg;
            options->shm_dir_given = true;
            break;
        case OPTION_HELP:
        case 'h':
            fputs(help, stdout);
            *status = EXIT_SUCCESS;
            return optind;
        case ':':
            ct_fail(EXIT_USAGE, "%s: %s wants a value (see cudatrace %s --help)", argv[0], argv[optind - 1],
                    argv[0]);
            return optind;
        case '?':
            /* Of several letters behind one dash it is one, and the word they are in is not done with. */
            if (optopt > 0 && optopt < OPTION_DB && strncmp(argv[optind - 1], "--", 2) != 0)
                ct_fail(EXIT_USAGE, "%s: unknown option -%c (see cudatrace %s --help)", argv[0], optopt,
                        argv[0]);
            else
                ct_fail(EXIT_USAGE, "%s: unknown option %s (see cudatrace %s --help)", argv[0],
                        argv[optind - 1], argv[0]);
            return optind;
        default:
            if (!on_option || !on_option(option, optarg, data))
                return optind;
        }
    }
    if (options->database && !*options->database) {
        ct_fail(EXIT_USAGE, "%s: --db wants a file name", argv[0]);
        return optind;
    }
    if (!ct_session_valid(options->session)) {
        ct_fail(EXIT_USAGE, "%s: session '%s': a name is 1 to %d letters, digits, '-' or '_'", argv[0],
                options->session, CT_SESSION_MAX);
        return optind;
    }
    *done = !take_shm_dir(argv[0], shm_dir, options);
    return optind;
}

static void usage(FILE *to)
{
    fputs("Usage: cudatrace COMMAND [OPTION…] [ARGUMENT…]\n"
          "\n"
          "Traces the CUDA calls of any number of processes into one SQLite database.\n"
          "\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "Every command takes --session NAME and --shm-dir DIR (default: $CUDATRACE_SHM_DIR, or\n"
          "/dev/shm), and all but gc take --db FILE (default: ./trace.db), which is enough to find\n"
          "the session that writes it. `cudatrace COMMAND --help` explains the command,\n"
          "`cudatrace --version` says which version this is.\n"
          "\n"
          "  cudatrace run -- python train.py\n"
          "  cudatrace report\n"
          "  cudatrace sql 'SELECT name, calls, total_ns FROM totals ORDER BY total_ns DESC LIMIT 5'\n"
          "\n"
          "Exit status: 0, 1 for a failure, 2 for wrong usage; run passes the command's own.\n",
          to);
}

static int output_error; /* the first of standard output */

/* Whoever reads from the pipe that is standard output may have seen enough. */
static bool reader_is_gone(void)
{
    struct pollfd output = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&output, 1, 0) == 1 && (output.revents & POLLERR);
}

bool ct_flush_output(void)
{
    if (fflush(stdout) != 0 && output_error == 0)
        output_error = errno;
    return output_error == 0 && !ferror(stdout);
}

/* The status of a command, a failure if what it printed did not get to where it should. The reason is not
 * known where that was found out in between. */
static int written(int status)
{
    if (ct_flush_output())
        return status;
    if (!reader_is_gone())
        ct_fail(EXIT_FAILURE, "standard output cannot be written%s%s", output_error ? ": " : "",
                output_error ? strerror(output_error) : "");
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

/* A file that is opened in the place of one of the three that the caller closed would be taken for it:
 * messages would go into a trace's page. Commands that are run find it closed, as it was. */
static void fill_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    fill_standard_files();
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 && argc == 3) {
        /* help COMMAND is COMMAND --help. */
        argv[1] = argv[2];
        argv[2] = (char *)(uintptr_t) "--help";
        name = argv[1];
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        usage(stdout);
        return written(EXIT_SUCCESS);
    }
    if (strcmp(name, "--version") == 0) {
        puts("cudatrace " CUDATRACE_VERSION);
        return written(EXIT_SUCCESS);
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return written(commands[i].run(argc - 1, argv + 1));
    }
    return ct_fail(EXIT_USAGE, "unknown command '%s' (see cudatrace --help)", name);
}
