/*
 * selftest.h: the frame of the simulated driver's own test. Each test runs in a process of its own, started
 * anew with the environment that its row names; it ends the process with 0, or at the first check that fails
 * with 1.
 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include "cuda_min.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define CHECK_RESULT(expected, call)                                                                         \
    do {                                                                                                     \
        const int expected_ = (int)(expected), result_ = (int)(call);                                        \
        if (expected_ != result_) {                                                                          \
            fprintf(stderr, "%s:%d: %s is %d and not %d\n", __FILE__, __LINE__, #call, result_, expected_);  \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

#define OK(call) CHECK_RESULT(CUDA_SUCCESS, call)

struct selftest {
    const char *name;
    void (*run)(void);
    const char *environment; /* NAME=VALUE separated by blanks; $TMP is a new folder of the test's own */
};

/* The tests of each file, ended by a row without a name. */
extern const struct selftest entry_tests[], memory_tests[], stream_tests[], graph_tests[];

CUcontext start(void);                   /* cuInit and a current context on device 0 */
const char *temporary(const char *name); /* a path in the test's own folder */
const char *source_folder(void);
int64_t now_ns(void);
CUfunction get_function(const char *name); /* of one module for all */

#endif
