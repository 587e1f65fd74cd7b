#include "discover.h"

#include "discover_counts.h"
#include "hook_table.h"
#include "kernel_needs.h"
#include "kernel_symbols.h"
#include "list_lines.h"
#include "options.h"
#include "output_target.h"
#include "programs.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_EXECUTED = 126, NOT_FOUND = 127 }; /* exit statuses, as of a shell */

struct function {
    char *symbol;  /* with the compiler's suffixes */
    size_t length; /* of the name without them */
    char *module;
    uint64_t address;
    struct ct_discovered calls;
};

struct discovery {
    const struct ct_probe_options *options;
    struct ct_kernel_bars bars;
    struct function *function; /* sorted by name */
    size_t count, room;
    size_t barred;   /* functions of the modules that have no call for ftrace */
    size_t numbers;  /* of the different names */
    size_t refused;  /* functions that are not counted, since the kernel refused a probe there */
    bool has_fprobe; /* the kernel can attach one program to many functions */
    FILE *table;
    struct ct_counts *counts;
};

/* ---- functions of the modules ---- */

static bool is_in_list(const char *list, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = list; *at; at += strspn(at, ",")) {
        const size_t next = strcspn(at, ",");
        if (next == length && strncmp(at, name, length) == 0)
            return true;
        at += next;
    }
    return false;
}

static bool add_function(const struct ct_kernel_symbol *symbol, void *data)
{
    struct discovery *discovery = data;
    if (!symbol->module && strcmp(symbol->name, "register_fprobe_ips") == 0)
        discovery->has_fprobe = true;
    if (!symbol->module || !is_in_list(discovery->options->modules, symbol->module))
        return true;
    if (ct_kernel_bars_why(&discovery->bars, symbol->name)) {
        discovery->barred++;
        return true;
    }
    struct function function = { .symbol = strdup(symbol->name),
                                 .module = strdup(symbol->module),
                                 .length = symbol->length,
                                 .address = symbol->address };
    if (function.symbol && function.module &&
        ct_make_room(&discovery->function, discovery->count, &discovery->room, sizeof(function))) {
        discovery->function[discovery->count++] = function;
        return true;
    }
    free(function.symbol);
    free(function.module);
    return false;
}

static bool is_same_name(const struct function *a, const struct function *b)
{
    return a->length == b->length && strncmp(a->symbol, b->symbol, a->length) == 0;
}

static int compare_names(const void *a, const void *b)
{
    const struct function *left = a, *right = b;
    const int order =
        strncmp(left->symbol, right->symbol, left->length < right->length ? left->length : right->length);
    return order != 0 ? order : (left->length > right->length) - (left->length < right->length);
}

static int find_functions(struct discovery *discovery)
{
    ct_kernel_bars_read(&discovery->bars);
    const int error = ct_kernel_symbols_each(add_function, discovery);
    const int unread = discovery->bars.traceable.error;
    if (error)
        return ct_fail(EXIT_FAILURE, "probe: the functions of the kernel cannot be read: %s",
                       strerror(-error));
    if (!ct_kernel_has_kprobes() && !discovery->has_fprobe)
        return ct_fail(EXIT_FAILURE,
                       "probe: --discover needs kprobes, and this kernel has none (CONFIG_KPROBES, "
                       "CONFIG_KPROBE_EVENTS)");
    if (discovery->count + discovery->barred == 0)
        return ct_fail(EXIT_FAILURE, "probe: none of the modules %s is loaded: see /proc/modules",
                       discovery->options->modules);
    if (unread && unread != -ENOENT)
        return ct_fail(EXIT_FAILURE,
                       "probe: --discover needs the kernel's list of functions that can be traced: "
                       "/sys/kernel/tracing/available_filter_functions: %s%s",
                       strerror(-unread), geteuid() == 0 ? "" : ": run as root");
    if (discovery->count == 0)
        return ct_fail(EXIT_FAILURE,
                       "probe: the kernel can trace no function of the modules %s: all are notrace",
                       discovery->options->modules);
    qsort(discovery->function, discovery->count, sizeof(struct function), compare_names);
    return CT_GO_ON;
}

/* Functions with the same name share a number, because a single line in a table of hooks covers all of
 * them. */
static struct ct_count_place *number_functions(struct discovery *discovery)
{
    struct ct_count_place *places = calloc(discovery->count, sizeof(*places));
    for (size_t i = 0; places && i < discovery->count; i++) {
        const struct function *function = &discovery->function[i];
        discovery->numbers += i == 0 || !is_same_name(function, function - 1);
        places[i] = (struct ct_count_place){ .symbol = function->symbol,
                                             .address = function->address,
                                             .number = (uint32_t)discovery->numbers - 1 };
    }
    return places;
}

