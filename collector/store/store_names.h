/* Names for the statements and values that the store writes. */
#ifndef CT_STORE_NAMES_H
#define CT_STORE_NAMES_H

#include "schema_sql.h"

/* The statements of schema/store.sql. */
enum ct_statement {
#define ROW(name) CT_SQL_##name,
    CT_STORE_PARTS(ROW)
#undef ROW
        CT_SQL_COUNT
};

/* The tables collected in bulk.h, and the values in a row of each. */
enum ct_bulk {
    CT_BULK_CALL,         /* end_ns, duration_ns, site_id, bytes */
    CT_BULK_LAUNCH,       /* call_id, shape_id, process_id */
    CT_BULK_TRANSFER,     /* call_id, route_id, source, destination */
    CT_BULK_CALL_SUBJECT, /* call_id, subject_id */
    CT_BULK_LONG_CALL,    /* call_id, start_ns */
    CT_BULK_GPU_RUN,      /* run_id, gpu_task_id, start_ns, duration_ns, correlation, queued_ns, bytes */
    CT_BULK_COUNT
};

/* The kinds of combinations whose IDs are assigned in memory. A row in the database defines each ID. */
enum ct_number {
    CT_NUMBER_SITE,
    CT_NUMBER_SHAPE,   /* process_id, kernel, grid, block, shared_bytes, stream, captured */
    CT_NUMBER_ROUTE,   /* process_id, enum ct_transfer_kind, async, stream, captured; its kind as a string */
    CT_NUMBER_SUBJECT, /* process_id, captured, then enum ct_role and handle of three objects */
    CT_NUMBER_FIELD_SET, /* function_id, then the type and name of each field */
    /* process_id, enum ct_gpu_work_kind, enum ct_transfer_kind, kernel, device, context, stream, graph, node;
     * its kind as a string */
    CT_NUMBER_GPU_TASK,
    CT_NUMBER_TEXT,
    CT_NUMBERS
};
enum {
    CT_SHAPE_VALUES = 11,
    CT_ROUTE_VALUES = 5,
    CT_SUBJECT_VALUES = 8,
    CT_FIELD_SET_VALUES = 26,
    CT_GPU_TASK_VALUES = 9
};

/* The number of values for free_allocation: process_id, address, start_ns, call_id, bytes and
 * CT_FREE_SLACK_NS. The kind follows as a string. */
enum { CT_FREE_VALUES = 6, CT_FREE_SLACK_NS = 20000 };

#endif
