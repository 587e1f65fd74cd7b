/* The daemon's log: lines with the time, on standard error, or in a file that is made at the first line. Any
 * thread. */
#ifndef CT_LOG_H
#define CT_LOG_H

void ct_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Lines go to the file at `path` from here on; the string stays the caller's and must live on. */
void ct_log_to(const char *path);

enum { CT_LOG_STAMP_BYTES = 40 };
/* The time as log lines have it. */
void ct_log_stamp(char stamp[CT_LOG_STAMP_BYTES]);

#endif
