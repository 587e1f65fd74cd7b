/* Implements `cudatrace timeline`, which draws a line of letters for each thread, with time running from left
 * to right. */
#include "call_stream.h"
#include "intern.h"
#include "number.h"
#include "printable.h"
#include "run_choice.h"
#include "sessions.h"
#include "subcommand.h"
#include "trace_file.h"

#include "schema_sql.h"

#include <string.h>
#include <unistd.h>

enum {
    WIDTH_MIN = 40,
    WIDTH_OTHERWISE = 100,
    WIDTH_MAX = 2000,
    ROWS_SHOWN = 40,
    ROWS_BYTES = 128 << 20, /* memory for the rows of one batch */
};

/* Each category's letter, and its colour as SGR parameters. Categories that are not listed here count as
 * "other". */
static const struct {
    const char *category;
    char letter;
    const char *colour;
} letters[] = {
    { "launch", 'L', "32" }, { "graph", 'G', "92" },      { "copy", 'C', "34" },    { "set", 'Z', "36" },
    { "memory", 'M', "35" }, { "sync", 'W', "31" },       { "event", 'E', "33" },   { "stream", 'S', "93" },
    { "module", 'O', "95" }, { "init", 'I', "96" },       { "context", 'X', "37" }, { "device", 'D', "90" },
    { "query", 'Q', "90" },  { "image", 'A', "94" },      { "interop", 'T', "91" }, { "control", 'K', "90" },
    { "range", 'R', "94" },  { "scheduling", 'B', "33" }, { "kernel", 'N', "92" },  { "library", 'Y', "37" },
    { "other", '?', "0" },
};
enum { LETTERS = sizeof(letters) / sizeof(letters[0]), OTHER = LETTERS - 1 };

/* The lines of a thread. If several layers are drawn, these layers have lines of their own, below the first
 * one, which shows the driver and the runtime. */
static const char *const lines[] = { NULL, "nvtx", "hook", "ioctl", "kernel" };
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

struct row {
    int64_t process_id, pid, tid; /* tid: negative for a stream (schema/exports.sql) */
    char *command, *name;
    int64_t *ns[LINES]; /* time by column and letter; NULL if there was no call */
};

struct timeline {
    struct ct_scope scope;
    const char *around;
    int64_t width; /* characters per line; 0 if not given */
    int colour;    /* index of the choice given with --color */
    sqlite3 *connection;
    struct ct_extent extent;
    int64_t from_ns, to_ns;
    int label, columns;       /* characters in a line before the letters, and number of letters */
    sqlite3_stmt *threads;    /* the query for threads and streams that have no row yet */
    bool has_work;            /* the trace has the view gpu_work */
    bool has_lines;           /* several layers are drawn */
    struct row *rows;         /* the rows of the current batch, in printing order */
    int64_t *nothing;         /* a line without calls */
    struct ct_intern numbers; /* row numbers, starting at 1, by process and thread */
    size_t count, room;
    bool used[LETTERS]; /* letters printed so far */
    int64_t process_id; /* the process of the last row printed */
    int shown, left_out;
};

/* ---- the window ---- */

/* Sets the window to a call plus a margin before and after it. The margin is the call's duration or 1/2000 of
 * the trace, whichever is longer. */
static int take_around(struct timeline *timeline)
{
    int64_t id = 0;
    const bool is_number = ct_number_parse(timeline->around, 0, INT64_MAX, &id);
    const int64_t start_ns =
        ct_ask_number(timeline->connection, "SELECT start_ns FROM calls WHERE call_id = ?1", id, -1);
    if (!is_number || start_ns < 0)
        return ct_fail(
            is_number ? EXIT_FAILURE : EXIT_USAGE,
            "timeline: invalid value '%s' for --around: expected the call_id of a call in the trace",
            timeline->around);
    int64_t more_ns = (timeline->extent.end_ns - timeline->extent.begin_ns) / 2000;
    more_ns = more_ns > id - start_ns ? more_ns : id - start_ns;
    timeline->from_ns = start_ns - more_ns;
    timeline->to_ns = id + more_ns;
    return CT_GO_ON;
}

