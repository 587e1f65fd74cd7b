/* Prints a call as a line, in the format of strace or as a JSON object. Called by tail_print.c. */
#ifndef CT_TAIL_LINE_H
#define CT_TAIL_LINE_H

#include "call_stream.h"

#include <stdio.h>
#include <time.h>

struct ct_line_style {
    bool is_json, is_coloured;
    bool has_threads;           /* each line names its thread, even the first of a process */
    int text_width;             /* kernel names and texts are cut to this many characters; 0: not cut */
    int64_t realtime_offset_ns; /* as in the trace */
    /* Private to the functions below: the last second that was printed, its text, and the width of the widest
     * process. */
    time_t second;
    char second_text[24];
    int who_width;
};

/* Prints a call with its details from the stream. Called within a look. */
void ct_line_call(FILE *to, struct ct_line_style *style, struct ct_stream *stream,
                  const struct ct_stream_call *call);
/* Prints the number of calls that were skipped here. */
void ct_line_not_shown(FILE *to, const struct ct_line_style *style, uint64_t calls);
/* Prints that calls were removed here before they were read. Their number is not known. */
void ct_line_removed(FILE *to, const struct ct_line_style *style);

#endif
