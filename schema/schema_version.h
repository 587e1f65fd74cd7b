/* The version of the tables, which is PRAGMA user_version of a trace. Increment this version with any change
 * to tables.sql or views*.sql that a tool could notice. The daemon writes the version, and the tools check
 * it. */
#ifndef CT_SCHEMA_VERSION_H
#define CT_SCHEMA_VERSION_H

enum {
    CT_SCHEMA_VERSION = 14,
    CT_APPLICATION_ID = 0x43554454, /* "CUDT" */
};

#endif