static int attach(struct discovery *discovery)
{
    char lack[CT_LACK_BYTES];
    struct ct_count_place *places = number_functions(discovery);
    const bool is_multi = discovery->has_fprobe && discovery->options->method != CT_METHOD_EVENTS &&
                          discovery->function[0].address != 0;
    const int error = !places ? -ENOMEM
                              : ct_counts_begin(&discovery->counts, places, discovery->count,
                                                discovery->numbers, is_multi, &discovery->refused);
    free(places);
    if (error == -E2BIG)
        return ct_fail(EXIT_FAILURE,
                       "probe: the modules have %zu functions, and without fprobes (CONFIG_FPROBE, Linux "
                       "5.18) at most %d are possible: select fewer modules with --modules",
                       discovery->count, CT_COUNTS_EVENTS_MAX);
    if (error && ct_kernel_lacks(lack))
        return ct_fail(EXIT_FAILURE, "probe: %s", lack);
    if (error)
        return ct_fail(EXIT_FAILURE, "probe: the kernel does not attach to the modules' functions: %s%s",
                       strerror(-error), geteuid() == 0 ? "" : ": run as root");
    if (discovery->options->verbose)
        fprintf(stderr, "probe: counts %zu functions by %s\n", discovery->count - discovery->refused,
                ct_method_names[ct_counts_is_multi(discovery->counts) ? CT_METHOD_MULTI : CT_METHOD_EVENTS]);
    return CT_GO_ON;
}

/* ---- the command ---- */

static volatile sig_atomic_t command_pid;

static void pass_on(int number)
{
    const int error = errno;
    if (command_pid > 0)
        kill((pid_t)command_pid, number);
    errno = error;
}

/* Starts a process that executes the command as soon as a byte is written to the returned descriptor. If the
 * descriptor is closed first, the process exits without executing the command. Returns -errno on failure. */
static int prepare(char **command, pid_t *pid)
{
    int gate[2];
    char byte;
    if (pipe2(gate, O_CLOEXEC) != 0)
        return -errno;
    *pid = fork();
    if (*pid < 0) {
        const int error = errno;
        close(gate[0]);
        close(gate[1]);
        return -error;
    }
    if (*pid > 0) {
        close(gate[0]);
        return gate[1];
    }
    close(gate[1]);
    if (read(gate[0], &byte, 1) == 1) {
        execvp(command[0], command);
        const int error = errno;
        ct_fail(0, "probe: cannot execute '%s': %s", command[0], strerror(error));
        _exit(error == ENOENT ? NOT_FOUND : NOT_EXECUTED);
    }
    _exit(EXIT_FAILURE);
}

/* The terminal sends SIGINT and SIGQUIT to the command as well, so they are ignored here. Other signals are
 * passed on to it. */
static void share_signals(pid_t pid)
{
    command_pid = pid;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGTERM, pass_on);
    signal(SIGHUP, pass_on);
}

static int await(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return EXIT_FAILURE << 8;
    }
    return status;
}

/* Returns the command's exit status, or kills this process with the signal that killed the command. */
static int end_as(int status)
{
    if (!WIFSIGNALED(status))
        return WEXITSTATUS(status);
    const struct rlimit none = { 0 };
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}

/* ---- the table ---- */

static int compare_first(const void *a, const void *b)
{
    const struct function *left = a, *right = b;
    if (left->calls.first_ns != right->calls.first_ns)
        return left->calls.first_ns < right->calls.first_ns ? -1 : 1;
    return (left->calls.depth > right->calls.depth) - (left->calls.depth < right->calls.depth);
}

static int compare_calls(const void *a, const void *b)
{
    const struct function *left = a, *right = b;
    if (left->calls.calls != right->calls.calls)
        return left->calls.calls > right->calls.calls ? -1 : 1;
    return compare_first(a, b);
}

/* Keeps one function for each function name that was called, and sorts these functions. Returns the total
 * number of calls. */
static uint64_t sort_called(struct discovery *discovery)
{
    size_t called = 0, number = 0;
    uint64_t calls = 0;
    for (size_t i = 0; i < discovery->count; i++) {
        struct function function = discovery->function[i];
        const bool is_first = i == 0 || !is_same_name(&discovery->function[i], &discovery->function[i - 1]);
        number += is_first;
        if (!is_first || ct_counts_read(discovery->counts, (uint32_t)number - 1, &function.calls) != 0 ||
            function.calls.calls == 0)
            function.calls.calls = 0;
        discovery->function[i].calls = function.calls;
        calls += function.calls.calls;
    }
    for (size_t i = 0; i < discovery->count; i++) {
        const struct function function = discovery->function[i];
        if (function.calls.calls == 0)
            continue;
        discovery->function[i] = discovery->function[called];
        discovery->function[called++] = function;
    }
    if (called > 0)
        qsort(discovery->function, called, sizeof(struct function),
              discovery->options->order == 0 ? compare_first : compare_calls);
    discovery->numbers = called;
    return calls;
}

