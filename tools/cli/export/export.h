/* `cudatrace export`, and commands like it. */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "export_format.h"

/* A command that exports. With `format` it has that one, whose `about` is its help, and writes to `output`
 * unless it is told where. */
int ct_export_command(int argc, char **argv, const struct ct_export_format *format, const char *output);

#endif
