/* Lists functions of the kernel and of its modules. */
#include "kernel_symbols.h"
#include "kernel_types.h"
#include "list_lines.h"
#include "room.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct listed {
    char *symbol;  /* with the compiler's suffixes */
    char *module;  /* NULL: the kernel */
    size_t length; /* of the symbol without the suffixes */
};

struct found {
    struct ct_list *list;
    struct listed *listed;
    size_t count, room;
};

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

static bool add_symbol(const struct ct_kernel_symbol *symbol, void *data)
{
    struct found *found = data;
    char name[512];
    snprintf(name, sizeof(name), "%.*s", (int)symbol->length, symbol->name);
    if (!ct_list_takes(found->list, CT_HOOK_KPROBE, name, name))
        return true;
    struct listed listed = { .symbol = strdup(symbol->name),
                             .module = symbol->module ? strdup(symbol->module) : NULL,
                             .length = symbol->length };
    if (listed.symbol && ct_make_room(&found->listed, found->count, &found->room, sizeof(listed))) {
        found->listed[found->count++] = listed;
        return true;
    }
    free(listed.symbol);
    free(listed.module);
    return false;
}

static void read_symbols(struct found *found)
{
    const int error = ct_kernel_symbols_each(add_symbol, found);
    if (error)
        fprintf(stderr, "cudatrace-probe: functions of the kernel cannot be listed: /proc/kallsyms: %s\n",
                strerror(-error));
    if (found->count > 0)
        qsort(found->listed, found->count, sizeof(*found->listed), compare);
}

/* ---- lines ---- */

static void report(const struct ct_kernel_names *names, const char *path)
{
    /* A kernel without ftrace does not have the list of traceable functions, and does not check kprobes
     * against it. */
    if (names->error && names->error != -ENOENT)
        fprintf(stderr,
                "cudatrace-probe: some functions are perhaps listed although the kernel permits no kprobe on "
                "them: %s: %s%s\n",
                path, strerror(-names->error), geteuid() == 0 ? "" : ": run as root");
}

static void print_function(struct ct_list *list, struct ct_kernel_types *types,
                           const struct ct_kernel_bars *bars, const struct listed *listed, size_t same)
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
    ct_list_print(list, target, name, is_described ? &fields : NULL, remark,
                  ct_kernel_bars_why(bars, listed->symbol));
}

void ct_list_functions(struct ct_list *list)
{
    struct ct_kernel_bars bars = { 0 };
    struct found found = { .list = list };
    if (ct_list_wants(list, CT_HOOK_KPROBE))
        read_symbols(&found);
    const bool describes = found.count > 0 && list->options->verbose;
    struct ct_kernel_types *types = describes ? ct_kernel_types_open() : NULL;
    if (describes && !types)
        fputs("cudatrace-probe: the arguments of the kernel's functions are not known: the kernel has no BTF "
              "(CONFIG_DEBUG_INFO_BTF)\n",
              stderr);
    if (found.count > 0 && !ct_kernel_has_kprobes()) {
        fputs("cudatrace-probe: this kernel has no kprobes (CONFIG_KPROBES): the probe cannot record the "
              "functions that are listed\n",
              stderr);
    } else if (found.count > 0) {
        ct_kernel_bars_read(&bars);
        report(&bars.forbidden, "/sys/kernel/debug/kprobes/blacklist");
        report(&bars.traceable, "/sys/kernel/tracing/available_filter_functions");
    }
    const struct listed *listed = found.listed;
    for (size_t i = 0, next; i < found.count; i = next) {
        size_t same = 1;
        for (next = i + 1; next < found.count && listed[next].length == listed[i].length &&
                           strncmp(listed[next].symbol, listed[i].symbol, listed[i].length) == 0;
             next++)
            same += strcmp(listed[next].symbol, listed[i].symbol) == 0;
        print_function(list, types, &bars, &listed[i], same);
    }
    for (size_t i = 0; i < found.count; i++) {
        free(found.listed[i].symbol);
        free(found.listed[i].module);
    }
    free(found.listed);
    ct_kernel_bars_free(&bars);
    ct_kernel_types_close(types);
}
