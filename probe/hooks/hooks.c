#include "hooks.h"

#include "hook_expand.h"
#include "hook_find.h"
#include "hook_script.h"
#include "kernel_symbols.h"
#include "options.h"
#include "proc_file.h"
#include "targets.h"
#include "tracepoint.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CT_LINKS_MAX = 2 * 256 }; /* entry and return, in each process of --pid */

struct ct_attached_hook {
    struct ct_hook_entry hook;
    struct bpf_link *link[CT_LINKS_MAX];
    size_t links; /* 0: the rule is free */
};

/* The probe's own hook. NVIDIA's driver reports GPU errors (Xids) through this tracepoint, in any thread or
 * interrupt (kernel-open/nvidia/nv-tracepoint.h in NVIDIA/open-gpu-kernel-modules). Programs that read traces
 * depend on the names of this hook and of its fields. */
static const char own_hook[] = "tracepoint:nvidia:nvidia_dev_xid xid device=dev code=error_code message=msg "
                               "in machine limit 1000/s\n";

/* ---- one hook ---- */

static void detach(struct ct_attached_hook *attached)
{
    for (size_t i = 0; i < attached->links; i++)
        bpf_link__destroy(attached->link[i]);
    attached->links = 0;
    ct_hook_entry_free(&attached->hook);
}

static int add_link(struct ct_attached_hook *attached, struct bpf_link *link)
{
    if (!link)
        return -errno;
    attached->link[attached->links++] = link;
    return 0;
}

static int attach_tracepoint(struct ct_attached_hook *attached, const struct ct_programs *programs,
                             uint64_t cookie)
{
    const enum ct_hook_end end =
        attached->hook.rule.scope == CT_SCOPE_MACHINE ? CT_HOOK_POINT_IN_MACHINE : CT_HOOK_POINT;
    const int error = ct_tracepoint_attach(ct_programs_hook(programs, end), attached->hook.event, cookie,
                                           &attached->link[attached->links]);
    attached->links += !error;
    return error;
}

static int attach_end(struct ct_attached_hook *attached, const struct ct_programs *programs,
                      enum ct_hook_end end, uint64_t cookie, pid_t pid)
{
    const struct ct_hook_entry *hook = &attached->hook;
    const struct bpf_program *program = ct_programs_hook(programs, end);
    char path[CT_HOOK_FILE_BYTES];
    LIBBPF_OPTS(bpf_uprobe_opts, in_library, .bpf_cookie = cookie, .retprobe = end == CT_HOOK_RETURN);
    LIBBPF_OPTS(bpf_kprobe_opts, in_kernel, .bpf_cookie = cookie, .retprobe = end == CT_HOOK_RETURN);
    return add_link(attached, hook->kind == CT_HOOK_UPROBE
                                  ? bpf_program__attach_uprobe_opts(program, pid, ct_hook_file(hook, path),
                                                                    hook->offset, &in_library)
                                  : bpf_program__attach_kprobe_opts(program, hook->function, &in_kernel));
}

/* Attaches to the function's return before its entry, since a return whose entry was not seen has no
 * effect. */
static int attach_function(struct ct_attached_hook *attached, const struct ct_programs *programs,
                           uint64_t cookie, pid_t pid)
{
    const bool is_machine = attached->hook.rule.scope == CT_SCOPE_MACHINE;
    if (attached->hook.rule.is_entry)
        return attach_end(attached, programs, is_machine ? CT_HOOK_ENTRY_IN_MACHINE : CT_HOOK_AT_ENTRY,
                          cookie, pid);
    const int error = attach_end(attached, programs, CT_HOOK_RETURN, cookie, pid);
    return error ? error : attach_end(attached, programs, CT_HOOK_ENTRY, cookie, pid);
}

/* Returns whether the first thread of a process of --pid has exited. The kernel cannot limit an event to such
 * a process. */
static bool has_leaderless(const struct ct_hooks *hooks)
{
    struct ct_proc_stat stat;
    bool has = false;
    for (size_t i = 0; i < hooks->pids && !has; i++)
        has = ct_proc_stat(hooks->pid[i], &stat) == 0 && stat.first_ended && !stat.ended;
    return has;
}

