/* A trace in JSON lines, as `cudatrace export --format jsonl` writes them, made into the frames of a
 * recording (dump.h). A line is when a call began ("phase":"B") or returned ("E"); both have the call's
 * op_id.
 *
 * Lines that other programs wrote are read, too. Wanted are ts (seconds), op_id, phase and name. Where pid,
 * tid, layer and details are missing, the process is 1, the thread its first, the layer that of the name, and
 * the status 0. */
#ifndef CT_JSON_LINES_H
#define CT_JSON_LINES_H

#include "dump_buffer.h"

enum { CT_JSON_LINE_BYTES = 256 * 1024 }; /* the longest line */

struct ct_json_lines;

/* Reads `fd`, which becomes the reader's, from byte `from` on. Returns NULL without memory; `fd` is the
 * caller's then. */
struct ct_json_lines *ct_json_lines_open(int fd, int64_t from);
void ct_json_lines_close(struct ct_json_lines *lines);

/* Reads some thousand lines. Returns their frame, valid until the next call, or NULL at the end of the file,
 * and without memory. A line that cannot be read ends the file: `problem` says which and why. */
const struct ct_dump_frame *ct_json_lines_next(struct ct_json_lines *lines, char *problem, size_t bytes);

#endif
