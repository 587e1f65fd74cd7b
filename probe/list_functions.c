/* Lists functions of the kernel and of its modules. */
#include "hook_find.h"
#include "kernel_types.h"
#include "list_lines.h"
#include "room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listed {
    char *symbol;  /* with the compiler's suffixes */
    char *module;  /* NULL: the kernel */
    size_t length; /* of the symbol without the suffixes */
};

/* A sorted list of names. */
struct names {
    char **name;
    size_t count, room;
    int error; /* why the list could not be read, as -errno; 0: it was read */
};

/* The kernel's lists, which show where it permits no kprobe. */
struct bars {
    struct names forbidden; /* kprobes would harm the kernel there */
    struct names traceable; /* those with a call for ftrace at the entry */
};

/* ---- where the kernel permits kprobes ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_name(const struct names *names, const char *name)
{
    return names->count > 0 && bsearch(&name, names->name, names->count, sizeof(*names->name), compare_names);
}

/* Reads a name from each line, in that form. */
static void read_names(struct names *names, int folder, const char *path, const char *form)
{
    char line[1024], name[512];
    const int fd = folder < 0 ? folder : openat(folder, path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    *names = (struct names){ .error = folder < 0 ? folder : !file ? -errno : 0 };
    if (!file)
        return;
    while (!names->error && fgets(line, sizeof(line), file)) {
        char *copy = sscanf(line, form, name) == 1 ? strdup(name) : NULL;
        if (copy && ct_make_room(&names->name, names->count, &names->room, sizeof(*names->name)))
            names->name[names->count++] = copy;
    }
    fclose(file);
    if (names->count > 0)
        qsort(names->name, names->count, sizeof(*names->name), compare_names);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

static void report(const struct names *names, const char *path)
{
    /* A kernel without ftrace has no list of functions for it, and then does not check it. */
    if (names->error && names->error != -ENOENT)
        fprintf(stderr,
                "cudatrace-probe: some functions are perhaps listed although the kernel permits no kprobe on "
                "them: %s: %s%s\n",
                path, strerror(-names->error), geteuid() == 0 ? "" : ": run as root");
}

static void read_bars(struct bars *bars)
{
    const int debugfs = ct_hook_open_debugfs(), tracefs = ct_hook_open_tracefs();
    read_names(&bars->forbidden, debugfs, "kprobes/blacklist", "%*s %511s");
    read_names(&bars->traceable, tracefs, "available_filter_functions", "%511s");
    report(&bars->forbidden, "/sys/kernel/debug/kprobes/blacklist");
    report(&bars->traceable, "/sys/kernel/tracing/available_filter_functions");
    if (debugfs >= 0)
        close(debugfs);
    if (tracefs >= 0)
        close(tracefs);
}

/* Returns why the kernel permits no kprobe on the function, or NULL. */
static const char *bar_of(const struct bars *bars, const char *symbol)
{
    if (has_name(&bars->forbidden, symbol))
        return "the kernel forbids kprobes there (kprobes/blacklist)";
    if (bars->traceable.count > 0 && !has_name(&bars->traceable, symbol))
        return "the kernel permits no kprobe there: the function is notrace";
    return NULL;
}

/* ---- symbols ---- */

static int compare(const void *a, const void *b)
{
    const struct listed *left = a, *right = b;
    const int order =
        strncmp(left->symbol, right->symbol, left->length < right->length ? left->length : right->length);
    if (order != 0 || left->length != right->length)
        return order != 0 ? order : left->length < right->length ? -1 : 1;
    return strcmp(left->symbol, right->symbol);
}

/* Symbols that the compiler makes for its own use: padding before functions, checks of indirect calls, and
 * unlikely parts of functions. */
static bool is_artificial(const char *symbol)
{
    return strncmp(symbol, "__pfx_", strlen("__pfx_")) == 0 ||
           strncmp(symbol, "__cfi_", strlen("__cfi_")) == 0 || strstr(symbol, ".cold");
}

static bool add_symbol(struct ct_list *list, const char *symbol, const char *module, struct listed **found,
                       size_t *count, size_t *room)
{
    char name[512];
    const size_t length = ct_hook_function_length(symbol);
    snprintf(name, sizeof(name), "%.*s", (int)length, symbol);
    if (is_artificial(symbol) || !ct_list_takes(list, CT_HOOK_KPROBE, name, name))
        return true;
    struct listed listed = { .symbol = strdup(symbol), .length = length };
    if (*module)
        listed.module = strndup(module + 1, strcspn(module + 1, "]"));
    if (!listed.symbol || !ct_make_room(found, *count, room, sizeof(listed)))
        return false;
    (*found)[(*count)++] = listed;
    return true;
}

static size_t read_symbols(struct ct_list *list, struct listed **found)
{
    char line[1024], symbol[512], kind;
    size_t count = 0, room = 0;
    FILE *symbols = fopen("/proc/kallsyms", "re");
    bool good = symbols;
    while (good && fgets(line, sizeof(line), symbols)) {
        char module[128] = "";
        if (sscanf(line, "%*x %c %511s %127s", &kind, symbol, module) >= 2 && strchr("tTwW", kind))
            good = add_symbol(list, symbol, module, found, &count, &room);
    }
    if (!good || ferror(symbols))
        fprintf(stderr, "cudatrace-probe: functions of the kernel cannot be listed: /proc/kallsyms: %s\n",
                strerror(errno));
    if (symbols)
        fclose(symbols);
    if (count > 0)
        qsort(*found, count, sizeof(**found), compare);
    return count;
}

/* ---- lines ---- */

static void print_function(struct ct_list *list, struct ct_kernel_types *types, const struct bars *bars,
                           const struct listed *listed, size_t same)
{
    char target[600], remark[256] = "";
    struct ct_list_fields fields;
    snprintf(target, sizeof(target), "kprobe:%.*s", (int)listed->length, listed->symbol);
    const char *name = target + strlen("kprobe:");
    const bool is_changed = listed->symbol[listed->length] != '\0';
    const bool is_described = list->options->verbose && !is_changed &&
                              ct_kernel_types_describe(types, listed->module, name, &fields);
    const size_t part = (size_t)snprintf(remark, sizeof(remark), "%s%s", listed->module ? "module " : "",
                                         listed->module ? listed->module : "");
    if (same > 1)
        snprintf(remark + part, sizeof(remark) - part,
                 "%s%zu functions have this name: later kernels refuse a kprobe on it", part ? "; " : "",
                 same);
    else if (is_changed && list->options->verbose)
        snprintf(remark + part, sizeof(remark) - part, "%sthe compiler has changed its arguments (%s)",
                 part ? "; " : "", listed->symbol);
    ct_list_print(list, target, name, is_described ? &fields : NULL, remark, bar_of(bars, listed->symbol));
}

void ct_list_functions(struct ct_list *list)
{
    struct bars bars = { 0 };
    struct listed *listed = NULL;
    const size_t count = ct_list_wants(list, CT_HOOK_KPROBE) ? read_symbols(list, &listed) : 0;
    struct ct_kernel_types *types = count > 0 && list->options->verbose ? ct_kernel_types_open() : NULL;
    if (count > 0 && list->options->verbose && !types)
        fputs("cudatrace-probe: the arguments of the kernel's functions are not known: the kernel has no BTF "
              "(CONFIG_DEBUG_INFO_BTF)\n",
              stderr);
    if (count > 0 && access("/sys/bus/event_source/devices/kprobe", F_OK) != 0)
        fputs("cudatrace-probe: this kernel has no kprobes (CONFIG_KPROBES): the probe cannot record the "
              "functions that are listed\n",
              stderr);
    else if (count > 0)
        read_bars(&bars);
    for (size_t i = 0, next; i < count; i = next) {
        size_t same = 1;
        for (next = i + 1; next < count && listed[next].length == listed[i].length &&
                           strncmp(listed[next].symbol, listed[i].symbol, listed[i].length) == 0;
             next++)
            same += strcmp(listed[next].symbol, listed[i].symbol) == 0;
        print_function(list, types, &bars, &listed[i], same);
    }
    for (size_t i = 0; i < count; i++) {
        free(listed[i].symbol);
        free(listed[i].module);
    }
    free(listed);
    free_names(&bars.forbidden);
    free_names(&bars.traceable);
    ct_kernel_types_close(types);
}
