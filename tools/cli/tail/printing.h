/* Prints calls in a separate thread while a command does its other work, for `run --print` and
 * `attach --print`. */
#ifndef CT_PRINTING_H
#define CT_PRINTING_H

#include <stdbool.h>
#include <stdint.h>

struct ct_printing {
    const char *command; /* the name in messages */
    bool is_wanted;      /* --print */
    bool is_relative;    /* --relative */
    const char *path;    /* --output; NULL: standard error */
    int fd;              /* the descriptor to write to; set by ct_printing_open() */
    struct ct_print_thread *thread;
};

#define CT_OPTIONS_OF_PRINTING(printing_)                                                                    \
    { "print", NULL, "print the calls as they return, like `cudatrace tail`, on standard error",             \
      &(printing_)->is_wanted },                                                                             \
        { "relative", NULL, "print the seconds since the first line instead of the time of day",             \
          &(printing_)->is_relative },                                                                       \
    {                                                                                                        \
        "output", "FILE", "print the calls to FILE as they return", &(printing_)->path, ct_take_name,        \
            "expected a file name"                                                                           \
    }

/* Opens the output file if --output was given. Returns false after reporting an error. */
bool ct_printing_open(struct ct_printing *printing);
/* Starts printing if --print was given. Only processes whose recording began at `since_ns` or later are
 * shown. `database` is the daemon's trace, or empty if this user cannot read it. Returns false after
 * reporting an error. */
bool ct_printing_start(struct ct_printing *printing, const char *database, int64_t since_ns);
/* Prints the remaining stored calls, reports how many calls were not shown, and closes the output file. Waits
 * until the reader has taken the last line. Returns false after reporting that the calls could not be
 * printed. */
bool ct_printing_finish(struct ct_printing *printing);

#endif
