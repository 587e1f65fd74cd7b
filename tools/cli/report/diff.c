/* Implements `cudatrace diff`, which compares two traces. Each file in schema/diffs queries both traces for a
 * few rows, which become the tables a and b of an in-memory database. A second query compares the two
 * tables. */
#include "copy_table.h"
#include "printable.h"
#include "run_choice.h"
#include "sections.h"
#include "subcommand.h"
#include "trace_file.h"
#include "trace_open.h"

#include "schema_sql.h"

static struct ct_section sections[] = {
#define ROW(name_, title_, about_, side_, compare_)                                                          \
    { .name = name_, .title = title_, .about = about_, .sql = { side_, compare_ } },
    CT_DIFFS(ROW)
#undef ROW
};
enum { SECTIONS = sizeof(sections) / sizeof(sections[0]) };

/* Runs the section's query on one trace, and copies the result into a table in `both`. Returns false after
 * storing an error in the section. */
static bool take_side(struct ct_section *section, sqlite3 *trace, sqlite3 *both, const char *table)
{
    sqlite3_stmt *side = NULL;
    sqlite3 *blamed = trace;
    if (sqlite3_prepare_v2(trace, section->sql[0], -1, &side, NULL) != SQLITE_OK) {
        ct_section_run(section, trace, NULL, CT_FORMAT_TEXT, 0); /* stores the error in the section */
        return false;
    }
    const int rc = ct_copy_table(side, both, table, &blamed);
    if (rc != SQLITE_OK)
        snprintf(section->problem, sizeof(section->problem), "%s", ct_sqlite_why(blamed, rc));
    sqlite3_finalize(side);
    return rc == SQLITE_OK;
}

static void run_section(struct ct_section *section, sqlite3 *trace[2], sqlite3 *both, enum ct_format format)
{
    static const char *const tables[] = { "a", "b" };
    sqlite3_exec(both, "DROP TABLE IF EXISTS a; DROP TABLE IF EXISTS b", NULL, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        if (!take_side(section, trace[i], both, tables[i]))
            return;
    }
    sqlite3_stmt *compare = NULL;
    sqlite3_prepare_v2(both, section->sql[1], -1, &compare, NULL);
    ct_section_run(section, both, compare, format, ct_terminal_width());
    sqlite3_finalize(compare);
}

static int compare(char **path, const struct ct_run_choice run[2], int format)
{
    sqlite3 *trace[2] = { NULL, NULL }, *both = NULL;
    struct ct_series series;
    int status = EXIT_FAILURE;
    for (int i = 0; i < 2; i++) {
        if (!(trace[i] = ct_trace_open(path[i], &series)) ||
            ct_run_choose("diff", &run[i], &series, trace[i]) != CT_GO_ON)
            goto out;
    }
    if (sqlite3_open(":memory:", &both) != SQLITE_OK) {
        ct_fail(EXIT_FAILURE, "diff: %s", ct_sqlite_why(both, SQLITE_NOMEM));
        goto out;
    }
    for (size_t s = 0; s < SECTIONS; s++) {
        if (sections[s].wanted)
            run_section(&sections[s], trace, both, (enum ct_format)format);
    }
    status = ct_sections_print_rest(&(struct ct_sections_printer){
        .command = "diff", .sections = sections, .count = SECTIONS, .format = (enum ct_format)format });
out:
    ct_sections_finish(sections, SECTIONS);
    sqlite3_close(both);
    sqlite3_close(trace[0]);
    sqlite3_close(trace[1]);
    return status;
}

static int diff(int argc, char **argv)
{
    static const char about[] = "Compares two traces: before and after an update, a fast run and a slow one.";
    int format = CT_FORMAT_TEXT, first;
    bool is_last = false;
    struct ct_run_choice run[2] = { 0 };
    char *help = ct_sections_about(about, sections, SECTIONS);
    if (!help)
        return ct_fail(EXIT_FAILURE, "diff: out of memory");
    const struct ct_option options[] = {
        CT_OPTION_RUN("run-a", &run[0].number, "in A.db, only the processes of the run with this number"),
        CT_OPTION_RUN("run-b", &run[1].number, "the same in B.db, which may be the same file"),
        { .name = "last", .help = "in each trace without such a number, only the last run", .to = &is_last },
        CT_OPTION_FORMAT(&format),
        { 0 }
    };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "A.db B.db [SECTION…]",
        .about = help,
        .more = "`cudatrace report runs` lists the runs of a trace. Two runs of one trace:\n"
                "\n"
                "  cudatrace diff --run-a 1 --last trace.db trace.db\n"
                "\n"
                "Each section is an SQL file in schema/diffs of the source tree.\n"
    };
    const int status = ct_options_parse(argc, argv, &usage, &first);
    free(help);
    if (status != CT_GO_ON)
        return status;
    if (argc - first < 2)
        return ct_fail(EXIT_USAGE, "diff: specify two traces (see cudatrace diff --help)");
    if (!ct_sections_choose("diff", sections, SECTIONS, argc - first - 2, argv + first + 2))
        return EXIT_USAGE;
    for (int i = 0; i < 2; i++)
        run[i].is_last = is_last && run[i].number == 0;
    return compare(argv + first, run, format);
}

const struct ct_subcommand ct_subcommand_diff = { "diff", "compare two traces", diff };
