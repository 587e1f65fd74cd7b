#include "sections.h"

#include "trace_file.h"

#include <string.h>

bool ct_sections_choose(const char *command, struct ct_section *sections, size_t count, int names,
                        char **name)
{
    for (size_t s = 0; s < count; s++)
        sections[s].wanted = names == 0;
    for (int i = 0; i < names; i++) {
        bool known = false;
        for (size_t s = 0; s < count; s++) {
            const bool meant = strcmp(name[i], sections[s].name) == 0;
            sections[s].wanted |= meant;
            known |= meant;
        }
        if (!known)
            return ct_fail(false, "%s: no section '%s' (see cudatrace %s --help)", command, name[i], command);
    }
    return true;
}

/* Keeps the conclusion of a section, for sections that repeat it. */
static void keep_verdict(sqlite3_stmt *row, void *data)
{
    struct ct_section *section = data;
    for (int c = 0; c < sqlite3_column_count(row); c++) {
        const char *name = sqlite3_column_name(row, c), *text = (const char *)sqlite3_column_text(row, c);
        if (text && strcmp(name, "bound_by") == 0)
            snprintf(section->bound_by, sizeof(section->bound_by), "%s", text);
        else if (text && strcmp(name, "paragraph") == 0)
            section->verdict = strdup(text);
    }
}

void ct_section_run(struct ct_section *section, sqlite3 *connection, sqlite3_stmt *statement,
                    enum ct_format format, int width)
{
    FILE *to = statement ? open_memstream(&section->text, &section->bytes) : NULL;
    struct ct_printed printed = { .on_first = keep_verdict, .data = section };
    const int rc = to ? ct_print_rows(statement, format, width, to, &printed) : SQLITE_NOMEM;
    section->rows = printed.rows;
    if (rc == SQLITE_OK) {
        if (fclose(to) != 0)
            snprintf(section->problem, sizeof(section->problem), "out of memory");
        return;
    }
    char why[256];
    section->left_out = !statement && ct_trace_why(connection, rc, why, sizeof(why));
    snprintf(section->problem, sizeof(section->problem), "%s%s", section->left_out ? "left out: " : "",
             statement && !to    ? "out of memory"
             : section->left_out ? why
                                 : ct_sqlite_why(connection, rc));
    if (to)
        fclose(to);
}

void ct_section_note(struct ct_section *section, sqlite3_stmt *statement, enum ct_format format, int width)
{
    size_t bytes;
    struct ct_printed printed = { 0 };
    FILE *to = open_memstream(&section->note, &bytes);
    const int rc = to ? ct_print_rows(statement, format, width, to, &printed) : SQLITE_NOMEM;
    if ((to && fclose(to) != 0) || rc != SQLITE_OK || printed.rows == 0) {
        free(section->note);
        section->note = NULL;
    }
}

static bool says_nothing(const struct ct_section *section)
{
    return section->rows == 0 && !section->note;
}

static void print_head(const struct ct_section *section, enum ct_format format, bool first)
{
    switch (format) {
    case CT_FORMAT_TEXT:
        printf("%s%s\n\n", first ? "" : "\n", section->title);
        break;
    case CT_FORMAT_MARKDOWN:
        printf("%s## %s\n\n%s\n\n", first ? "" : "\n", section->title, section->about);
        break;
    case CT_FORMAT_JSON:
        printf("%s\"%s\": ", first ? "{\n" : ",\n", section->name);
        break;
    default:
        fputs(first ? "" : "\n", stdout);
    }
}

static void print_section(const struct ct_section *section, enum ct_format format, bool first)
{
    print_head(section, format, first);
    if (section->rows > 0 || !section->note)
        fwrite(section->text, 1, section->bytes, stdout);
    if (section->note)
        printf("%s%s", section->rows > 0 ? "\n" : "", section->note);
}

static void name_empty(const struct ct_section *sections, size_t count, bool first)
{
    const char *before = first ? "No data: " : "\nNo data: ";
    for (size_t s = 0; s < count; s++) {
        if (!sections[s].wanted || sections[s].problem[0] || !says_nothing(&sections[s]))
            continue;
        printf("%s%s", before, sections[s].name);
        before = ", ";
    }
    if (*before == ',')
        putchar('\n');
}

static bool is_for_people(enum ct_format format)
{
    return format == CT_FORMAT_TEXT || format == CT_FORMAT_MARKDOWN;
}

void ct_sections_print_before(struct ct_sections_printer *printer, size_t place)
{
    for (; printer->printed < place; printer->printed++) {
        const struct ct_section *section = &printer->sections[printer->printed];
        if (!section->wanted)
            continue;
        if (section->problem[0]) {
            ct_fail(0, "%s: %s: %s", printer->command, section->name, section->problem);
            printer->status = section->left_out ? printer->status : EXIT_FAILURE;
        } else if (!says_nothing(section) || !is_for_people(printer->format)) {
            print_section(section, printer->format, !printer->has_begun);
            printer->has_begun = true;
        }
    }
}

int ct_sections_print_rest(struct ct_sections_printer *printer)
{
    ct_sections_print_before(printer, printer->count);
    if (printer->format == CT_FORMAT_JSON)
        fputs(printer->has_begun ? "}\n" : "{}\n", stdout);
    if (is_for_people(printer->format))
        name_empty(printer->sections, printer->count, !printer->has_begun);
    return printer->status;
}

char *ct_sections_about(const char *about, const struct ct_section *sections, size_t count)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return NULL;
    fprintf(to,
            "%s\n"
            "Sections (default: all):\n"
            "\n",
            about);
    for (size_t s = 0; s < count; s++)
        fprintf(to, "  %-11s %s\n", sections[s].name, sections[s].title);
    return fclose(to) == 0 ? text : NULL;
}

void ct_sections_finish(struct ct_section *sections, size_t count)
{
    for (size_t s = 0; s < count; s++) {
        free(sections[s].text);
        free(sections[s].note);
        free(sections[s].verdict);
    }
}
