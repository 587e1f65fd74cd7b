/* A command of `cudatrace`: its file defines one, and the list in cudatrace.c names it. */
#ifndef CT_SUBCOMMAND_H
#define CT_SUBCOMMAND_H

struct ct_subcommand {
    const char *name, *summary;
    /* Gets the arguments after `cudatrace`; argv[0] is the command. Returns the exit status. */
    int (*run)(int argc, char **argv);
};

#endif
