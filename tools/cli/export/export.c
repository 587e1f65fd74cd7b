/* Implements `cudatrace export`, which writes a trace's calls in formats that other programs read. */
#include "export.h"

#include "clock.h"
#include "export_work.h"
#include "output.h"
#include "progress.h"
#include "run_choice.h"
#include "sessions.h"
#include "subcommand.h"
#include "trace_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The formats, each defined in a separate file. The first one is the default. */
#define EACH(ROW) ROW(chrome) ROW(perfetto) ROW(pytorch) ROW(jsonl) ROW(csv) ROW(nsys) ROW(sqlite)

#define ROW(name) extern const struct ct_export_format ct_export_##name;
EACH(ROW)
#undef ROW

static const struct ct_export_format *const formats[] = {
#define ROW(name) &ct_export_##name,
    EACH(ROW)
#undef ROW
};
enum { FORMATS = sizeof(formats) / sizeof(formats[0]), BUFFER_BYTES = 1 << 20 };

struct export_options {
    struct ct_session_choice choice;
    struct ct_run_choice run;
    struct ct_scope scope;
    const char *command;
    int number; /* index in `formats`, set by --format */
    const struct ct_export_format *format;
    const char *output;
};

static int fail_reading(const struct export_options *options, sqlite3 *connection, int rc)
{
    char why[256];
    ct_trace_why(connection, rc, why, sizeof(why));
    return ct_fail(EXIT_FAILURE, "%s: cannot read the trace: %s", options->command, why);
}

/* ---- the command ---- */

/* Writes all events that are due. */
static bool write_due(struct ct_export *to, const struct ct_export_format *format, struct ct_events *events)
{
    struct ct_event event;
    while (ct_events_next(events, &event)) {
        to->has_caused_work = to->work && event.is_begin && ct_work_note_call(to, &event);
        if (!format->event(to, &event))
            return false;
    }
    return !events->failed;
}

/* Shows how much of the time the calls so far cover. */
static void show_progress(struct ct_progress *progress, const struct ct_export *to, int64_t at_ns)
{
    const int64_t now_ns = (int64_t)ct_monotonic_ns();
    if (!ct_progress_is_due(progress, now_ns))
        return;
    const struct ct_extent *extent = &to->extent;
    const int64_t from_ns = to->scope.from_ns > extent->begin_ns ? to->scope.from_ns : extent->begin_ns;
    const int64_t to_ns = to->scope.to_ns < extent->end_ns ? to->scope.to_ns : extent->end_ns;
    char text[32];
    snprintf(text, sizeof(text), "%.0f %% of the calls",
             to_ns > from_ns ? 100.0 * (double)(at_ns - from_ns) / (double)(to_ns - from_ns) : 100.0);
    ct_progress_show(progress, now_ns, text);
}

/* Progress is not shown if the output is on the terminal, too. */
static struct ct_progress begin_progress(const struct ct_export *to, const char *command)
{
    struct ct_progress progress = ct_progress_begin(command, (int64_t)ct_monotonic_ns());
    if (to->to && isatty(fileno(to->to)))
        progress.to = NULL;
    return progress;
}

static bool stream_calls(struct ct_export *to, const struct ct_export_format *format, const char *command,
                         uint64_t *calls)
{
    enum { PROGRESS_CALLS = 1 << 12 };
    struct ct_progress progress = begin_progress(to, command);
    struct ct_stream_call call;
    struct ct_events events = { 0 };
    bool good = true;
    if (format->event)
        ct_events_begin(&events, to->stream);
    for (*calls = 0; good && ct_stream_next(to->stream, &call); ++*calls) {
        if (format->event)
            ct_events_add(&events, &call);
        good = (format->event ? write_due(to, format, &events) : format->call(to, &call)) &&
               !(to->to && ferror(to->to));
        if (*calls % PROGRESS_CALLS == 0)
            show_progress(&progress, to, call.id);
    }
    ct_progress_clear(&progress);
    good = good && ct_stream_error(to->stream) == SQLITE_OK;
    ct_events_end(&events);
    good = good && (!format->event || write_due(to, format, &events)) &&
           (!format->work || ct_work_each(to, format->work)) && (!format->end || format->end(to));
    ct_events_finish(&events);
    return good;
}

