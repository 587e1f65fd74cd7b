/* Passes GPU work, and the calls that caused it, to a format of `cudatrace export`. All calls are written
 * before the work. As they are written, their correlations and sizes are stored in a temporary database,
 * because a trace may have more calls than fit into memory. */
#ifndef CT_EXPORT_WORK_H
#define CT_EXPORT_WORK_H

#include "export_format.h"

/* Grid x, y, z, block x, y, z, and dynamic shared memory in bytes. */
enum { CT_SIZE_GRID_X, CT_SIZE_BLOCK_X = 3, CT_SIZE_SHARED_BYTES = 6, CT_LAUNCH_SIZES };

/* The call that caused a piece of work. */
struct ct_cause {
    int64_t call_id;     /* 0: the call is unknown, or the scope does not include it */
    int64_t correlation; /* the ID of the outermost runtime or driver call around it; 0 with call_id 0 */
    int64_t tid, start_ns;
    int64_t size[CT_LAUNCH_SIZES]; /* of the launch of one kernel; block x is 0 for other calls */
};

/* A piece of work, in the order of schema/exports.sql. The strings are valid only during the call to `work`.
 */
struct ct_work {
    int64_t process_id, device, context, stream, start_ns, end_ns;
    const char *kind;      /* kernel, copy, set or graph */
    const char *kernel;    /* demangled */
    const char *mangled;   /* NULL if unknown, or not of a kernel */
    const char *copy_kind; /* HtoD, …; NULL if not of a copy */
    int64_t bytes;         /* of copies and sets */
    int64_t graph, node;   /* 0: none */
    struct ct_cause cause;
    /* Work in one stream may overlap, for example in a graph, but work in one lane of a stream does not.
     * Lanes are numbered from 0, and streams from 1, in the order of their work. */
    int64_t stream_number;
    int lane;
    bool is_first_in_lane;
};

/* The maximum number of lanes of a stream. */
enum { CT_WORK_LANES = 32, CT_WORK_LANE_NAME_BYTES = 80 };
/* Names the lane, for example "GPU 0, stream 7". */
void ct_work_lane_name(const struct ct_work *work, char name[CT_WORK_LANE_NAME_BYTES]);

/* Finds the calls that caused work, unless the format has no causes. Returns false if SQLite failed or if out
 * of memory. */
bool ct_work_begin(struct ct_export *to, bool has_no_causes);
/* Returns whether a call caused work, and stores its details if it did. All calls must be passed when they
 * begin. */
bool ct_work_note_call(struct ct_export *to, const struct ct_event *event);
/* Calls `write` for each piece of work in the scope. Returns false if `write` or SQLite failed. */
typedef bool ct_work_write(struct ct_export *to, const struct ct_work *work);
bool ct_work_each(struct ct_export *to, ct_work_write *write);
/* May be called without ct_work_begin(). */
void ct_work_finish(struct ct_export *to);

#endif
