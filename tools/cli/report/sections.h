/* Runs and prints the sections of a report or diff. A section shows the rows of a query. Called by report.c
 * and diff.c. */
#ifndef CT_SECTIONS_H
#define CT_SECTIONS_H

#include "print_rows.h"

struct ct_section {
    const char *name, *title, *about;
    /* In a report, sql[0] is the section's query, and sql[1] is the query of a note for human readers, or
     * NULL. If sql[2] is set and has rows, they replace the rows of sql[0]. In a diff, sql[0] runs on each
     * trace, and sql[1] compares the results. */
    const char *sql[3];
    bool wanted;

    /* Set by ct_section_run(): */
    char *text;
    size_t bytes;
    int64_t rows;
    char *verdict, bound_by[16]; /* the first row's `paragraph` and `bound_by`; NULL and empty: none */
    char *note;                  /* set by ct_section_note(); NULL: none */
    bool left_out;               /* the section has no rows, which is not an error */
    char problem[512];           /* the error message, or empty if there is none */
};

/* Marks the named sections as wanted, or all sections if no name is given. Returns false after reporting an
 * unknown name. */
bool ct_sections_choose(const char *command, struct ct_section *sections, size_t count, int names,
                        char **name);
/* Runs the statement, and stores its rows or its error in the section. Pass NULL if the statement could not
 * be prepared. The caller still owns the statement. Several threads may run sections at the same time. */
void ct_section_run(struct ct_section *section, sqlite3 *connection, sqlite3_stmt *statement,
                    enum ct_format format, int width);
/* Runs the statement of a note and stores the result in the section. If the statement fails, the section has
 * no note. */
void ct_section_note(struct ct_section *section, sqlite3_stmt *statement, enum ct_format format, int width);
/* Prints sections in their order, also before all have been run. */
struct ct_sections_printer {
    const char *command;
    const struct ct_section *sections;
    size_t count;
    enum ct_format format;
    size_t printed; /* sections printed or passed */
    bool has_begun; /* a section was printed */
    int status;     /* exit status */
};
/* Prints the sections before the given place that have not been printed. All of them have been run. */
void ct_sections_print_before(struct ct_sections_printer *printer, size_t place);
/* Prints the other sections, and the end. In human-readable formats, sections without rows are listed there.
 * Returns the exit status. */
int ct_sections_print_rest(struct ct_sections_printer *printer);
/* Returns the text of a command's help, which is `about` followed by a line for each section. The caller
 * frees the text. Returns NULL if out of memory. */
char *ct_sections_about(const char *about, const struct ct_section *sections, size_t count);
void ct_sections_finish(struct ct_section *sections, size_t count);

#endif