static void print_table(struct discovery *discovery)
{
    void *names = NULL;
    const size_t all = discovery->numbers;
    const uint64_t calls = sort_called(discovery), missed = ct_counts_missed(discovery->counts);
    FILE *table = discovery->table;
    /* The old contents of the file are kept until now, in case the command cannot be followed. Devices and
     * pipes cannot be truncated. */
    if (discovery->options->save && ftruncate(fileno(table), 0) != 0)
        errno = 0;
    fprintf(table, "# Functions of %s that were called: %zu of %zu; calls: %llu.\n",
            discovery->options->modules, discovery->numbers, all, (unsigned long long)calls);
    if (discovery->barred + discovery->refused > 0)
        fprintf(table, "# Functions that are not counted, because the kernel permits no probe there: %zu.\n",
                discovery->barred + discovery->refused);
    if (missed > 0)
        fprintf(table, "# Threads whose calls are not counted, because memory was missing: %llu.\n",
                (unsigned long long)missed);
    if (discovery->numbers > CT_HOOKS_MAX)
        fprintf(table, "# A table has at most %d hooks, so the other lines are comments.\n", CT_HOOKS_MAX);
    for (size_t i = 0; i < discovery->numbers; i++) {
        const struct function *function = &discovery->function[i];
        char name[512];
        snprintf(name, sizeof(name), "%.*s", (int)function->length, function->symbol);
        const char *own = ct_list_take_name(&names, name);
        const int indent = discovery->options->order == 0 ? 2 * (int)function->calls.depth : 0;
        fprintf(table, "%s%*skprobe:%s %s  # calls: %llu, module: %s\n", i < CT_HOOKS_MAX ? "" : "# ", indent,
                "", name, own ? own : name, (unsigned long long)function->calls.calls, function->module);
    }
    tdestroy(names, free);
}

static bool open_table(struct discovery *discovery)
{
    const char *path = discovery->options->save;
    const char *why;
    if (!path) {
        discovery->table = stderr;
        return true;
    }
    const int fd = ct_output_target_open(path, O_WRONLY | O_CREAT | O_APPEND, 0666, &why);
    discovery->table = fd < 0 ? NULL : fdopen(fd, "a");
    return discovery->table || ct_fail(false, "probe: --save %s: cannot be written: %s", path,
                                       fd >= 0 ? strerror(errno)
                                       : why   ? why
                                               : strerror(-fd));
}

static int close_table(struct discovery *discovery)
{
    const bool is_bad = discovery->table && (fflush(discovery->table) != 0 || ferror(discovery->table));
    const int error = errno;
    if (discovery->table && discovery->table != stderr)
        fclose(discovery->table);
    return is_bad && discovery->options->save
               ? ct_fail(EXIT_FAILURE, "probe: --save %s: %s", discovery->options->save, strerror(error))
               : CT_GO_ON;
}

/* ---- the whole ---- */

static int run(struct discovery *discovery)
{
    pid_t pid = 0;
    const int gate = prepare(discovery->options->command, &pid);
    if (gate < 0)
        return ct_fail(EXIT_FAILURE, "probe: cannot start a process: %s", strerror(-gate));
    int status = attach(discovery);
    const int error = status == CT_GO_ON ? ct_counts_follow(discovery->counts, pid) : 0;
    if (error)
        status = ct_fail(EXIT_FAILURE, "probe: the calls of process %d cannot be counted: %s", (int)pid,
                         strerror(-error));
    if (status == CT_GO_ON)
        share_signals(pid);
    const bool is_started = status == CT_GO_ON && write(gate, "", 1) == 1;
    close(gate);
    const int ended = await(pid);
    if (!is_started)
        return status == CT_GO_ON ? EXIT_FAILURE : status;
    print_table(discovery);
    close_table(discovery);
    ct_counts_end(discovery->counts);
    return end_as(ended);
}

int ct_discover(const struct ct_probe_options *options)
{
    static struct discovery discovery;
    discovery.options = options;
    int status = find_functions(&discovery);
    if (status == CT_GO_ON)
        status = open_table(&discovery) ? run(&discovery) : EXIT_FAILURE;
    for (size_t i = 0; i < discovery.count; i++) {
        free(discovery.function[i].symbol);
        free(discovery.function[i].module);
    }
    free(discovery.function);
    ct_kernel_bars_free(&discovery.bars);
    return status;
}
