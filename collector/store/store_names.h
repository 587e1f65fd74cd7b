/* The names of what the store writes. */
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

/* Tables that get a row for a good part of all calls, with the values of one. */
enum ct_bulk {
    CT_BULK_LAUNCH,       /* call_id, shape_id, process_id */
    CT_BULK_TRANSFER,     /* call_id, route_id, source, destination */
    CT_BULK_CALL_SUBJECT, /* call_id, subject_id */
    CT_BULK_LONG_CALL,    /* call_id, start_ns */
    CT_BULK_COUNT
};

/* The values of free_allocation: process_id, address, start_ns, call_id, bytes, CT_FREE_SLACK_NS; and the
 * kind. */
enum { CT_FREE_VALUES = 6, CT_FREE_SLACK_NS = 20000 };

#endif
