/* The files of libcuda with probes, each in one process or in all processes. */
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
 * Prints an error, and why the file cannot be attached to yet. */
void ct_probed_files_attach(struct ct_probed_files *files, const struct ct_mapped_driver *image, pid_t pid);
/* Returns whether attaching to the file in all processes has been tried. */
bool ct_probed_files_know(const struct ct_probed_files *files, const struct ct_mapped_driver *image);
/* Lets the next ct_probed_files_attach() try again if a process prevented the last attempt. Returns whether
 * there is such a file. */
bool ct_probed_files_retry(struct ct_probed_files *files);
/* Prints that the functions are probed, once for each time that another command has kept a file from being
 * probed. Prints nothing while there is such a file, because calls that begin then would be missed. */
void ct_probed_files_announce(struct ct_probed_files *files);
/* Detaches from all files. */
void ct_probed_files_detach(struct ct_probed_files *files);

#endif