/* Attaches the hook in all processes, or only in the processes of --pid. The BPF programs ignore processes
 * that are not recorded. */
static int attach_links(const struct ct_hooks *hooks, struct ct_attached_hook *attached, uint64_t cookie)
{
    if (attached->hook.kind == CT_HOOK_TRACEPOINT)
        return attach_tracepoint(attached, hooks->programs, cookie);
    if (attached->hook.kind == CT_HOOK_KPROBE || hooks->pids == 0 || has_leaderless(hooks))
        return attach_function(attached, hooks->programs, cookie, -1);
    int error = 0;
    for (size_t i = 0; i < hooks->pids && !error; i++)
        error = attach_function(attached, hooks->programs, cookie, hooks->pid[i]);
    return error;
}

/* Adds the hook to the table of functions. Returns the hook's number in that table, or CT_PROBE_FUNCTIONS if
 * the table is full. */
static uint32_t add_function(const struct ct_hooks *hooks, const struct ct_hook_entry *hook)
{
    struct ct_function_field field[CT_FIELDS_MAX] = { 0 };
    for (uint32_t i = 0; i < hook->rule.fields; i++) {
        const struct ct_hook_source *source = &hook->rule.field[i];
        strcpy(field[i].name, hook->field_name[i]);
        field[i].type = ct_hook_is_text(source) ? CT_FIELD_TEXT
                        : source->is_signed     ? CT_FIELD_SIGNED
                                                : CT_FIELD_UNSIGNED;
        field[i].text = source->text;
    }
    const uint8_t category = hook->kind == CT_HOOK_UPROBE ? CT_CATEGORY_library : CT_CATEGORY_other;
    return ct_functions_add_hook(hooks->functions, hook->name, category, field, hook->rule.fields);
}

static const char *reason(const struct ct_hook_entry *hook, int error)
{
    static const struct {
        int error;
        const char *text;
    } of_kprobes[] = {
        { -ENOENT, "the kernel has no kprobes (CONFIG_KPROBES)" },
        { -EOPNOTSUPP, "the kernel has no kprobes (CONFIG_KPROBES)" },
        /* The function is marked notrace, is on the kernel's list of forbidden functions, or belongs to the
         * kernel's own probes. */
        { -EINVAL, "the kernel permits no kprobe there" },
        { -EADDRNOTAVAIL, "the kernel has several functions of that name" },
    };
    for (size_t i = 0; hook->kind == CT_HOOK_KPROBE && i < sizeof(of_kprobes) / sizeof(of_kprobes[0]); i++) {
        if (of_kprobes[i].error == error)
            return of_kprobes[i].text;
    }
    return strerror(-error);
}

/* Prints why nothing is recorded for the hook. Always returns false. */
static bool reject(const struct ct_hook_entry *hook, const char *why)
{
    if (hook->line > 0)
        fprintf(stderr, "%s:%u: %s: %s\n", hook->source, hook->line, hook->name, why);
    else
        fprintf(stderr, "cudatrace-probe: %s: %s\n", hook->name, why);
    return false;
}

/* Attaches the hook, using the rule with the given number, and clears the hook's entry in the table. Prints
 * any error and returns false. */
static bool attach(struct ct_hooks *hooks, uint32_t number, struct ct_hook_entry *hook)
{
    struct ct_attached_hook *attached = &hooks->attached[number];
    if (hook->rule.scope == CT_SCOPE_MACHINE && !hooks->has_machine)
        return reject(hook, "there is no writer for events of the machine: start the probe again");
    const uint32_t function = add_function(hooks, hook);
    if (function == CT_PROBE_FUNCTIONS)
        return reject(hook, "no room is left for functions: start the probe again");
    struct ct_hook_rule *rule = ct_programs_rule(hooks->programs, number);
    *rule = hook->rule;
    rule->function = function;
    attached->hook = *hook;
    *hook = (struct ct_hook_entry){ 0 };
    const int error = attach_links(hooks, attached, (uint64_t)number << 32 | function);
    if (error) {
        char why[256];
        snprintf(why, sizeof(why), "cannot attach: %s", reason(&attached->hook, error));
        reject(&attached->hook, why);
        detach(attached);
    }
    return !error;
}

