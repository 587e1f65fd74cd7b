/* The libcuda files that have probes, each in one process or in all processes. */
#ifndef CT_PROBE_PROBED_FILES_H
#define CT_PROBE_PROBED_FILES_H

#include "functions.h"
#include "mapped_drivers.h"
#include "programs.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ct_selection;
struct ct_probed_file;

/* The caller sets the first group of fields. */
struct ct_probed_files {
    struct ct_programs *programs;
    struct ct_function_table *functions;
    const struct ct_selection *selection; /* the functions to probe */
    bool is_for_all;                      /* a file is probed in all processes */
    bool is_verbose;

    struct ct_probed_file *first;
    size_t functions_probed; /* number of probed functions of all files */
    bool is_announced;       /* ct_probed_files_announce() has printed that number */
};

/* Attaches probes to a file that the process `pid` maps or may map later, unless that has been tried before.
 * Prints any error, or why attaching must wait. After Ctrl-C, attaches to nothing. If a process keeps the
 * probe from attaching to the file in all processes for two seconds, attaches to it in every other process
 * for which this is called. If the process's first thread has exited, other processes reach the probes, too,
 * and a message says so. */
void ct_probed_files_attach(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t pid);
/* Returns whether the probe has tried to attach to the file in all processes. */
bool ct_probed_files_know(const struct ct_probed_files *files, const struct ct_mapped_driver *image);
/* If a process has prevented the probe from attaching to a file, or has ended too early, makes the next
 * ct_probed_files_attach() for that file try again. Returns whether there are such files. */
bool ct_probed_files_retry(struct ct_probed_files *files);
/* Prints that the functions are probed. Until the probe has attached to a file that another command is using,
 * prints nothing, because calls that begin then are missed. Afterwards, prints the message again. */
void ct_probed_files_announce(struct ct_probed_files *files);
/* Detaches from all files. */
void ct_probed_files_detach(struct ct_probed_files *files);

#endif
