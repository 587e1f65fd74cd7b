/* Converts a trace in JSON lines, as written by `cudatrace export --format jsonl`, to the frames of a
 * recording (dump.h). A line reports that a call began ("phase":"B") or returned ("E"). Both lines have the
 * call's op_id.
 *
 * Lines written by other programs can also be read if they have ts (seconds), op_id, phase and name. An
 * `instance` from 2 on tells apart processes that have the same pid. The other members default to process 1,
 * the process's first thread, the layer that matches the name, and status 0. */
#ifndef CT_JSON_LINES_H
#define CT_JSON_LINES_H

#include "dropped.h"
#include "dump_buffer.h"

struct ct_json_lines;

/* Reads `fd` from byte `from` on, and takes ownership of it. If out of memory, returns NULL and leaves `fd`
 * to the caller. Lines that cannot be stored are counted in `dropped`. Set `is_converted` if the lines were
 * converted from another format. They are then counted without line numbers. */
struct ct_json_lines *ct_json_lines_open(int fd, int64_t from, bool is_converted, struct ct_dropped *dropped);
void ct_json_lines_close(struct ct_json_lines *lines);

/* Reads a few thousand lines. Returns the frame made from these lines, which is valid until the next call, or
 * NULL at the end of the file or if out of memory. If the file ends early, sets `problem` to the rest of a
 * sentence with the line number and the reason. */
const struct ct_dump_frame *ct_json_lines_next(struct ct_json_lines *lines, char *problem, size_t bytes);

#endif
