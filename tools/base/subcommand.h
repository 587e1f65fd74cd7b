/* Describes a command of `cudatrace`. Each command's file defines a struct ct_subcommand, which is listed in
 * cudatrace.c. */
#ifndef CT_SUBCOMMAND_H
#define CT_SUBCOMMAND_H

struct ct_subcommand {
    const char *name, *summary;
    /* Runs the command with the arguments that follow `cudatrace`, and returns the exit status. argv[0] is
     * the command's name. */
    int (*run)(int argc, char **argv);
};

#endif
