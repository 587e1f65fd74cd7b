/* The version of the tables, stored as PRAGMA user_version in a trace. Increment it with any change to
 * tables.sql or views*.sql that a tool could notice. The daemon writes the version, and the tools check
 * it. */
#ifndef CT_SCHEMA_VERSION_H
#define CT_SCHEMA_VERSION_H

enum {
    CT_SCHEMA_VERSION = 21,
    CT_APPLICATION_ID = 0x43554454, /* "CUDT" */
};

#endif
