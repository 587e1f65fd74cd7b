/* Prints a call on one line, in the style of strace or as a JSON object. Called by tail_print.c. */
#ifndef CT_TAIL_LINE_H
#define CT_TAIL_LINE_H

#include "call_stream.h"

#include <stdio.h>
#include <time.h>

struct ct_line_style {
    bool is_json, is_coloured;
    bool is_relative;           /* text lines begin with the seconds since the first line */
    bool has_threads;           /* each line names its thread, even a process's first thread */
    int text_width;             /* maximum width of kernel names and strings in characters; 0: no limit */
    int64_t realtime_offset_ns; /* as in the trace */
    /* Private to the functions below: the time of the first line (0: none yet), the last second printed, as a
     * number and as a string, and the width of the widest process. */
    int64_t first_ns;
    time_t second;
    char second_text[24];
    int who_width;
};

/* Prints a call, with its details from the stream. Must be called between ct_follow_look() and
 * ct_follow_rest(). */
void ct_line_call(FILE *to, struct ct_line_style *style, struct ct_stream *stream,
                  const struct ct_stream_call *call);
/* Prints how many calls were skipped at this point. */
void ct_line_not_shown(FILE *to, const struct ct_line_style *style, uint64_t calls);
/* Prints that an unknown number of calls were removed at this point before they could be read. */
void ct_line_removed(FILE *to, const struct ct_line_style *style);

#endif
