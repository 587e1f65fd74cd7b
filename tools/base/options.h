/* Describes the options of a command as a table, which gives the parser, the messages about wrong values, and
 * the command's help. */
#ifndef CT_OPTIONS_H
#define CT_OPTIONS_H

#include "say.h"

#include <stdint.h>

struct ct_option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* names the kind of value for the help: FILE, T, PID, …; NULL: the option has none */
    const char *help;  /* one or more lines */
    void *to; /* the variable to set: a bool, or a const char * for an option with a value, unless `take` sets
               * another type */
    /* Sets the variable. Returns false if the value is not valid. If `take` is NULL, any text is valid. */
    bool (*take)(const struct ct_option *option, const char *value);
    const char *wrong; /* what is valid: "expected a process ID" */
    /* Parameters for `take`: */
    const char *choices; /* ct_take_choice(): "text|csv" */
    int64_t least, most; /* ct_take_number() */
    char letter;         /* a second, short name; 0: none */
    bool or_next;        /* the synopsis shows that this option or the next one is required */
};

/* Accepts any text that is not empty. */
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
    const char *about;     /* paragraphs before the table of options */
    const char *more;      /* paragraphs after the table; may be NULL */
    bool is_mixed;         /* options may follow arguments */
};

enum { CT_GO_ON = -1 };
/* Reads the options, including --help. *first gets the index of the first argument. Options that follow
 * arguments are moved before them. Returns CT_GO_ON, or the exit status after --help or an invalid option. */
int ct_options_parse(int argc, char **argv, const struct ct_usage *usage, int *first);
/* Reports an argument of a command that takes none. Returns CT_GO_ON or the exit status. */
int ct_options_check_arguments(int argc, char **argv, const struct ct_usage *usage, int first);

#endif
