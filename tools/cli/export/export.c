/* cudatrace export: the calls of a trace in the form that other programs read. */
#include "export.h"

#include "output.h"

#include "schema_sql.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct ct_export_format *const formats[] = {
    &ct_export_chrome, &ct_export_perfetto, &ct_export_jsonl, &ct_export_csv, &ct_export_nsys,
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]), BUFFER_BYTES = 1 << 20, CALLS_BETWEEN_LOOKS = 4096 };

struct export_options {
    struct ct_options common;
    const char *command;
    const struct ct_export_format *format;
    const char *output, *from, *to;
    struct ct_stream_choice choice;
};

static int fail(const struct export_options *options, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(const struct export_options *options, int status, const char *format, ...)
{
    char text[4096 + 512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return ct_fail(status, "%s: %s", options->command, text);
}

static int fail_reading(const struct export_options *options, sqlite3 *connection, int rc)
{
    char why[256];
    ct_trace_why(connection, rc, why, sizeof(why));
    return fail(options, EXIT_FAILURE, "cannot read the trace: %s", why);
}

static bool take_format(const char *value, struct export_options *options)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (strcmp(value, formats[i]->name) == 0) {
            options->format = formats[i];
            return true;
        }
    }
    fail(options, EXIT_USAGE, "--format %s: wants chrome, perfetto, jsonl, csv or nsys", value);
    return false;
}

static bool on_option(int option, const char *value, void *data)
{
    struct export_options *options = data;
    switch (option) {
    case 'f':
        return take_format(value, options);
    case 'o':
        options->output = value;
        return true;
    case 'F':
        options->from = value;
        return true;
    case 'T':
        options->to = value;
        return true;
    case 'l':
        if (ct_selection_set_layers(&options->choice.selection, value))
            return true;
        fail(options, EXIT_USAGE, "--layers %s: wants some of driver, runtime, ioctl, nvtx, or all", value);
        return false;
    case 'c':
        if (ct_selection_set_calls(&options->choice.selection, value))
            return true;
        fail(options, EXIT_USAGE, "--calls %s: wants patterns such as 'cuMem*,!cuMemGetInfo*'", value);
        return false;
    default:
        if (ct_number_parse(value, 1, INT32_MAX, &options->choice.pid))
            return true;
        fail(options, EXIT_USAGE, "--pid %s: wants a process number", value);
        return false;
    }
}

static int take_window(struct export_options *options, const struct ct_extent *extent)
{
    struct ct_stream_choice *choice = &options->choice;
    choice->from_ns = 0;
    choice->to_ns = INT64_MAX;
    if ((options->from &&
         !ct_moment_take(options->command, "--from", options->from, extent, &choice->from_ns)) ||
        (options->to && !ct_moment_take(options->command, "--to", options->to, extent, &choice->to_ns)))
        return EXIT_USAGE;
    if (choice->from_ns >= choice->to_ns)
        return fail(options, EXIT_USAGE, "the window ends before it begins");
    return EXIT_SUCCESS;
}

/* ---- progress, on a terminal ---- */

struct progress {
    bool shown, drawn;
    int64_t begin_ns, length_ns;
    struct timespec last;
};

static void show_progress(struct progress *progress, int64_t at_ns)
{
    enum { WIDTH = 40 };
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!progress->shown ||
        (now.tv_sec - progress->last.tv_sec) * 10 + (now.tv_nsec - progress->last.tv_nsec) / 100000000 < 2)
        return;
    progress->last = now;
    progress->drawn = true;
    double part =
        progress->length_ns > 0 ? (double)(at_ns - progress->begin_ns) / (double)progress->length_ns : 0;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    char bar[WIDTH + 1];
    memset(bar, '-', WIDTH);
    memset(bar, '#', (size_t)(part * WIDTH));
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3d %%", bar, (int)(part * 100));
}

static void end_progress(const struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
}

/* ---- what formats share ---- */

static int compare_processes(const void *a, const void *b)
{
    const struct ct_export_process *x = a, *y = b;
    return (x->process_id > y->process_id) - (x->process_id < y->process_id);
}

const struct ct_export_process *ct_export_process(const struct ct_export *to, int64_t process_id)
{
    static char nothing[] = "";
    static const struct ct_export_process none = { .name = nothing };
    const struct ct_export_process wanted = { .process_id = process_id };
    const struct ct_export_process *found =
        to->process_count
            ? bsearch(&wanted, to->process, to->process_count, sizeof(wanted), compare_processes)
            : NULL;
    return found ? found : &none;
}

