/* Implements `cudatrace export` and other commands that export a trace. */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "export_format.h"

/* Runs a command that exports a trace. If `format` is not NULL, it is the command's only format, and its
 * `about` is the help text. `output` is then the default for --output. */
int ct_export_command(int argc, char **argv, const struct ct_export_format *format, const char *output);

#endif