/* ---- a table ---- */

/* Returns whether the probe already records the function as a driver call. The frames of two probes on the
 * same function would get mixed up. */
static bool is_recorded(const struct ct_hooks *hooks, const struct ct_hook_entry *hook)
{
    return hooks->selection && hook->kind == CT_HOOK_UPROBE &&
           ct_hook_is_driver_function(hook->place, hook->symbol) &&
           ct_selection_takes(hooks->selection, CT_LAYER_DRIVER, hook->symbol);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns whether both hooks record the same calls in the same way. */
static bool is_same(const struct ct_hook_entry *a, const struct ct_hook_entry *b)
{
    return a->kind == b->kind && strcmp(a->name, b->name) == 0 && is_same_text(a->place, b->place) &&
           is_same_text(a->symbol, b->symbol) && is_same_text(a->function, b->function) &&
           a->offset == b->offset && a->event == b->event &&
           memcmp(a->field_name, b->field_name, sizeof(a->field_name)) == 0 &&
           memcmp(&a->rule, &b->rule, sizeof(a->rule)) == 0;
}

/* Returns the number of the attached hook's rule, or CT_HOOK_RULES if the hook is not attached. If `hook` is
 * NULL, returns the number of a free rule. */
static uint32_t find_rule(const struct ct_hooks *hooks, const struct ct_hook_entry *hook)
{
    uint32_t number = 0;
    while (number < CT_HOOK_RULES &&
           (hook ? hooks->attached[number].links == 0 || !is_same(&hooks->attached[number].hook, hook)
                 : hooks->attached[number].links > 0))
        number++;
    return number;
}

/* Detaches hooks that are no longer in the table. */
static void detach_others(struct ct_hooks *hooks, const struct ct_hook_table *table)
{
    bool kept[CT_HOOK_RULES] = { false };
    for (size_t i = 0; i < table->count; i++) {
        const uint32_t number = table->hook[i].is_found ? find_rule(hooks, &table->hook[i]) : CT_HOOK_RULES;
        if (number < CT_HOOK_RULES)
            kept[number] = true;
    }
    for (uint32_t number = 0; number < CT_HOOK_RULES; number++) {
        if (hooks->attached[number].links > 0 && !kept[number])
            detach(&hooks->attached[number]);
    }
}

/* Attaches the hook unless it is already attached. Returns false if that fails. */
static bool keep_or_attach(struct ct_hooks *hooks, struct ct_hook_entry *hook)
{
    if (find_rule(hooks, hook) < CT_HOOK_RULES)
        return true;
    if (is_recorded(hooks, hook)) {
        fprintf(stderr,
                "%s:%u: %s: the probe records %s itself: exclude it there with --calls '*,!%s' to hook it\n",
                hook->source, hook->line, hook->name, hook->symbol, hook->symbol);
        return false;
    }
    const bool is_own = hook->line == 0;
    const bool attached = attach(hooks, find_rule(hooks, NULL), hook);
    if (attached && is_own)
        fputs("probe: errors of GPUs (Xids) are recorded\n", stderr);
    return attached;
}

static void find_and_attach(struct ct_hooks *hooks, struct ct_hook_table *table)
{
    size_t count = 0, lines = 0;
    ct_hook_expand(table, hooks->selection, hooks->tracefs);
    ct_hook_find_all(table, hooks->tracefs);
    detach_others(hooks, table);
    for (size_t i = 0; i < table->count; i++) {
        struct ct_hook_entry *hook = &table->hook[i];
        const bool has_line = hook->line > 0;
        lines += has_line;
        if (hook->is_found)
            count += keep_or_attach(hooks, hook) && has_line;
    }
    if (ct_hook_lines_exist(&hooks->lines))
        fprintf(stderr, "probe: %zu of %zu hooks are attached\n", count, lines);
}

int ct_hooks_begin(struct ct_hooks *hooks)
{
    hooks->tracefs = ct_tracefs_open();
    hooks->attached = calloc(CT_HOOK_RULES, sizeof(*hooks->attached));
    if (!hooks->attached || !ct_hook_table_add(&hooks->table, own_hook))
        return ct_fail(EXIT_FAILURE, "probe: out of memory");
    ct_hook_find_all(&hooks->table, hooks->tracefs);
    hooks->has_own = hooks->table.hook[0].is_found;
    if (!ct_hook_lines_exist(&hooks->lines))
        return CT_GO_ON;
    hooks->trampoline = ct_hook_find_trampoline();
    return ct_hook_table_read(&hooks->table, &hooks->lines) ? CT_GO_ON : EXIT_USAGE;
}

bool ct_hooks_are_wanted(const struct ct_hooks *hooks)
{
    return ct_hook_lines_exist(&hooks->lines) || hooks->has_own;
}

void ct_hooks_attach(struct ct_hooks *hooks)
{
    if (!ct_hooks_are_wanted(hooks))
        return;
    ct_programs_set_trampoline(hooks->programs, hooks->trampoline);
    find_and_attach(hooks, &hooks->table);
    ct_hook_table_free(&hooks->table);
}

void ct_hooks_reload(struct ct_hooks *hooks)
{
    if (ct_hook_table_add(&hooks->table, own_hook) && ct_hook_table_read(&hooks->table, &hooks->lines))
        find_and_attach(hooks, &hooks->table);
    else
        fprintf(stderr, "probe: the hooks remain as they were\n");
    ct_hook_table_free(&hooks->table);
}

void ct_hooks_detach(struct ct_hooks *hooks)
{
    for (uint32_t number = 0; hooks->attached && number < CT_HOOK_RULES; number++)
        detach(&hooks->attached[number]);
}

struct ct_hook_lines ct_hook_lines_of(const struct ct_probe_options *options)
{
    static const char machines[] = "/etc/cudatrace/hooks";
    const bool has_default = !options->hooks && options->hook_lines == 0 && access(machines, F_OK) == 0;
    return (struct ct_hook_lines){
        .path = has_default ? machines : options->hooks,
        .line = options->hook,
        .lines = options->hook_lines,
    };
}

int ct_hooks_print(struct ct_hook_lines *lines, const struct ct_selection *recorded, bool as_script)
{
    static const char *const kinds[] = { "kprobe", "uprobe", "tracepoint" };
    struct ct_hook_table table = { 0 };
    int status = EXIT_USAGE;
    if (ct_hook_table_add(&table, own_hook) && ct_hook_table_read(&table, lines)) {
        const int tracefs = ct_tracefs_open();
        const bool is_expanded = ct_hook_expand(&table, recorded, tracefs);
        status = ct_hook_find_all(&table, tracefs) && is_expanded ? EXIT_SUCCESS : EXIT_FAILURE;
        if (tracefs >= 0)
            close(tracefs);
        table.hook[0].is_found = false; /* the probe's own hook is not in the file */
    }
    bool has_kprobe = false;
    for (size_t i = 0; i < table.count && !as_script && status != EXIT_USAGE; i++) {
        const struct ct_hook_entry *hook = &table.hook[i];
        has_kprobe |= hook->is_found && hook->kind == CT_HOOK_KPROBE;
        if (hook->is_found)
            printf("%-24s %s:%s%s%s\n", hook->name, kinds[hook->kind],
                   hook->function ? hook->function : hook->place, hook->symbol ? ":" : "",
                   hook->symbol ? hook->symbol : "");
    }
    if (has_kprobe && !ct_kernel_has_kprobes())
        fputs("probe: the kernel has no kprobes (CONFIG_KPROBES): kprobe: lines cannot be attached here\n",
              stderr);
    if (as_script && status != EXIT_USAGE)
        ct_hook_script_print(&table);
    ct_hook_table_free(&table);
    return ct_written(status);
}