static bool stream_all(struct ct_export *to, const struct ct_export_format *format, const char *command,
                       uint64_t *calls)
{
    errno = 0;
    to->state = calloc(1, format->state_bytes + 1);
    bool good = to->state && (!format->work || ct_work_begin(to, format->has_no_causes)) &&
                (!format->begin || format->begin(to));
    ct_output_is_open();
    if (good && !format->is_whole)
        good = stream_calls(to, format, command, calls);
    if (to->state && format->finish)
        format->finish(to);
    ct_work_finish(to);
    free(to->state);
    return good;
}

static int fail_writing(const struct export_options *options, const char *stage, const char *why)
{
    if (!options->output || strcmp(options->output, "-") == 0)
        return ct_fail(EXIT_FAILURE, "%s: cannot write standard output: %s", options->command, why);
    return ct_fail(EXIT_FAILURE, "%s: cannot write '%s'%s%s: %s", options->command, options->output,
                   stage ? ", which is written in " : "", stage ? stage : "", why);
}

/* Gives the output file its final name if all of it was written, and removes the file otherwise. */
static int end_output(const struct export_options *options, struct ct_output *output, bool good)
{
    const int said = errno;
    if (!good && (options->format->is_file || !ferror(ct_output_stream(output)))) {
        fail_writing(options, ct_output_stage(output), said ? strerror(said) : "out of memory");
        ct_output_discard(output);
        return EXIT_FAILURE;
    }
    const int error = ct_output_finish(output);
    if (error == -EPIPE) /* the reader has closed the pipe */
        return EXIT_FAILURE;
    return error ? fail_writing(options, NULL, strerror(-error)) : EXIT_SUCCESS;
}

static int write_all(struct ct_export *to, const struct export_options *options)
{
    const char *why, *path = options->output ? options->output : "-";
    struct ct_output *output = ct_output_open(path, options->format->is_file, &why);
    if (!output)
        return fail_writing(options, NULL, why);
    to->to = ct_output_stream(output);
    to->path = ct_output_file(output);
    if (to->to)
        setvbuf(to->to, NULL, _IOFBF, BUFFER_BYTES);
    uint64_t calls = 0;
    const bool good = stream_all(to, options->format, options->command, &calls);
    const int asked = sqlite3_errcode(to->connection), error = ct_stream_error(to->stream);
    if (error != SQLITE_OK || (!good && asked != SQLITE_OK && asked != SQLITE_ROW && asked != SQLITE_DONE)) {
        ct_output_discard(output);
        return fail_reading(options, to->connection, error != SQLITE_OK ? error : asked);
    }
    const int status = end_output(options, output, good);
    if (status == EXIT_SUCCESS && !options->format->is_whole && calls == 0 &&
        to->extent.end_ns > to->extent.begin_ns)
        ct_scope_say_empty(0, options->command, &to->extent);
    return status;
}

static int run_export(struct export_options *options)
{
    struct ct_series series;
    struct ct_export to = { .connection = ct_meant_trace_open(&options->choice, &series) };
    if (!to.connection)
        return EXIT_FAILURE;
    options->scope.now_ns = ct_session_now(&options->choice, series.path[0]);
    int status = ct_run_choose(options->command, &options->run, &series, to.connection);
    if (status != CT_GO_ON) {
        sqlite3_close(to.connection);
        return status;
    }
    if (!ct_trace_extent(to.connection, options->scope.now_ns, &to.extent))
        ct_fail(0, "%s: the trace has no calls yet", options->command);
    status = ct_scope_settle(&options->scope, options->command, &to.extent);
    if (status == CT_GO_ON && !ct_scope_has_process(&options->scope, options->command, to.connection))
        status = EXIT_FAILURE;
    if (status == CT_GO_ON && options->format->is_whole && ct_series_files(to.connection) > 1)
        status = ct_fail(EXIT_FAILURE,
                         "%s: the trace consists of several files, and --format %s exports only one: the "
                         "earlier files are plain already; select the newest with --db %s",
                         options->command, options->format->name, series.path[0]);
    if (status == CT_GO_ON && options->output && ct_series_has_file(&series, options->output))
        status = fail_writing(options, NULL, "the file is the trace itself");
    to.scope = options->scope;
    to.series = &series;
    if (status == CT_GO_ON && !(to.stream = ct_stream_open(to.connection, &to.scope)))
        status = EXIT_FAILURE;
    if (status == CT_GO_ON) {
        const int rc = ct_export_load_processes(&to);
        status = rc == SQLITE_OK ? write_all(&to, options) : fail_reading(options, to.connection, rc);
    }
    ct_export_free_processes(&to);
    ct_stream_close(to.stream);
    sqlite3_close(to.connection);
    return status;
}

