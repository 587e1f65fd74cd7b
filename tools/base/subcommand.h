/* A command of `cudatrace`. Its file defines a struct ct_subcommand, and the list in cudatrace.c names the
 * command. */
#ifndef CT_SUBCOMMAND_H
#define CT_SUBCOMMAND_H

struct ct_subcommand {
    const char *name, *summary;
    /* Gets the arguments after `cudatrace`; argv[0] is the command. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

#endif