/* SQLITE_OK, or why they could not be read. */
static int load_processes(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_processes);
    int rc = rows ? SQLITE_OK : sqlite3_errcode(to->connection);
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(rows, 3);
        struct ct_export_process *process = realloc(to->process, (to->process_count + 1) * sizeof(*process));
        char *copy = strdup(name ? name : "");
        if (process)
            to->process = process;
        if (!process || !copy) {
            free(copy);
            rc = SQLITE_NOMEM;
            break;
        }
        to->process[to->process_count++] = (struct ct_export_process){
            .process_id = sqlite3_column_int64(rows, 0),
            .pid = sqlite3_column_int64(rows, 1),
            .track = sqlite3_column_int64(rows, 2),
            .name = copy,
        };
    }
    sqlite3_finalize(rows);
    if (to->process_count)
        qsort(to->process, to->process_count, sizeof(*to->process), compare_processes);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void free_processes(struct ct_export *to)
{
    for (size_t i = 0; i < to->process_count; i++)
        free(to->process[i].name);
    free(to->process);
}

sqlite3_stmt *ct_export_ask(struct ct_export *to, const char *sql)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(to->connection, sql, -1, &rows, NULL) != SQLITE_OK)
        return NULL;
    sqlite3_bind_int64(rows, 1, to->choice.pid);
    sqlite3_bind_int64(rows, 2, to->choice.from_ns);
    sqlite3_bind_int64(rows, 3, to->choice.to_ns);
    return rows;
}

int ct_export_details(struct ct_export *to, const struct ct_stream_call *call, const char *before)
{
    enum ct_detail detail;
    int members = 0;
    sqlite3_stmt *row = ct_stream_detail(to->stream, call, &detail);
    for (int c = 0; row && c < sqlite3_column_count(row); c++) {
        const int type = sqlite3_column_type(row, c);
        if (type == SQLITE_NULL)
            continue;
        fprintf(to->to, "%s\"%s\":", members++ ? "," : before, sqlite3_column_name(row, c));
        const char *text = (const char *)sqlite3_column_text(row, c);
        if (type == SQLITE_INTEGER)
            fputs(text ? text : "0", to->to);
        else
            ct_print_json_string(text ? text : "", (size_t)sqlite3_column_bytes(row, c), to->to);
    }
    return members;
}

int ct_export_next_open_call(struct ct_export *to, sqlite3_stmt *rows)
{
    int rc;
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(rows, 2);
        const char *layer = (const char *)sqlite3_column_text(rows, 6);
        if (name && layer && ct_stream_wants(&to->choice, sqlite3_column_int64(rows, 5), layer, name))
            break;
    }
    return rc;
}

/* ---- the command ---- */

static bool stream_all(struct ct_export *to, const struct ct_export_format *format, bool show,
                       uint64_t *calls)
{
    struct progress progress = { .shown = show,
                                 .begin_ns = to->extent.begin_ns,
                                 .length_ns = to->extent.end_ns - to->extent.begin_ns };
    struct ct_stream_call call;
    errno = 0;
    bool good = !format->begin || format->begin(to);
    ct_output_is_open();
    for (*calls = 0; good && ct_stream_next(to->stream, &call); ++*calls) {
        good = format->call(to, &call) && !(to->to && ferror(to->to));
        if (*calls % CALLS_BETWEEN_LOOKS == 0)
            show_progress(&progress, call.id);
    }
    good = good && ct_stream_error(to->stream) == SQLITE_OK && (!format->end || format->end(to));
    end_progress(&progress);
    if (format->finish)
        format->finish(to);
    return good;
}

static int fail_writing(const struct export_options *options, const char *stage, const char *why)
{
    if (!options->output || strcmp(options->output, "-") == 0)
        return fail(options, EXIT_FAILURE, "cannot write standard output: %s", why);
    return fail(options, EXIT_FAILURE, "cannot write '%s'%s%s: %s", options->output,
                stage ? ", which is made in " : "", stage ? stage : "", why);
}

/* What was written gets its name; nothing of it is left when it is not all. */
static int end_output(const struct export_options *options, struct ct_output *output, bool good)
{
    const int said = errno;
    if (!good && (options->format->is_file || !ferror(ct_output_stream(output)))) {
        fail_writing(options, ct_output_stage(output), said ? strerror(said) : "out of memory");
        ct_output_discard(output);
        return EXIT_FAILURE;
    }
    const int error = ct_output_finish(output);
    if (error == -EPIPE) /* whoever reads has seen enough */
        return EXIT_FAILURE;
    return error ? fail_writing(options, NULL, strerror(-error)) : EXIT_SUCCESS;
}

static int write_all(struct ct_export *to, const struct export_options *options)
{
    char why[256];
    const char *path = options->output ? options->output : "-";
    struct ct_output *output = ct_output_open(path, options->format->is_file, why, sizeof(why));
    if (!output)
        return fail_writing(options, NULL, why);
    to->to = ct_output_stream(output);
    to->path = ct_output_file(output);
    if (to->to)
        setvbuf(to->to, NULL, _IOFBF, BUFFER_BYTES);
    uint64_t calls;
    const bool good =
        stream_all(to, options->format, isatty(STDERR_FILENO) && !ct_output_is_terminal(output), &calls);
    const int asked = sqlite3_errcode(to->connection), error = ct_stream_error(to->stream);
    if (error != SQLITE_OK || (!good && asked != SQLITE_OK && asked != SQLITE_ROW && asked != SQLITE_DONE)) {
        ct_output_discard(output);
        return fail_reading(options, to->connection, error != SQLITE_OK ? error : asked);
    }
    const int status = end_output(options, output, good);
    if (status == EXIT_SUCCESS && calls == 0 && to->extent.end_ns > to->extent.begin_ns)
        fail(options, 0, "no call there: the trace lasts %.3f seconds",
             (double)(to->extent.end_ns - to->extent.begin_ns) / 1e9);
    return status;
}

