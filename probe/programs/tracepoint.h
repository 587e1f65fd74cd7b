/* Finds the tracepoints of the kernel in tracefs, and attaches BPF programs to them. */
#ifndef CT_PROBE_TRACEPOINT_H
#define CT_PROBE_TRACEPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bpf_link;
struct bpf_program;

/* Open tracefs or debugfs, even if it is not mounted; in that case, CAP_SYS_ADMIN is required. Return a
 * descriptor of the root folder, or -errno. */
int ct_tracefs_open(void);
int ct_debugfs_open(void);
/* Opens a file in the tracepoint's folder: `id` or `format`. On failure, returns NULL and sets errno. */
FILE *ct_tracepoint_open(int tracefs, const char *group, const char *name, const char *file);
/* Returns the tracepoint's number, or -errno: -ENOENT if the kernel has no such tracepoint. */
int ct_tracepoint_number(int tracefs, const char *group, const char *name);
/* Calls `take` for each tracepoint, in alphabetical order. Returns 0 or -errno. */
int ct_tracepoints_each(int tracefs, void (*take)(const char *group, const char *name, void *data),
                        void *data);
/* Attaches the program, on all processors. Returns 0 or -errno. Requires CAP_PERFMON. */
int ct_tracepoint_attach(const struct bpf_program *program, int number, uint64_t cookie,
                         struct bpf_link **link);

#endif