static int take_window(struct timeline *timeline)
{
    struct ct_scope *scope = &timeline->scope;
    const struct ct_extent *extent = &timeline->extent;
    if (timeline->around && (scope->from || scope->to))
        return ct_fail(EXIT_USAGE, "timeline: --around cannot be combined with --from or --to");
    if (timeline->around)
        return take_around(timeline);
    const int status = ct_scope_settle(scope, "timeline", extent);
    if (status != CT_GO_ON)
        return status;
    timeline->from_ns = scope->from ? scope->from_ns : extent->begin_ns;
    timeline->to_ns = scope->to                           ? scope->to_ns
                      : extent->end_ns > extent->begin_ns ? extent->end_ns
                                                          : extent->begin_ns + 1;
    return timeline->from_ns < timeline->to_ns ? CT_GO_ON
                                               : ct_scope_say_empty(EXIT_FAILURE, "timeline", extent);
}

/* ---- rows ---- */

/* Returns the row of a thread, or NULL if the thread is not in this batch of rows. */
static struct row *find_row(const struct timeline *timeline, int64_t process_id, int64_t tid)
{
    const int64_t number = ct_intern_find(&timeline->numbers, (const int64_t[]){ process_id, tid });
    return number ? &timeline->rows[number - 1] : NULL;
}

static void drop_rows(struct timeline *timeline)
{
    for (size_t i = 0; i < timeline->count; i++) {
        free(timeline->rows[i].command);
        free(timeline->rows[i].name);
        for (int line = 0; line < LINES; line++)
            free(timeline->rows[i].ns[line]);
    }
    timeline->count = 0;
}

static char *copy_text(sqlite3_stmt *rows, int column)
{
    const char *text = (const char *)sqlite3_column_text(rows, column);
    return strdup(text ? text : "");
}

/* Replaces the rows with the next threads, as many as there is room for. Returns SQLITE_ROW, SQLITE_DONE if
 * there are no more threads, or an error. */
static int take_rows(struct timeline *timeline)
{
    int rc = SQLITE_DONE;
    drop_rows(timeline);
    ct_intern_reset(&timeline->numbers, 1);
    while (timeline->threads && timeline->count < timeline->room &&
           (rc = sqlite3_step(timeline->threads)) == SQLITE_ROW) {
        struct row *row = &timeline->rows[timeline->count++];
        *row = (struct row){ .process_id = sqlite3_column_int64(timeline->threads, 0),
                             .pid = sqlite3_column_int64(timeline->threads, 1),
                             .tid = sqlite3_column_int64(timeline->threads, 3),
                             .command = copy_text(timeline->threads, 2),
                             .name = copy_text(timeline->threads, 4) };
        bool is_new;
        if (!row->command || !row->name ||
            !ct_intern_get(&timeline->numbers, (const int64_t[]){ row->process_id, row->tid }, &is_new))
            return SQLITE_NOMEM;
    }
    if (rc == SQLITE_DONE) {
        sqlite3_finalize(timeline->threads); /* calling sqlite3_step() again would restart the query */
        timeline->threads = NULL;
    }
    return rc == SQLITE_DONE && timeline->count > 0 ? SQLITE_ROW : rc;
}

/* Starts the query for threads, and allocates the rows of a batch. */
static int begin_rows(struct timeline *timeline)
{
    timeline->room = ROWS_BYTES / ((size_t)timeline->columns * LETTERS * LINES * sizeof(int64_t)) + 1;
    timeline->rows = calloc(timeline->room, sizeof(*timeline->rows));
    ct_intern_init(&timeline->numbers, 2 * sizeof(int64_t), SIZE_MAX, 1);
    timeline->process_id = -1;
    timeline->nothing = calloc((size_t)timeline->columns * LETTERS, sizeof(*timeline->nothing));
    if (!timeline->rows || !timeline->nothing)
        return SQLITE_NOMEM;
    int rc =
        sqlite3_prepare_v2(timeline->connection, ct_sql_exports_timeline_rows, -1, &timeline->threads, NULL);
    timeline->has_work = rc == SQLITE_OK;
    if (rc == SQLITE_ERROR) /* a trace of a version without the view gpu_work */
        rc = sqlite3_prepare_v2(timeline->connection, ct_sql_exports_timeline_threads, -1, &timeline->threads,
                                NULL);
    return rc;
}