static int run_export(struct export_options *options)
{
    struct ct_series series;
    struct ct_export to = { .connection = ct_trace_open(&options->common, &series) };
    if (!to.connection)
        return EXIT_FAILURE;
    int status = EXIT_SUCCESS;
    if (!ct_trace_extent(to.connection, &to.extent))
        fail(options, 0, "the trace holds no call yet");
    status = take_window(options, &to.extent);
    to.choice = options->choice;
    to.trace = series.path[0];
    to.stream = status == EXIT_SUCCESS ? ct_stream_open(to.connection, &series, &to.choice) : NULL;
    if (!to.stream && status == EXIT_SUCCESS)
        status = EXIT_FAILURE;
    const int rc = to.stream ? load_processes(&to) : SQLITE_OK;
    if (rc != SQLITE_OK)
        status = fail_reading(options, to.connection, rc);
    if (to.stream && status == EXIT_SUCCESS && options->choice.pid && to.process_count == 0)
        status = fail(options, EXIT_FAILURE,
                      "the trace has no process %lld: `cudatrace report processes` lists them",
                      (long long)options->choice.pid);
    if (to.stream && status == EXIT_SUCCESS)
        status = write_all(&to, options);
    free_processes(&to);
    ct_stream_close(to.stream);
    sqlite3_close(to.connection);
    return status;
}

int ct_export_command(int argc, char **argv, const char *help, const struct ct_export_format *format,
                      const char *output)
{
    static const struct option known[] = {
        { "format", required_argument, NULL, 'f' }, { "output", required_argument, NULL, 'o' },
        { "pid", required_argument, NULL, 'p' },    { "from", required_argument, NULL, 'F' },
        { "to", required_argument, NULL, 'T' },     { "layers", required_argument, NULL, 'l' },
        { "calls", required_argument, NULL, 'c' },  { 0 }
    };
    struct export_options options = { .command = argv[0],
                                      .format = format,
                                      .output = output,
                                      .choice = { .selection = ct_selection_everything() } };
    bool done;
    int status;
    /* Of a command that is one format, --format is no option. */
    const struct option *first_known = known + (output != NULL);
    const int first =
        ct_options_parse(argc, argv, first_known, help, &options.common, on_option, &options, &done, &status);
    if (done)
        return status;
    if (first != argc)
        return fail(&options, EXIT_USAGE, "unknown argument '%s' (see cudatrace %s --help)", argv[first],
                    options.command);
    if (options.output && !*options.output)
        return fail(&options, EXIT_USAGE, "--output wants a file name, or - for standard output");
    if (options.format->is_file && !options.output)
        return fail(&options, EXIT_USAGE,
                    "--format %s: is a database, and wants --output FILE, or - for standard output",
                    options.format->name);
    return run_export(&options);
}

int ct_export(int argc, char **argv)
{
    static const char help[] =
        "Usage: cudatrace export [--db FILE] [--session NAME] [--shm-dir DIR] [--format F]\n"
        "                        [--output FILE] [--from T] [--to T] [--pid PID]\n"
        "                        [--layers LIST] [--calls LIST]\n"
        "\n"
        "The calls of a trace, as other programs read them:\n"
        "\n"
        "  chrome    JSON for Perfetto (ui.perfetto.dev) and Chrome's chrome://tracing: threads,\n"
        "            from runtime calls arrows to their driver calls, memory that is held\n"
        "  perfetto  the same in Perfetto's own format, which is a third as large\n"
        "  jsonl     a line of JSON when a call begins and one when it returns, in that order\n"
        "  csv       a line for each call\n"
        "  nsys      a SQLite file with the tables of Nsight Systems' exports, for `nsys stats`\n"
        "            and scripts that read them\n"
        "\n"
        "  --db FILE       the trace (default: ./trace.db)\n"
        "  --session NAME  the trace of that session's daemon\n" CT_SHM_DIR_HELP
        "  --format F      one of these (default: chrome)\n"
        "  --output FILE   where to write; - is standard output (default: that)\n" CT_WINDOW_HELP
        "  --pid PID       of this process alone (default: all)\n"
        "  --layers LIST   of these layers: driver, runtime, ioctl, nvtx, or all (default: all)\n"
        "  --calls LIST    driver and runtime functions by pattern, '!' before those to leave\n"
        "                  out, the last match deciding: 'cuMem*,!cuMemGetInfo*'\n";
    return ct_export_command(argc, argv, help, formats[0], NULL);
}
