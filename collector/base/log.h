/* The daemon's log: one line for one event, on standard error, or in a file that is made at the first line.
 * Any thread.
 *
 * In a file and on a terminal a line is "DATE TIME cudatraced[PID]: LEVEL: TEXT"; where standard error is the
 * journal's it is "<N>TEXT", N being the journal's number of the level. A control character, or a byte that
 * is no UTF-8, stands in it as \xNN: what a program calls itself makes no line of its own. */
#ifndef CT_LOG_H
#define CT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ct_log_level { CT_LOG_ERROR, CT_LOG_WARNING, CT_LOG_NOTICE, CT_LOG_INFO, CT_LOG_DEBUG, CT_LOG_LEVELS };

/* Names what a line tells of. Lines of one kind share a limit in each minute (log.def). */
enum ct_log_kind {
#define KIND(name, level, burst) CT_LOG_##name,
#include "log.def"
#undef KIND
    CT_LOG_KINDS
};

void ct_log(enum ct_log_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Lines go to the file at `path` from here on; the string stays the caller's and must live on. */
void ct_log_to(const char *path);
/* Writes a line of level error, stamped with the last second that ct_log_catch_up() saw. In a signal's
 * handler. */
void ct_log_last_words(const char *text);
/* Lines of `level` and graver ones are written; CT_LOG_NOTICE at first. */
void ct_log_set_level(enum ct_log_level level);
/* "error", "warning", "notice", "info", "debug"; false for another word. */
bool ct_log_parse_level(const char *name, enum ct_log_level *level);

/* Says how many lines were left out of each kind whose minute is over at `now_ns` (CLOCK_MONOTONIC;
 * UINT64_MAX: of all). */
void ct_log_catch_up(uint64_t now_ns);

/* A name or a path in double quotes, those in it and backslashes behind a backslash; cut to what fits. */
enum { CT_LOG_NAME_BYTES = 600 };
const char *ct_log_quote(char quoted[CT_LOG_NAME_BYTES], const char *name);

/* A line stays a line, and says nothing to the terminal that shows it: control characters are \xNN. */
void ct_log_printable(const char *text, char *out, size_t bytes);

enum { CT_LOG_STAMP_BYTES = 40 };
/* The time as log lines have it. */
void ct_log_stamp(char stamp[CT_LOG_STAMP_BYTES]);

#endif
