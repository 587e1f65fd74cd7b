/* Attaches the BPF programs (hooks.bpf.c) to the targets of a table's hooks, and of the probe's own hook,
 * which records GPU errors. */
#ifndef CT_PROBE_HOOKS_H
#define CT_PROBE_HOOKS_H

#include "functions.h"
#include "hook_table.h"
#include "probe_options.h"
#include "programs.h"
#include "selection.h"

#include <stdbool.h>
#include <sys/types.h>

struct ct_attached_hook;

struct ct_hooks {
    struct ct_hook_lines lines; /* of the table */
    const pid_t *pid;           /* functions in libraries get probes in these processes alone; */
    size_t pids;                /* 0: in all processes */
    /* Functions of the driver that the probe itself records. NULL: none (--hooked) */
    const struct ct_selection *selection;
    struct ct_programs *programs;
    struct ct_function_table *functions;
    bool has_own;        /* the kernel has the tracepoint of the probe's own hook */
    bool has_machine;    /* a writer records events of the whole machine */
    int tracefs;         /* a descriptor of its folder or -errno */
    uint64_t trampoline; /* ct_hook_find_trampoline() */
    struct ct_hook_table table;
    struct ct_attached_hook *attached; /* CT_HOOK_RULES of them, by the number of the rule */
};

/* Reads the table, finds the trampoline and opens tracefs. Must be called before the probe drops the
 * necessary rights. Returns CT_GO_ON on success. On failure, prints an error and returns the exit status. */
int ct_hooks_begin(struct ct_hooks *hooks);
/* Returns whether there are any hooks, or could be after ct_hooks_reload(). If not, ct_hooks_attach() does
 * nothing. */
bool ct_hooks_are_wanted(const struct ct_hooks *hooks);
/* Attaches all hooks. Prints a line for each hook that cannot be attached; this does not affect the other
 * hooks. */
void ct_hooks_attach(struct ct_hooks *hooks);
/* Reads the table again, if there is one. Hooks that have not changed keep recording without a gap. If the
 * table has errors, all hooks remain as they were. */
void ct_hooks_reload(struct ct_hooks *hooks);
void ct_hooks_detach(struct ct_hooks *hooks);

/* Returns the table given with --hooks and --hook, or else the machine's table if it exists. */
struct ct_hook_lines ct_hook_lines_of(const struct ct_probe_options *options);
/* Prints the targets of the table's hooks, or a bpftrace script for them if `as_script` is true. `recorded`
 * is as in ct_hook_expand(). Returns the exit status. */
int ct_hooks_print(struct ct_hook_lines *lines, const struct ct_selection *recorded, bool as_script);

#endif
