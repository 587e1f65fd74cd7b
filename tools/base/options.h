/* The options of a command as a table: how they are read, what is said of wrong ones, and the command's help.
 */
#ifndef CT_OPTIONS_H
#define CT_OPTIONS_H

#include "say.h"

#include <stdint.h>

struct ct_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* names the kind of value for the help: FILE, T, PID, …; NULL: the option has none */
    const char *help;  /* a line, or more */
    void *to; /* the variable to set: a bool, or with a value a const char *, unless `take` says otherwise */
    /* Sets it; false for a value that is none. NULL takes any text. */
    bool (*take)(const struct ct_option *option, const char *value);
    const char *wrong; /* a clause about such a value: "wants a process number" */
    /* Parameters for `take`: */
    const char *choices; /* ct_take_choice(): "text|csv" */
    int64_t least, most; /* ct_take_number() */
    char letter;         /* a second, short name; 0: none */
};

/* A text that is not empty. */
bool ct_take_name(const struct ct_option *option, const char *value);
/* Into an int64_t. */
bool ct_take_number(const struct ct_option *option, const char *value);
/* Into an int: which of the choices. */
bool ct_take_choice(const struct ct_option *option, const char *value);

#define CT_OPTION_PID(to_)                                                                                   \
    {                                                                                                        \
        .name = "pid", .value = "PID", .help = "of this process alone (default: all)", .to = to_,            \
        .take = ct_take_number, .wrong = "wants a process number", .least = 1, .most = INT32_MAX             \
    }

struct ct_usage {
    const struct ct_option *options;
    const char *arguments; /* behind the options; NULL: none */
    const char *about;     /* before the table of options, paragraphs */
    const char *more;      /* behind it; may be NULL */
    bool is_mixed;         /* options may follow arguments */
};

enum { CT_GO_ON = -1 };
/* Reads the options, --help among them; *first gets the index of the first argument; options that
 * followed arguments are moved before them. CT_GO_ON, or the exit status after --help or a wrong option. */
int ct_options_parse(int argc, char **argv, const struct ct_usage *usage, int *first);
/* The same after an argument of a command that has none. */
int ct_options_check_arguments(int argc, char **argv, const struct ct_usage *usage, int first);

#endif