static size_t letter_of(const char *category)
{
    size_t i = 0;
    while (i < OTHER && strcmp(letters[i].category, category) != 0)
        i++;
    return i;
}

/* Returns the time at which column `c` begins. The column after the last one begins at the window's end. */
static int64_t column_ns(const struct timeline *timeline, int c)
{
    const double part = (double)c / timeline->columns;
    return timeline->from_ns + (int64_t)(part * (double)(timeline->to_ns - timeline->from_ns));
}

static int line_of(const struct timeline *timeline, const char *layer)
{
    int line = timeline->has_lines && layer ? LINES - 1 : 0;
    while (line > 0 && strcmp(lines[line], layer) != 0)
        line--;
    return line;
}

/* Distributes a call's time over the columns that it spans. `layer` is NULL for GPU work. */
static bool draw(struct timeline *timeline, int64_t process_id, int64_t tid, const char *layer,
                 const char *category, int64_t start_ns, int64_t end_ns)
{
    if (end_ns <= timeline->from_ns || start_ns >= timeline->to_ns)
        return true;
    struct row *row = find_row(timeline, process_id, tid);
    if (!row)
        return true;
    int64_t **ns_of_line = &row->ns[line_of(timeline, layer)];
    if (!*ns_of_line && !(*ns_of_line = calloc((size_t)timeline->columns * LETTERS, sizeof(**ns_of_line))))
        return false;
    const int64_t from_ns = start_ns > timeline->from_ns ? start_ns : timeline->from_ns;
    const int64_t to_ns = end_ns < timeline->to_ns ? end_ns : timeline->to_ns;
    const size_t letter = letter_of(category);
    int c = (int)((double)(from_ns - timeline->from_ns) / (double)(timeline->to_ns - timeline->from_ns) *
                  timeline->columns);
    for (c = c > 0 ? c - 1 : 0; c < timeline->columns; c++) {
        const int64_t begin = column_ns(timeline, c), end = column_ns(timeline, c + 1);
        if (begin >= to_ns)
            break;
        const int64_t ns = (to_ns < end ? to_ns : end) - (from_ns > begin ? from_ns : begin);
        if (ns >= 0 && from_ns < end)
            (*ns_of_line)[(size_t)c * LETTERS + letter] +=
                ns > 0 ? ns : 1; /* makes zero-length calls visible */
    }
    return true;
}

/* Draws calls in the order in which they return, until all calls that began in the window have returned. A
 * second pass draws long calls, which have a separate query. Returns SQLite's result code, or SQLITE_ABORT if
 * an error has been reported. */
static int draw_calls(struct timeline *timeline)
{
    struct ct_stream_call call;
    bool good = true;
    int error = SQLITE_OK;
    for (int pass = 0; pass < 2 && good && error == SQLITE_OK; pass++) {
        struct ct_scope scope = timeline->scope;
        const int64_t until_ns = timeline->to_ns + CT_STREAM_LONG_NS;
        scope.from_ns = pass == 0 ? timeline->from_ns : until_ns + 1;
        scope.to_ns = pass == 0 ? until_ns : INT64_MAX;
        struct ct_stream *stream = ct_stream_open(timeline->connection, &scope);
        if (!stream)
            return SQLITE_ABORT; /* ct_stream_open() has reported why */
        while (good && (pass == 0 ? ct_stream_next(stream, &call)
                                  : ct_stream_next_long(stream, &call) && call.start_ns < timeline->to_ns))
            good = draw(timeline, call.site.process_id, call.site.tid, call.site.layer, call.site.category,
                        call.start_ns, call.id);
        error = ct_stream_error(stream);
        ct_stream_close(stream);
    }
    return good ? error : SQLITE_NOMEM;
}

