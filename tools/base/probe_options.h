/* Options shared by `cudatrace probe` and cudatrace-probe. `cudatrace probe` checks its options and passes
 * them on to cudatrace-probe. */
#ifndef CT_PROBE_OPTIONS_H
#define CT_PROBE_OPTIONS_H

#include "selecting.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Set by a command that starts cudatrace-probe: the number of a descriptor. The probe writes a byte to it as
 * soon as it records, prints no message about that, and ends when its parent ends. */
#define CT_PROBE_READY_ENV "CUDATRACE_PROBE_READY"

#define CT_PROBE_NOT_FOUND                                                                                   \
    "cudatrace-probe not found next to cudatrace; set CUDATRACE_PROBE to its path, or build it: "            \
    "libbpf-dev, "                                                                                           \
    "clang and bpftool must be installed"

enum {
    CT_PROBE_PIDS_MAX = 256,
    CT_PROBE_FILES_MAX = 16,
    CT_PROBE_PATTERNS_MAX = 64,
    CT_PROBE_HOOKS_MAX = 256
};

struct ct_probe_options {
    const char *session, *shm_dir;
    pid_t pid[CT_PROBE_PIDS_MAX];
    const char *named_file[CT_PROBE_FILES_MAX]; /* the files given by --library */
    const char *pattern[CT_PROBE_PATTERNS_MAX]; /* given by --list, which records nothing */
    size_t pids, named_files, patterns;
    pid_t children;   /* the process given by --children, which also sets `all`; 0: none */
    const char *only; /* a pattern for library paths; NULL: all libraries */
    struct ct_selecting selecting;
    int64_t for_ns;    /* 0: no limit */
    int method;        /* the first method to try: 0 session, 1 multi, 2 event */
    const char *hooks; /* the file with the table of hooks; "-": standard input; NULL: none */
    const char *hook[CT_PROBE_HOOKS_MAX]; /* further lines of the table, given by --hook */
    size_t hook_lines;
    bool all, hooked, kernel_events, ioctls, verbose;
    bool print, relative;   /* of `run`, which starts COMMAND */
    bool dry_run, bpftrace; /* checks or prints the hooks, and records nothing */
    bool discover;          /* counts functions of modules that a command reaches, and records nothing */
    const char *modules;    /* their names, separated by commas */
    const char *save;       /* the file for the table of --discover; NULL: standard error */
    int order;              /* of that table: 0 by first call, 1 by number of calls */
    char **command;         /* with its arguments; NULL: none. Without `discover`, `run` starts it */
};

bool ct_probe_take_hook(const struct ct_option *option, const char *value);
/* The options that choose events. `hooks_help_` is the help of --hooks. */
#define CT_OPTIONS_OF_EVENTS(options_, hooks_help_)                                                          \
    { "kernel", NULL,                                                                                        \
      "also record when a thread was blocked or preempted in a call, its page faults, and\n"                 \
      "DMA fences (layer kernel)",                                                                           \
      &(options_)->kernel_events },                                                                          \
        { "ioctls", NULL,                                                                                    \
          "also record requests to the kernel driver (layer ioctl), and calls that open,\n"                  \
          "map and close its devices (layer kernel)",                                                        \
          &(options_)->ioctls },                                                                             \
        { "hooks", "FILE", hooks_help_, &(options_)->hooks, ct_take_name, "expected a file" },               \
    {                                                                                                        \
        .name = "hook", .value = "LINE",                                                                     \
        .help = "also record what this line of such a table chooses; may be repeated", .to = options_,       \
        .take = ct_probe_take_hook, .wrong = "expected a line; at most 256 are possible"                     \
    }

/* Returns CT_GO_ON, or the exit status after reporting that the table of --hooks is not a readable file. */
int ct_probe_check_table(struct ct_probe_options *options, const char *command);
/* Returns CT_GO_ON, or the exit status after --help or a reported error. */
int ct_probe_options_parse(int argc, char **argv, struct ct_probe_options *options);

#endif
