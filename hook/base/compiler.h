/* Compiler extensions.
 *
 * The whole hook is compiled with -fvisibility=hidden, which affects only definitions. Data declarations need
 * an attribute for the same effect, so that the compiler accesses the data without the global offset
 * table. */
#ifndef CT_COMPILER_H
#define CT_COMPILER_H

#define CT_LOCAL           __attribute__((visibility("hidden")))
#define CT_LIKELY(x)       __builtin_expect(!!(x), 1)
#define CT_UNLIKELY(x)     __builtin_expect(!!(x), 0)
#define CT_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#endif
