/* Describes a command's options in a table, from which the parser, the error messages and the help text are
 * derived. */
#ifndef CT_OPTIONS_H
#define CT_OPTIONS_H

#include "say.h"

#include <stdint.h>

struct ct_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* the placeholder in the help: FILE, T, PID, …; NULL if the option takes no value */
    const char *help;  /* one or more lines */
    void *to; /* the variable to set: a bool, or a const char * for an option with a value, unless `take` sets
               * another type */
    /* Sets the variable. Returns false if the value is invalid. If `take` is NULL, any string is valid. */
    bool (*take)(const struct ct_option *option, const char *value);
    const char *wrong; /* describes valid values: "expected a process ID" */
    /* Parameters for `take`: */
    const char *choices; /* ct_take_choice(): "text|csv" */
    int64_t least, most; /* ct_take_number() */
    char letter;         /* the short option's letter; 0: none */
    bool or_next;        /* this option or the next one is required, which the synopsis shows */
};

/* Accepts any nonempty text. */
bool ct_take_name(const struct ct_option *option, const char *value);
/* Stores the number in an int64_t. */
bool ct_take_number(const struct ct_option *option, const char *value);
/* Stores the index of the choice in an int. */
bool ct_take_choice(const struct ct_option *option, const char *value);

#define CT_OPTION_PID(to_)                                                                                   \
    {                                                                                                        \
        .name = "pid", .value = "PID", .help = "only this process (default: all)", .to = to_,                \
        .take = ct_take_number, .wrong = "expected a process ID", .least = 1, .most = INT32_MAX              \
    }

struct ct_usage {
    const struct ct_option *options;
    const char *arguments; /* the arguments after the options; NULL: none */
    const char *about;     /* paragraphs printed before the table of options */
    const char *more;      /* paragraphs printed after the table; may be NULL */
    bool runs_command;     /* the first argument begins a command, which may have options of its own */
};

enum { CT_GO_ON = -1 };
/* Reads the options, including --help. Sets *first to the index of the first argument. Options that follow
 * arguments are moved in front of them, unless the arguments are a command. Returns CT_GO_ON, or the exit
 * status after --help or an invalid option. */
int ct_options_parse(int argc, char **argv, const struct ct_usage *usage, int *first);
/* Checks that a command without arguments was given none. Returns CT_GO_ON, or the exit status after
 * reporting an unexpected argument. */
int ct_options_check_arguments(int argc, char **argv, const struct ct_usage *usage, int first);

#endif