/* Builds the list of choices ("chrome|perfetto") and the paragraphs of the help text. */
static void list_formats(char choices[128], char about[2048])
{
    size_t n = 0, m = (size_t)snprintf(
                      about, 2048,
                      "Writes the calls of a trace in a format for other programs. The formats are:\n"
                      "\n");
    for (int i = 0; i < FORMATS; i++) {
        n += (size_t)snprintf(choices + n, 128 - n, "%s%s", i ? "|" : "", formats[i]->name);
        m += (size_t)snprintf(about + m, 2048 - m, "  %-9s %s\n", formats[i]->name, formats[i]->about);
    }
}

int ct_export_command(int argc, char **argv, const struct ct_export_format *format, const char *output)
{
    char choices[128], about[2048];
    struct export_options options = {
        .command = argv[0], .format = format, .output = output, .scope = ct_scope_all()
    };
    list_formats(choices, about);
    const struct ct_option table[] = {
        { "format", "F", "one of these formats (default: chrome)", &options.number, ct_take_choice,
          .choices = choices },
        CT_OPTIONS_OF_TRACE(&options.choice),
        CT_OPTIONS_OF_RUN(&options.run),
        { "output", "FILE",
          format ? "the file to write; - is standard output (default: trace.html)"
                 : "the file to write; - is standard output (default: -)",
          &options.output, ct_take_name, "expected a file name, or - for standard output" },
        CT_OPTIONS_OF_WINDOW(&options.scope, "only calls that returned at T or later"),
        CT_OPTION_PID(&options.scope.pid),
        CT_OPTION_LAYERS(
            &options.scope.only,
            "only these layers: driver, runtime, ioctl, nvtx, kernel, hook, or all\n(default: all)"),
        CT_OPTION_CALLS(&options.scope.only,
                        "only driver and runtime functions that match, with '!' before those to\n"
                        "exclude; the last match decides: 'cuMem*,!cuMemGetInfo*'"),
        { 0 }
    };
    /* Skip the first row, --format, for a command with a fixed format. */
    const struct ct_usage usage = { .options = table + (format != NULL),
                                    .about = format ? format->about : about };
    int first;
    const int status = ct_session_choice_parse(argc, argv, &usage, &options.choice, &first);
    if (status != CT_GO_ON)
        return status;
    if (!format)
        options.format = formats[options.number];
    if (options.format->is_file && !options.output)
        return ct_fail(
            EXIT_USAGE,
            "%s: --format %s writes a database: use --output FILE, or --output - for standard output",
            options.command, options.format->name);
    const bool is_to_standard_output = !options.output || strcmp(options.output, "-") == 0;
    if ((options.format->is_file || options.format->is_binary) && is_to_standard_output &&
        isatty(STDOUT_FILENO))
        return ct_fail(
            EXIT_USAGE,
            "%s: --format %s writes binary data, which a terminal would interpret: use --output FILE, or "
            "redirect the output",
            options.command, options.format->name);
    if (options.format->is_whole &&
        (!ct_scope_is_all(&options.scope) || options.run.is_last || options.run.number))
        return ct_fail(EXIT_USAGE,
                       "%s: --format %s exports the whole trace: options that select a part are not possible",
                       options.command, options.format->name);
    return run_export(&options);
}

static int export(int argc, char **argv)
{
    return ct_export_command(argc, argv, NULL, NULL);
}

const struct ct_subcommand ct_subcommand_export = {
    "export", "write the calls of a trace in a format for other programs: Perfetto, scripts", export
};