/* Draws calls that have not returned, up to the end of their process or of the trace. */
static int draw_open_calls(struct timeline *timeline)
{
    sqlite3_stmt *rows = NULL;
    bool good = true;
    int rc = sqlite3_prepare_v2(timeline->connection, ct_sql_exports_timeline_open_calls, -1, &rows, NULL);
    if (rc == SQLITE_OK)
        sqlite3_bind_int64(rows, 1, timeline->scope.pid);
    while (good && rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *category = (const char *)sqlite3_column_text(rows, 2);
        const int64_t end_ns = sqlite3_column_type(rows, 4) == SQLITE_INTEGER ? sqlite3_column_int64(rows, 4)
                                                                              : timeline->extent.end_ns;
        good = draw(timeline, sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1),
                    (const char *)sqlite3_column_text(rows, 5), category ? category : "other",
                    sqlite3_column_int64(rows, 3), end_ns);
    }
    sqlite3_finalize(rows);
    return !good ? SQLITE_NOMEM : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Draws GPU work in the rows of its streams. */
static int draw_work(struct timeline *timeline)
{
    sqlite3_stmt *rows = NULL;
    bool good = true;
    if (!timeline->has_work)
        return SQLITE_OK;
    int rc = sqlite3_prepare_v2(timeline->connection, ct_sql_exports_timeline_work, -1, &rows, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_bind_int64(rows, 1, timeline->scope.pid);
        sqlite3_bind_int64(rows, 2, timeline->from_ns);
        sqlite3_bind_int64(rows, 3, timeline->to_ns);
    }
    while (good && rows && (rc = sqlite3_step(rows)) == SQLITE_ROW)
        good = draw(timeline, sqlite3_column_int64(rows, 0), sqlite3_column_int64(rows, 1), NULL,
                    (const char *)sqlite3_column_text(rows, 2), sqlite3_column_int64(rows, 3),
                    sqlite3_column_int64(rows, 4));
    sqlite3_finalize(rows);
    return !good ? SQLITE_NOMEM : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- printing ---- */

static bool colours_wanted(const struct timeline *timeline)
{
    enum { AUTO, ALWAYS, NEVER };
    if (timeline->colour != AUTO)
        return timeline->colour == ALWAYS;
    const char *never = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(never && *never) && !(terminal && strcmp(terminal, "dumb") == 0);
}

/* Prints in each column the letter of the category with the most time. The letter is upper-case if calls took
 * at least half of the column's time, and lower-case otherwise. */
static void print_columns(struct timeline *timeline, const int64_t *of_line, bool colours)
{
    size_t shown = LETTERS;
    for (int c = 0; c < timeline->columns; c++) {
        const int64_t *ns = &of_line[(size_t)c * LETTERS],
                      length = column_ns(timeline, c + 1) - column_ns(timeline, c);
        size_t most = 0;
        int64_t sum = 0;
        for (size_t i = 0; i < LETTERS; i++) {
            sum += ns[i];
            most = ns[i] > ns[most] ? i : most;
        }
        const size_t letter = sum > 0 ? most : LETTERS;
        if (sum > 0)
            timeline->used[most] = true;
        if (colours && letter != shown)
            printf("\033[%sm", letter < LETTERS ? letters[letter].colour : "0");
        shown = letter;
        const bool half = 2 * sum >= length;
        const char sign = letter == LETTERS ? '.' : letters[letter].letter;
        putchar(half || sign < 'A' || sign > 'Z' ? sign : (char)(sign - 'A' + 'a'));
    }
    puts(colours ? "\033[0m" : "");
}

/* Prints a label, truncated with an ellipsis to `most` characters, and padded with spaces to `padded`
 * characters. */
static void print_label(const char *text, int most, int padded)
{
    char *label = ct_printable(text, strlen(text));
    const int width = ct_text_width(label ? label : "");
    if (width > most)
        printf("%.*s…", ct_text_bytes(label, most - 1), label);
    else
        printf("%s%*s", label ? label : "", padded > width ? padded - width : 0, "");
    free(label);
}

static void print_axis(const struct timeline *timeline)
{
    enum { TICK = 20 };
    printf("%*s", timeline->label, "");
    for (int c = 0; c < timeline->columns;) {
        char text[64];
        const int64_t ns = column_ns(timeline, c) - timeline->extent.begin_ns;
        const int64_t window_ns = timeline->to_ns - timeline->from_ns;
        const int decimals = window_ns > INT64_C(100000000000) ? 0
                             : window_ns > 1000000000          ? 3
                             : window_ns > 1000000             ? 6
                                                               : 9;
        const int length = snprintf(text, sizeof(text), "|%.*f s", decimals, (double)ns / 1e9);
        if (c + length > timeline->columns)
            break;
        printf("%-*s", c + TICK <= timeline->columns ? TICK : 0, text);
        c += TICK;
    }
    putchar('\n');
}

static void print_legend(const struct timeline *timeline, bool colours)
{
    int at = 0;
    putchar('\n');
    for (size_t i = 0; i < LETTERS; i++) {
        if (!timeline->used[i])
            continue;
        const int length = (int)strlen(letters[i].category) + 4;
        if (at > 0 && at + length > timeline->width) {
            putchar('\n');
            at = 0;
        }
        fputs(at > 0 ? "  " : "", stdout);
        printf(colours ? "\033[%sm%c\033[0m %s" : "%.0s%c %s", letters[i].colour, letters[i].letter,
               letters[i].category);
        at += length;
    }
    puts("\n"
         ". no calls or work; lower case: they took less than half of that time");
}

static void print_row(struct timeline *timeline, const struct row *row, bool colours)
{
    char text[64];
    if (timeline->shown++ == 0)
        print_axis(timeline);
    if (row->process_id != timeline->process_id) {
        timeline->process_id = row->process_id;
        const int bytes = snprintf(text, sizeof(text), "%lld ", (long long)row->pid);
        fputs(text, stdout);
        print_label(row->command, (int)timeline->width - bytes, 0);
        putchar('\n');
    }
    if (row->tid < 0)
        snprintf(text, sizeof(text), "  %s", row->name);
    else
        snprintf(text, sizeof(text), "  %lld %s", (long long)row->tid, row->name);
    for (int line = 0; line < LINES; line++) {
        if (line > 0 && !row->ns[line])
            continue;
        if (line > 0)
            snprintf(text, sizeof(text), "    %s", lines[line]);
        print_label(text, timeline->label - 1, timeline->label - 1);
        putchar(' ');
        print_columns(timeline, row->ns[line] ? row->ns[line] : timeline->nothing, colours);
    }
}

static bool has_calls(const struct row *row)
{
    bool has = false;
    for (int line = 0; line < LINES; line++)
        has |= row->ns[line] != NULL;
    return has;
}

/* Prints processes ordered by start time, each followed by its threads, busiest first. On a terminal, prints
 * only the first ROWS_SHOWN threads. */
static void print_rows(struct timeline *timeline)
{
    const bool colours = colours_wanted(timeline), bounded = isatty(STDOUT_FILENO);
    for (size_t i = 0; i < timeline->count; i++) {
        if (!has_calls(&timeline->rows[i]))
            continue;
        if (bounded && timeline->shown >= ROWS_SHOWN)
            timeline->left_out++;
        else
            print_row(timeline, &timeline->rows[i], colours);
    }
}

/* Draws all threads, in batches that fit into ROWS_BYTES. */
static int print_all(struct timeline *timeline)
{
    int rc = begin_rows(timeline);
    while (rc == SQLITE_OK && (rc = take_rows(timeline)) == SQLITE_ROW) {
        if ((rc = draw_calls(timeline)) == SQLITE_OK && (rc = draw_open_calls(timeline)) == SQLITE_OK &&
            (rc = draw_work(timeline)) == SQLITE_OK)
            print_rows(timeline);
    }
    if (rc == SQLITE_ABORT)
        return EXIT_FAILURE;
    if (rc != SQLITE_DONE)
        return ct_fail(EXIT_FAILURE, "timeline: cannot read the trace: %s",
                       ct_sqlite_why(timeline->connection, rc));
    if (timeline->shown == 0)
        return ct_scope_say_empty(EXIT_FAILURE, "timeline", &timeline->extent);
    print_legend(timeline, colours_wanted(timeline));
    if (timeline->left_out > 0)
        printf("%d more threads made calls: --pid shows those of a process\n", timeline->left_out);
    return EXIT_SUCCESS;
}

static void choose_width(struct timeline *timeline)
{
    const int terminal = ct_terminal_width();
    if (timeline->width == 0 && terminal > 0 && terminal < WIDTH_MIN)
        ct_fail(0, "timeline: the terminal has %d columns, fewer than the %d of a line", terminal, WIDTH_MIN);
    if (timeline->width == 0)
        timeline->width = terminal == 0 ? WIDTH_OTHERWISE : terminal < WIDTH_MIN ? WIDTH_MIN : terminal;
    timeline->label = timeline->width < 80 ? 16 : 26;
    timeline->columns = (int)timeline->width - timeline->label;
}

static int run(struct timeline *timeline, const struct ct_session_choice *choice,
               const struct ct_run_choice *run_choice)
{
    struct ct_series series;
    timeline->connection = ct_meant_trace_open(choice, &series);
    if (!timeline->connection)
        return EXIT_FAILURE;
    int status = ct_run_choose("timeline", run_choice, &series, timeline->connection);
    if (status != CT_GO_ON) {
        sqlite3_close(timeline->connection);
        return status;
    }
    status = EXIT_SUCCESS;
    if (!ct_scope_has_process(&timeline->scope, "timeline", timeline->connection)) {
        status = EXIT_FAILURE;
    } else if (!ct_trace_extent(timeline->connection, ct_session_now(choice, series.path[0]),
                                &timeline->extent)) {
        ct_fail(0, "timeline: the trace has no calls yet");
    } else if ((status = take_window(timeline)) == CT_GO_ON) {
        choose_width(timeline);
        status = print_all(timeline);
    }
    if (timeline->rows)
        drop_rows(timeline);
    free(timeline->rows);
    free(timeline->nothing);
    ct_intern_finish(&timeline->numbers);
    sqlite3_finalize(timeline->threads);
    sqlite3_close(timeline->connection);
    return status;
}

static int timeline(int argc, char **argv)
{
    struct timeline timeline = { .scope = ct_scope_all() };
    struct ct_session_choice choice = { 0 };
    struct ct_run_choice run_choice = { 0 };
    const struct ct_option options[] = {
        CT_OPTIONS_OF_TRACE(&choice),
        CT_OPTIONS_OF_RUN(&run_choice),
        CT_OPTION_PID(&timeline.scope.pid),
        CT_OPTIONS_OF_WINDOW(&timeline.scope, "begin at T"),
        { "around", "CALL", "show the time around this call, by its call_id", &timeline.around },
        CT_OPTION_LAYERS(
            &timeline.scope.only,
            "only these layers: driver, runtime, ioctl, nvtx, kernel, hook, or all\n(default: driver)"),
        { "width", "N", "the number of columns (default: those of the terminal, or 100)", &timeline.width,
          ct_take_number, "expected 40 to 2000 columns", .least = WIDTH_MIN, .most = WIDTH_MAX },
        { "color", "WHEN", "auto (on a terminal, without $NO_COLOR), always or never (default: auto)",
          &timeline.colour, ct_take_choice, .choices = "auto|always|never" },
        { 0 }
    };
    const struct ct_usage usage = {
        .options = options,
        .about = "Draws the activity of each thread over time, one line for each. A letter shows the\n"
                 "category of calls that took most of the time. With several layers, such as --layers all,\n"
                 "nvtx, hook, ioctl and kernel have lines of their own below that of the driver and the\n"
                 "runtime. If the work of GPUs was recorded, each stream has a line below the threads of\n"
                 "its process.\n",
    };
    int first;
    ct_selection_set_layers(&timeline.scope.only.selection, "driver");
    const int status = ct_session_choice_parse(argc, argv, &usage, &choice, &first);
    const uint32_t layers = timeline.scope.only.selection.layers;
    timeline.has_lines = (layers & (layers - 1)) != 0;
    return status == CT_GO_ON ? run(&timeline, &choice, &run_choice) : status;
}

const struct ct_subcommand ct_subcommand_timeline = {
    "timeline", "draw the activity of each thread over time, as lines of letters", timeline
};
