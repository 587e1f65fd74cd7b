#include "kernel_symbols.h"

#include "hook_find.h"
#include "room.h"
#include "tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where the kernel permits kprobes ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool ct_kernel_names_have(const struct ct_kernel_names *names, const char *name)
{
    return names->count > 0 && bsearch(&name, names->name, names->count, sizeof(*names->name), compare_names);
}

/* Reads a name from each line of the file. `form` is the format for sscanf(). */
static void read_names(struct ct_kernel_names *names, int folder, const char *path, const char *form)
{
    char line[1024], name[512];
    const int fd = folder < 0 ? folder : openat(folder, path, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    *names = (struct ct_kernel_names){ .error = folder < 0 ? folder : !file ? -errno : 0 };
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

static void free_names(struct ct_kernel_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->name[i]);
    free(names->name);
}

void ct_kernel_bars_read(struct ct_kernel_bars *bars)
{
    const int debugfs = ct_debugfs_open(), tracefs = ct_tracefs_open();
    read_names(&bars->forbidden, debugfs, "kprobes/blacklist", "%*s %511s");
    read_names(&bars->traceable, tracefs, "available_filter_functions", "%511s");
    if (debugfs >= 0)
        close(debugfs);
    if (tracefs >= 0)
        close(tracefs);
}

void ct_kernel_bars_free(struct ct_kernel_bars *bars)
{
    free_names(&bars->forbidden);
    free_names(&bars->traceable);
}

const char *ct_kernel_bars_why(const struct ct_kernel_bars *bars, const char *symbol)
{
    if (ct_kernel_names_have(&bars->forbidden, symbol))
        return "the kernel forbids kprobes there (kprobes/blacklist)";
    if (bars->traceable.count > 0 && !ct_kernel_names_have(&bars->traceable, symbol))
        return "the kernel permits no kprobe there: the function is notrace";
    return NULL;
}

bool ct_kernel_has_kprobes(void)
{
    return access("/sys/bus/event_source/devices/kprobe", F_OK) == 0;
}

/* ---- symbols ---- */

/* Symbols that the compiler generates for its own use: padding before functions, checks for indirect calls,
 * and rarely executed parts of functions. */
static bool is_artificial(const char *symbol)
{
    return strncmp(symbol, "__pfx_", strlen("__pfx_")) == 0 ||
           strncmp(symbol, "__cfi_", strlen("__cfi_")) == 0 || strstr(symbol, ".cold");
}

int ct_kernel_symbols_each(bool (*take)(const struct ct_kernel_symbol *symbol, void *data), void *data)
{
    char line[1024], name[512], kind;
    uint64_t address;
    FILE *symbols = fopen("/proc/kallsyms", "re");
    if (!symbols)
        return -errno;
    bool good = true;
    while (good && fgets(line, sizeof(line), symbols)) {
        char module[128] = "";
        if (sscanf(line, "%" SCNx64 " %c %511s %127s", &address, &kind, name, module) < 3 ||
            !strchr("tTwW", kind) || is_artificial(name))
            continue;
        module[strcspn(module, "]")] = '\0';
        good = take(&(struct ct_kernel_symbol){ .name = name,
                                                .length = ct_hook_function_length(name),
                                                .module = *module ? module + 1 : NULL,
                                                .address = address },
                    data);
    }
    const int error = !good ? -ENOMEM : ferror(symbols) ? -EIO : 0;
    fclose(symbols);
    return error;
}
