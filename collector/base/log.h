/* The daemon's log: one line per event, written to standard error or to a file, which is created when the
 * first line is written. Can be used from any thread.
 *
 * In a file or on a terminal, a line has the form "DATE TIME cudatraced[PID]: LEVEL: TEXT". If standard error
 * is connected to the journal, the form is "<N>TEXT", where N is the journal's number for the level. Control
 * characters and bytes that are not UTF-8 are written as \xNN, so that a program's name cannot start a
 * separate line. */
#ifndef CT_LOG_H
#define CT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ct_log_level { CT_LOG_ERROR, CT_LOG_WARNING, CT_LOG_NOTICE, CT_LOG_INFO, CT_LOG_DEBUG, CT_LOG_LEVELS };

/* The kind of event. All lines of the same kind share one per-minute limit (log.def). */
enum ct_log_kind {
#define KIND(name, level, burst) CT_LOG_##name,
#include "log.def"
#undef KIND
    CT_LOG_KINDS
};

void ct_log(enum ct_log_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes the log write all further lines to the file at `path`. The caller keeps ownership of the string,
 * which must remain valid. */
void ct_log_to(const char *path);
/* Writes a line at level `error`, with the time that ct_log_catch_up() last recorded. Async-signal-safe. */
void ct_log_last_words(const char *text);
/* Sets the least severe level that is still written, initially CT_LOG_NOTICE. */
void ct_log_set_level(enum ct_log_level level);
/* Parses "error", "warning", "notice", "info" or "debug". Returns false for any other word. */
bool ct_log_parse_level(const char *name, enum ct_log_level *level);

/* For each kind of line whose minute has ended by `now_ns` (CLOCK_MONOTONIC), logs how many lines were
 * suppressed. If `now_ns` is UINT64_MAX, does this for all kinds. */
void ct_log_catch_up(uint64_t now_ns);

/* Puts a name or path in double quotes, and escapes quotes and backslashes in it. Truncates the result to
 * fit. */
enum { CT_LOG_NAME_BYTES = 600 };
const char *ct_log_quote(char quoted[CT_LOG_NAME_BYTES], const char *name);

/* Copies a line and replaces control characters with \xNN, so that the text stays one line and cannot control
 * the terminal. */
void ct_log_printable(const char *text, char *out, size_t bytes);

enum { CT_LOG_STAMP_BYTES = 40 };
/* Writes the current time in the log's format. */
void ct_log_stamp(char stamp[CT_LOG_STAMP_BYTES]);

#endif
