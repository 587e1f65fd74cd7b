/* The hooks of a table, and the probe's own hook on errors of GPUs: attaches the BPF programs to their
 * targets (hooks.bpf.c). */
#ifndef CT_PROBE_HOOKS_H
#define CT_PROBE_HOOKS_H

#include "functions.h"
#include "hook_table.h"
#include "programs.h"
#include "selection.h"

#include <stdbool.h>
#include <sys/types.h>

struct ct_attached_hook;

struct ct_hooks {
    const char *path;                     /* of the table; NULL: there is none */
    const pid_t *pid;                     /* functions in libraries get probes in these processes alone; */
    size_t pids;                          /* 0: in all processes */
    const struct ct_selection *selection; /* functions of the driver that the probe records already */
    struct ct_programs *programs;
    struct ct_function_table *functions;
    bool has_own;        /* the kernel has the tracepoint of the probe's own hook */
    bool has_machine;    /* a writer records events of the whole machine */
    int tracefs;         /* a descriptor of its folder or -errno */
    uint64_t trampoline; /* ct_hook_find_trampoline() */
    struct ct_hook_table table;
    struct ct_attached_hook *attached; /* CT_HOOK_RULES of them, by the number of the rule */
};

/* Reads the table, finds the trampoline and opens tracefs, before the probe drops the rights that this
 * requires. Returns CT_GO_ON. On failure, prints an error and returns the exit status. */
int ct_hooks_begin(struct ct_hooks *hooks);
/* Returns whether there are hooks, or may be some after ct_hooks_reload(). If not, ct_hooks_attach() does
 * nothing. */
bool ct_hooks_are_wanted(const struct ct_hooks *hooks);
/* Attaches all hooks. Prints a line for each that cannot be attached; the others record. */
void ct_hooks_attach(struct ct_hooks *hooks);
/* Reads the table again, if there is one. Hooks that have not changed record on without a gap. If the table
 * has errors, all remain as they were. */
void ct_hooks_reload(struct ct_hooks *hooks);
void ct_hooks_detach(struct ct_hooks *hooks);

/* Prints the targets of the table's hooks, or a script for bpftrace. Returns the exit status. */
int ct_hooks_print(const char *path, bool as_script);

#endif
