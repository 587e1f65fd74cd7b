/* Implements `cudatrace export`, and other commands that export. */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "export_format.h"

/* Runs a command that exports. If `format` is not NULL, it is the command's only format, its `about` is the
 * command's help, and `output` is the default for --output. */
int ct_export_command(int argc, char **argv, const struct ct_export_format *format, const char *output);

#endif
