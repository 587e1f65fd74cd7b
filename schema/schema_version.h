/* The version of the tables, PRAGMA user_version of a trace. Any change to tables.sql or views.sql that a
 * tool can notice increments it. Shared by the daemon, which writes it, and the tools, which check it. */
#ifndef CT_SCHEMA_VERSION_H
#define CT_SCHEMA_VERSION_H

enum {
    CT_SCHEMA_VERSION = 9,
    CT_APPLICATION_ID = 0x43554454, /* "CUDT" */
};

#endif
