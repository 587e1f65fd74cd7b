/* workload.h: options and the initialization of the driver, which all workloads share. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "../ensure.h"
#include "driver.h"

#include <stdint.h>

#define OK(call) EXPECT(CUDA_SUCCESS, call)

/* An option takes a number, a string, or a word from a list. For a word, the word's index is stored. */
struct option_row {
    const char *name, *argument, *help;
    long long *number; /* from low to high */
    long long low, high;
    const char **text;
    const char *const *words; /* terminated by NULL; the index is stored in *number */
};

/* Parses argv, handles --help, and exits with status 2 if an option or a value is invalid. The last row's
 * name is NULL. */
void options_read(int argc, char **argv, const char *summary, const struct option_row *rows);

#define NUMBER_OPTION(name_, help_, number_, low_, high_)                                                    \
    {                                                                                                        \
        .name = (name_), .argument = "N", .help = (help_), .number = (number_), .low = (low_),               \
        .high = (high_)                                                                                      \
    }
#define TEXT_OPTION(name_, argument_, help_, text_)                                                          \
    {                                                                                                        \
        .name = (name_), .argument = (argument_), .help = (help_), .text = (text_)                           \
    }
#define WORD_OPTION(name_, argument_, help_, index_, words_)                                                 \
    {                                                                                                        \
        .name = (name_), .argument = (argument_), .help = (help_), .number = (index_), .words = (words_)     \
    }

extern const char *const via_words[]; /* in the order of enum via */
#define VIA_OPTION(variable)                                                                                 \
    WORD_OPTION("via", "WAY", "how to reach the driver: linked, dlsym or procaddress", variable, via_words)

/* Pauses without making a driver call, for workloads that simulate work on the host. */
void pause_ns(long long ns);

/* Calls cuInit, then retains device 0's primary context and makes it current. */
CUcontext driver_start(void);

/* Launches fill_u32, the kernel that the simulated driver actually executes. */
CUresult launch_fill(CUfunction function, CUdeviceptr at, uint32_t value, uint32_t count, CUstream stream);

#endif
