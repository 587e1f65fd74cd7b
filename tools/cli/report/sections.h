/* Runs and prints sections, each of them the rows of a query. Called by report.c and diff.c. */
#ifndef CT_SECTIONS_H
#define CT_SECTIONS_H

#include "print_rows.h"

struct ct_section {
    const char *name, *title, *about;
    /* The rows. Then, of a report, a note for people or NULL; of two traces, what both are asked. */
    const char *sql[2];
    bool wanted;

    /* Set by ct_section_run(): */
    char *text;
    size_t bytes;
    int64_t rows;
    char *note;        /* set by ct_section_note(): NULL for none */
    bool left_out;     /* true if it has no rows for a reason that is no failure */
    char problem[512]; /* empty for none */
};

/* Marks those that are named as wanted, all when none is. False after reporting an unknown name. */
bool ct_sections_choose(const char *command, struct ct_section *sections, size_t count, int names,
                        char **name);
/* Runs the statement, which may be NULL where preparing it failed, and keeps its rows or what went wrong. The
 * statement stays the caller's. Sections may be run by several threads at once. */
void ct_section_run(struct ct_section *section, sqlite3 *connection, sqlite3_stmt *statement,
                    enum ct_format format, int width);
/* Runs the statement of a note, and keeps what it returns. Where it fails there is no note. */
void ct_section_note(struct ct_section *section, sqlite3_stmt *statement, enum ct_format format, int width);
/* Prints what was run, in their order; those without a row are named at the end, for people. The exit status.
 */
int ct_sections_print(const char *command, const struct ct_section *sections, size_t count,
                      enum ct_format format);
/* `about` with a line for each section behind it, for a command's help; to be freed, NULL without memory. */
char *ct_sections_about(const char *about, const struct ct_section *sections, size_t count);
void ct_sections_finish(struct ct_section *sections, size_t count);

#endif
