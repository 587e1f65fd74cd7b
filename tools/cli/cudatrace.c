/* The main program of cudatrace, which runs the selected command. To add a command, define a struct
 * ct_subcommand (subcommand.h) in its file, and add a row to the list below. */
#include "options.h"
#include "side_files.h"
#include "subcommand.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The commands, in the order in which the help lists them. */
#define EACH(ROW)                                                                                            \
    ROW(run)                                                                                                 \
    ROW(attach)                                                                                              \
    ROW(detach)                                                                                              \
    ROW(probe)                                                                                               \
    ROW(sql)                                                                                                 \
    ROW(report)                                                                                              \
    ROW(diff)                                                                                                \
    ROW(timeline)                                                                                            \
    ROW(top)                                                                                                 \
    ROW(tail) ROW(html) ROW(export) ROW(import) ROW(flush) ROW(set) ROW(status) ROW(stop) ROW(doctor) ROW(gc)

#define ROW(name) extern const struct ct_subcommand ct_subcommand_##name;
EACH(ROW)
#undef ROW

static const struct ct_subcommand *const commands[] = {
#define ROW(name) &ct_subcommand_##name,
    EACH(ROW)
#undef ROW
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *to)
{
    fputs("Usage: cudatrace COMMAND [OPTION…] [ARGUMENT…]\n"
          "\n"
          "Traces the CUDA calls of any number of processes into one SQLite database.\n"
          "\n",
          to);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "Most commands accept --db FILE (default: ./trace.db), which also selects the session that\n"
          "writes it, --session NAME, and --shm-dir DIR (default: $CUDATRACE_SHM_DIR, or /dev/shm).\n"
          "`cudatrace COMMAND --help` explains a command. `cudatrace --version` prints the version.\n"
          "\n"
          "  cudatrace run -- python train.py\n"
          "  cudatrace report\n"
          "  cudatrace sql 'SELECT name, calls, total_ns FROM totals ORDER BY total_ns DESC LIMIT 5'\n"
          "\n"
          "Exit status: 0, 1 for a failure, 2 for wrong usage; for run, the status of its command.\n",
          to);
}

/* Opens any standard descriptors that the caller has closed. If one stayed closed, a trace could be opened
 * under its number, and messages would overwrite pages of the trace. The descriptors are close-on-exec, so
 * that traced commands still find them closed. */
static void fill_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Handles --help and --version, which take no arguments, and `help` without a command. Returns CT_GO_ON if
 * the first argument is none of them. */
static int print_general(int argc, char **argv)
{
    const char *name = argv[1];
    const bool is_version = strcmp(name, "--version") == 0;
    if (!is_version && strcmp(name, "--help") != 0 && strcmp(name, "-h") != 0 && strcmp(name, "help") != 0)
        return CT_GO_ON;
    if (argc > 2 && strcmp(argv[argc - 1], "--help") != 0)
        return ct_fail(EXIT_USAGE, "unknown argument '%s' after %s (see cudatrace --help)", argv[argc - 1],
                       name);
    if (is_version)
        puts("cudatrace " CUDATRACE_VERSION);
    else
        usage(stdout);
    return ct_written(EXIT_SUCCESS);
}

int main(int argc, char **argv)
{
    fill_standard_files();
    ct_side_files_guard();
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 && argc == 3) {
        /* "help COMMAND" is the same as "COMMAND --help". */
        argv[1] = argv[2];
        argv[2] = (char *)(uintptr_t) "--help";
    }
    const int status = print_general(argc, argv);
    if (status != CT_GO_ON)
        return status;
    const char *name = argv[1];
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i]->name) == 0)
            return ct_written(commands[i]->run(argc - 1, argv + 1));
    }
    return ct_fail(EXIT_USAGE, "unknown command '%s' (see cudatrace --help)", name);
}
