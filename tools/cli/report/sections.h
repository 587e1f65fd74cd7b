/* What is printed in sections, each of them the rows of a query. Called by report.c and diff.c. */
#ifndef CT_SECTIONS_H
#define CT_SECTIONS_H

#include "cudatrace.h"

#include <sqlite3.h>

struct ct_section {
    const char *name, *title, *about;
    bool wanted;

    /* Of ct_section_run(). */
    char *text;
    size_t bytes;
    int64_t rows;
    bool left_out;     /* for a reason that is no failure */
    char problem[512]; /* empty for none */
};

/* Marks those that are named as wanted, all when none is. False after reporting an unknown name. */
bool ct_sections_choose(const char *command, struct ct_section *sections, size_t count, int names,
                        char **name);
/* Runs the statement, which may be NULL where preparing it failed, and keeps its rows or what went wrong. The
 * statement stays the caller's. Sections may be run by several threads at once. */
void ct_section_run(struct ct_section *section, sqlite3 *connection, sqlite3_stmt *statement,
                    enum ct_format format, int width);
/* Prints what was run, in their order; those without a row are named at the end, for people. The exit status.
 */
int ct_sections_print(const char *command, const struct ct_section *sections, size_t count,
                      enum ct_format format);
/* The help of a command, with a line for each section between `head` and `tail`; to be freed, NULL without
 * memory. */
char *ct_sections_help(const char *head, const struct ct_section *sections, size_t count, const char *tail);
/* report.c: all its sections, as JSON, of what is chosen by process and time; the caller finishes them. Once
 * a process. */
struct ct_stream_choice;
struct ct_section *ct_report_sections(sqlite3 *connection, const struct ct_stream_choice *choice,
                                      size_t *count);
void ct_sections_finish(struct ct_section *sections, size_t count);

#endif
