/* Runs and prints sections. A section has the rows of a query. Called by report.c and diff.c. */
#ifndef CT_SECTIONS_H
#define CT_SECTIONS_H

#include "print_rows.h"

struct ct_section {
    const char *name, *title, *about;
    /* For a report: the rows, then a note for people or NULL. For a diff: the query of both traces, then
     * their comparison. */
    const char *sql[2];
    bool wanted;

    /* Set by ct_section_run(): */
    char *text;
    size_t bytes;
    int64_t rows;
    char *note;        /* set by ct_section_note(); NULL: none */
    bool left_out;     /* it has no rows, for a reason that is not a failure */
    char problem[512]; /* empty for none */
};

/* Marks the named sections as wanted, or all if none is named. Returns false after reporting an unknown
 * name. */
bool ct_sections_choose(const char *command, struct ct_section *sections, size_t count, int names,
                        char **name);
/* Runs the statement and keeps its rows or its error. The statement is NULL if it could not be prepared. The
 * caller still owns it. Several threads may run sections at the same time. */
void ct_section_run(struct ct_section *section, sqlite3 *connection, sqlite3_stmt *statement,
                    enum ct_format format, int width);
/* Runs the statement of a note and keeps its result. If it fails, there is no note. */
void ct_section_note(struct ct_section *section, sqlite3_stmt *statement, enum ct_format format, int width);
/* Prints the sections that were run, in order. In formats for people, sections without rows are named at the
 * end. Returns the exit status. */
int ct_sections_print(const char *command, const struct ct_section *sections, size_t count,
                      enum ct_format format);
/* Returns `about` followed by a line for each section, for a command's help. The caller frees it. Returns
 * NULL if memory is short. */
char *ct_sections_about(const char *about, const struct ct_section *sections, size_t count);
void ct_sections_finish(struct ct_section *sections, size_t count);

#endif
