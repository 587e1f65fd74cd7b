/* Implements `cudatrace html`, which writes the trace as a single page for a browser. The page template
 * (tools/cli/html) has two placeholders. The first placeholder is replaced with a JSON object that describes
 * the trace, and the second with the calls, as deflated columns in base64. The columns follow one another:
 * start and duration (64-bit floats, nanoseconds since the trace began), site and number of calls (32-bit),
 * all little-endian. */
#include "export.h"
#include "export_work.h"
#include "html_gpus.h"
#include "html_records.h"
#include "name_numbers.h"
#include "print_rows.h"
#include "report.h"
#include "room.h"
#include "subcommand.h"

#include "html_page.h"
#include "schema_sql.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    BUCKETS = 256,
    BUCKETS_OF_OCTAVE = 4,
    CALL_BYTES = 24,     /* bytes per record in the page's columns */
    MEMORY_STEPS = 2000, /* number of time steps; a process has at most three points in each step */
};

/* The maximum, minimum and last amount of memory that the process being printed held in a time step. */
struct memory {
    size_t begun; /* number of processes begun so far, the last of which is being printed */
    int64_t step, printed_at;
    struct point {
        int64_t at, held;
    } most, least, last;
};

struct state {
    struct ct_page_sections *sections;
    struct memory memory;
    struct ct_html_records records;
    struct ct_names functions;
    uint64_t (*durations)[BUCKETS]; /* indexed by function */
    size_t functions_room;
    struct ct_intern shapes; /* of launches, by file and ID; numbered from 1 */
    uint32_t *shape_labels;
    size_t shape_room;
    uint64_t calls;
    bool another; /* an open call has been printed */
    bool failed;
};

/* ---- calls ---- */

/* Returns the ID of the label of a call in the `hook` layer, which shows the call's fields, or 0 if out of
 * memory. */
static uint32_t label_of_fields(struct state *state, sqlite3_stmt *row)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to)
        return 0;
    ct_print_json_pairs(row, to);
    const uint32_t label = fclose(to) == 0 ? ct_html_label(&state->records, text) : 0;
    free(text);
    return label;
}

/* Returns the ID of the kernel's name. Many launches have the same shape. */
static uint32_t label_of_launch(struct ct_export *to, const struct ct_stream_call *call)
{
    struct state *state = to->state;
    sqlite3_stmt *row = ct_stream_detail_of(to->stream, call, CT_DETAIL_SHAPE);
    if (!row)
        return 0;
    const int64_t key[] = { call->site.file, sqlite3_column_int64(row, 0) };
    bool is_new;
    const size_t number = (size_t)ct_intern_get(&state->shapes, key, &is_new);
    state->records.failed |=
        number == 0 || (is_new && !ct_make_room(&state->shape_labels, number - 1, &state->shape_room,
                                                sizeof(*state->shape_labels)));
    if (state->records.failed)
        return 0;
    if (is_new) {
        enum ct_detail detail;
        row = ct_stream_detail(to->stream, call, &detail);
        state->shape_labels[number - 1] =
            row && detail == CT_DETAIL_LAUNCH ? ct_html_label(&state->records, ct_export_text(row, 0)) : 0;
    }
    return state->shape_labels[number - 1];
}

/* Returns the ID of a call's label, or 0 if it has none. A launch is labelled with its kernel, a range with
 * its message, and a hook with its fields. */
static uint32_t label_of(struct ct_export *to, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    if (strcmp(call->site.category, "launch") == 0 && strcmp(call->site.layer, "driver") == 0)
        return label_of_launch(to, call);
    sqlite3_stmt *row = ct_stream_detail(to->stream, call, &detail);
    if (detail == CT_DETAIL_HOOK)
        return label_of_fields(to->state, row);
    return row && detail == CT_DETAIL_RANGE
               ? ct_html_label(&((struct state *)to->state)->records, ct_export_text(row, 0))
               : 0;
}

/* Labels the records, which are fewer than the calls. */
static void label_records(struct ct_export *to)
{
    struct ct_html_records *records = &((struct state *)to->state)->records;
    for (size_t i = 0; i < records->count && !records->failed; i++) {
        struct ct_html_record *record = &records->record[i];
        const struct ct_html_site *site = &records->sites[record->site];
        if (site->key.label)
            continue; /* GPU work */
        const struct ct_stream_call call = { .id = record->call_id,
                                             .site = { .layer = site->key.layer,
                                                       .name = site->key.name,
                                                       .category = site->category,
                                                       .file = record->file } };
        const uint32_t label = label_of(to, &call);
        if (label)
            ct_html_records_label(records, record, label);
    }
}

static void count_duration(struct state *state, const char *name, int64_t ns)
{
    const struct ct_name function = ct_names_number(&state->functions, name, &state->failed);
    if (state->failed)
        return;
    const size_t had = state->functions_room;
    state->failed |=
        !ct_make_room(&state->durations, function.number, &state->functions_room, sizeof(*state->durations));
    if (state->failed)
        return;
    memset(state->durations + had, 0, (state->functions_room - had) * sizeof(*state->durations));
    const int bucket = ns > 0 ? (int)(log2((double)ns) * BUCKETS_OF_OCTAVE) : 0;
    state->durations[function.number][bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static void take_call(struct ct_export *to, const struct ct_event *event)
{
    struct state *state = to->state;
    const struct ct_stream_call *call = &event->call;
    const int32_t deepest = CT_HTML_LEVELS - 1, depth = call->site.depth < 0 ? 0 : call->site.depth;
    const uint32_t level = (uint32_t)(event->is_across || depth > deepest ? deepest : depth);
    state->calls++;
    if (call->site.kind == CT_SITE_CALL)
        count_duration(state, call->site.name, call->id - call->start_ns);
    ct_html_records_add(&state->records, call, (double)(call->start_ns - to->extent.begin_ns), level, 0);
    state->failed |= state->records.failed;
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    if (event->is_begin)
        take_call(to, event);
    return !((struct state *)to->state)->failed;
}

static void name_stream(struct ct_html_records *records, int64_t tid, const struct ct_work *work)
{
    const int64_t number =
        ct_intern_find(&records->thread_numbers, (const int64_t[]){ work->process_id, tid });
    char name[CT_WORK_LANE_NAME_BYTES];
    ct_work_lane_name(work, name);
    if (number > 0)
        records->threads[number - 1].name = strdup(name);
}

/* Adds a piece of work. Its stream has a negative number in place of a tid. */
static bool work(struct ct_export *to, const struct ct_work *work)
{
    static const char *const kinds[] = { "kernel", "copy", "set",
                                         "graph" }; /* equal names have one address */
    enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
    struct ct_html_records *records = &((struct state *)to->state)->records;
    const uint32_t deepest = CT_HTML_LEVELS - 1, lane = (uint32_t)work->lane;
    size_t k = 0;
    while (k < KINDS && strcmp(kinds[k], work->kind) != 0)
        k++;
    if (k == KINDS)
        return true;
    const struct ct_stream_call call = {
        .id = work->end_ns,
        .start_ns = work->start_ns,
        .site = { .process_id = work->process_id,
                  .tid = -1 - work->stream_number,
                  .layer = "gpu",
                  .name = kinds[k],
                  .category = kinds[k] },
    };
    const char *label = k == 0 ? work->kernel : work->copy_kind ? work->copy_kind : "";
    ct_html_records_add(records, &call, (double)(work->start_ns - to->extent.begin_ns),
                        lane > deepest ? deepest : lane, ct_html_label(records, label));
    if (work->is_first_in_lane && work->lane == 0)
        name_stream(records, call.site.tid, work);
    return !records->failed;
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    ct_intern_init(&state->shapes, 2 * sizeof(int64_t), SIZE_MAX, 1);
    state->sections = ct_page_sections_begin(to->series, to->connection, &to->scope);
    return state->sections &&
           ct_html_records_begin(&state->records, (double)(to->extent.end_ns - to->extent.begin_ns));
}

/* ---- the JSON object ---- */

static void print_sites(struct ct_export *to)
{
    struct ct_html_records *records = &((struct state *)to->state)->records;
    records->failed |= !ct_html_sites_settle(records);
    fputs(",\n\"sites\":[", to->to);
    for (size_t i = 0; i < records->site_count; i++) {
        const struct ct_html_site *site = &records->sites[i];
        fprintf(to->to, "%s[%u,%u,%u,%u,", i ? ",\n" : "", site->key.thread, site->key.level,
                ct_html_name(records, site->key.name), site->key.label);
        ct_export_string(to, site->category);
        fputc(',', to->to);
        ct_export_string(to, site->key.layer);
        fputc(',', to->to);
        ct_export_string(to, site->key.status == 0 ? ""
                             : site->status_name   ? site->status_name
                                                   : "an unknown code");
        fputc(']', to->to);
    }
    fputs("],\n\"names\":[\"\"", to->to);
    for (uint64_t i = 1; i <= records->names.count && !records->failed; i++) {
        fputs(",\n", to->to);
        ct_export_string(to, records->names.text[i]);
    }
    fputc(']', to->to);
}

/* Sets a thread's name. If several threads have the same tid, the query returns the newest thread first, and
 * the name of that thread is kept. */
static bool name_thread(struct ct_export *to, sqlite3_stmt *row)
{
    struct ct_html_records *records = &((struct state *)to->state)->records;
    const int64_t key[2] = { sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1) };
    const int64_t number = ct_intern_find(&records->thread_numbers, key);
    if (number && !records->threads[number - 1].name)
        records->threads[number - 1].name = strdup(ct_export_text(row, 2));
    return true;
}

static void print_processes(struct ct_export *to)
{
    const struct ct_html_records *records = &((struct state *)to->state)->records;
    fputs(",\n\"processes\":[", to->to);
    for (size_t i = 0; i < to->process_count; i++) {
        fprintf(to->to, "%s{\"id\":%lld,\"pid\":%lld,\"name\":", i ? ",\n" : "",
                (long long)to->process[i].process_id, (long long)to->process[i].pid);
        ct_export_string(to, to->process[i].name);
        fputc('}', to->to);
    }
    fputs("],\n\"threads\":[", to->to);
    for (size_t i = 0; i < records->thread_count; i++) {
        const struct ct_html_thread *thread = &records->threads[i];
        fprintf(to->to, "%s{\"process\":%lld,\"tid\":%lld,\"is_stream\":%s,\"name\":", i ? ",\n" : "",
                (long long)thread->process_id, (long long)(thread->tid < 0 ? 0 : thread->tid),
                thread->tid < -1 ? "true" : "false");
        ct_export_string(to, thread->tid == -1 ? "further threads" : thread->name);
        fputc('}', to->to);
    }
    fputc(']', to->to);
}

static void print_durations(struct ct_export *to)
{
    const struct state *state = to->state;
    bool another = false;
    fputs(",\n\"durations\":{", to->to);
    for (uint64_t i = 1; i <= state->functions.count && i < state->functions_room; i++) {
        bool begun = false;
        for (int bucket = 0; bucket < BUCKETS; bucket++) {
            if (!state->durations[i][bucket])
                continue;
            if (!begun) {
                fputs(another ? ",\n" : "", to->to);
                ct_export_string(to, state->functions.text[i]);
            }
            fprintf(to->to, "%s\"%d\":%llu", begun ? "," : ":{", bucket,
                    (unsigned long long)state->durations[i][bucket]);
            another = begun = true;
        }
        fputs(begun ? "}" : "", to->to);
    }
    fputc('}', to->to);
}

static void print_point(struct ct_export *to, struct point point)
{
    struct memory *memory = &((struct state *)to->state)->memory;
    if (point.at == memory->printed_at)
        return;
    fprintf(to->to, "%s[%lld,%lld]", memory->printed_at < 0 ? "" : ",", (long long)point.at,
            (long long)point.held);
    memory->printed_at = point.at;
}

static void print_step(struct ct_export *to)
{
    const struct memory *memory = &((struct state *)to->state)->memory;
    if (memory->step < 0)
        return;
    const bool falls = memory->most.at < memory->least.at;
    print_point(to, falls ? memory->most : memory->least);
    print_point(to, falls ? memory->least : memory->most);
    print_point(to, memory->last);
}

/* Begins the entry of the process at index `number`, after ending the entries of all earlier processes. Every
 * process gets an entry, even without points. */
static void turn_to_process(struct ct_export *to, size_t number)
{
    struct memory *memory = &((struct state *)to->state)->memory;
    for (; memory->begun <= number; memory->begun++) {
        if (memory->begun > 0) {
            print_step(to);
            fputs("]},\n", to->to);
        }
        memory->step = memory->printed_at = -1;
        fprintf(to->to, "{\"process\":%lld,\"points\":[", (long long)to->process[memory->begun].process_id);
    }
}

/* Adds a change of held memory. Rows are ordered by process and then by time. */
static bool take_memory(struct ct_export *to, sqlite3_stmt *row)
{
    struct memory *memory = &((struct state *)to->state)->memory;
    const struct ct_export_process *process = ct_export_process(to, sqlite3_column_int64(row, 0));
    const struct point now = { sqlite3_column_int64(row, 1) - to->extent.begin_ns,
                               sqlite3_column_int64(row, 2) };
    const int64_t length_ns = to->extent.end_ns - to->extent.begin_ns;
    const int64_t step = now.at / ((length_ns > 0 ? length_ns : 0) / MEMORY_STEPS + 1);
    if (!process->pid || now.at < 0)
        return true;
    turn_to_process(to, (size_t)(process - to->process));
    if (step != memory->step) {
        print_step(to);
        memory->step = step;
        memory->most = memory->least = now;
    }
    if (now.held > memory->most.held)
        memory->most = now;
    if (now.held < memory->least.held)
        memory->least = now;
    memory->last = now;
    return true;
}

static bool print_memory(struct ct_export *to)
{
    fputs(",\n\"memory\":[", to->to);
    const bool good = ct_export_each(to, ct_sql_exports_memory, take_memory);
    if (to->process_count > 0) {
        turn_to_process(to, to->process_count - 1);
        print_step(to);
        fputs("]}", to->to);
    }
    fputc(']', to->to);
    return good;
}

static bool print_open_call(struct ct_export *to, sqlite3_stmt *row)
{
    struct state *state = to->state;
    fprintf(to->to, "%s{\"process\":%lld,\"tid\":%lld,\"start\":%lld,\"at_exit\":%s,\"name\":",
            state->another ? ",\n" : "", (long long)sqlite3_column_int64(row, 0),
            (long long)sqlite3_column_int64(row, 1),
            (long long)(sqlite3_column_int64(row, 3) - to->extent.begin_ns),
            sqlite3_column_int(row, 7) ? "true" : "false");
    ct_export_string(to, ct_export_text(row, 2));
    fputc('}', to->to);
    return state->another = true;
}

static bool print_open_calls(struct ct_export *to)
{
    fputs(",\n\"open\":[", to->to);
    const bool good = ct_export_each_open_call(to, print_open_call);
    fputc(']', to->to);
    return good;
}

static void print_sections(struct ct_export *to)
{
    size_t count;
    const struct ct_section *sections = ct_page_sections_wait(((struct state *)to->state)->sections, &count);
    fputs(",\n\"sections\":[", to->to);
    const char *before = "";
    for (size_t i = 0; i < count; i++) {
        if (!sections[i].wanted)
            continue;
        fprintf(to->to, "%s{\"name\":\"%s\",\"title\":", before, sections[i].name);
        before = ",\n";
        ct_export_string(to, sections[i].title);
        fputs(",\"about\":", to->to);
        ct_export_string(to, sections[i].about);
        fputs(",\"problem\":", to->to);
        ct_export_string(to, sections[i].problem);
        fprintf(to->to, ",\"rows\":%s}", sections[i].problem[0] ? "[]" : sections[i].text);
    }
    fputc(']', to->to);
}

static bool print_sums(struct ct_export *to)
{
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_sums);
    const bool good = rows && sqlite3_step(rows) == SQLITE_ROW;
    if (good) {
        fprintf(to->to, ",\"failed\":%lld,\"lost\":%lld,\"lost_at_most\":%lld,\"host\":",
                (long long)sqlite3_column_int64(rows, 0), (long long)sqlite3_column_int64(rows, 1),
                (long long)sqlite3_column_int64(rows, 2));
        ct_export_string(to, ct_export_text(rows, 3));
    }
    sqlite3_finalize(rows);
    return good;
}

/* Prints the part of the trace that --from and --to select, or null for the whole trace. */
static void print_window(const struct ct_export *to)
{
    const struct ct_extent *whole = &to->extent;
    const int64_t from_ns = to->scope.from_ns > whole->begin_ns ? to->scope.from_ns : whole->begin_ns;
    const int64_t to_ns = to->scope.to_ns < whole->end_ns ? to->scope.to_ns : whole->end_ns;
    if (to->scope.from_ns <= 0 && to->scope.to_ns == INT64_MAX)
        fputs(",\"window\":null", to->to);
    else
        fprintf(to->to, ",\"window\":[%lld,%lld]", (long long)(from_ns - whole->begin_ns),
                (long long)(to_ns > from_ns ? to_ns - whole->begin_ns : from_ns - whole->begin_ns));
}

static bool print_json(struct ct_export *to)
{
    struct state *state = to->state;
    fprintf(to->to, "{\"version\":\"%s\",\"title\":", CUDATRACE_VERSION);
    ct_export_string(to, basename(to->series->path[0]));
    fprintf(to->to,
            ",\"begin_ns\":%lld,\"end_ns\":%lld,\"begin_unix_ns\":%lld,\"resolution_ns\":%.0f,\"calls\":%llu,"
            "\"records\":%zu",
            (long long)to->extent.begin_ns, (long long)to->extent.end_ns,
            (long long)(to->extent.begin_ns + to->extent.realtime_offset_ns), state->records.resolution,
            (unsigned long long)state->calls, state->records.count);
    print_window(to);
    if (!print_sums(to) || !ct_export_each(to, ct_sql_exports_threads, name_thread))
        return false;
    print_sites(to);
    print_processes(to);
    print_durations(to);
    if (!print_memory(to) || !ct_html_print_gpus(to) || !print_open_calls(to))
        return false;
    print_sections(to);
    fputs("}\n", to->to);
    return true;
}

/* Writes JSON into the page. Escapes '<', so that text from the trace cannot close the enclosing HTML
 * element. */
static void write_json(FILE *to, const char *json)
{
    for (; *json; json++) {
        if (*json == '<')
            fputs("\\u003c", to);
        else
            fputc(*json, to);
    }
}

/* ---- the calls ---- */

static void write_base64(FILE *to, const uint8_t *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        const uint8_t a = bytes[i], b = i + 1 < count ? bytes[i + 1] : 0,
                      c = i + 2 < count ? bytes[i + 2] : 0;
        const char out[4] = { digits[a >> 2], digits[(a & 3) << 4 | b >> 4],
                              i + 1 < count ? digits[(b & 15) << 2 | c >> 6] : '=',
                              i + 2 < count ? digits[c & 63] : '=' };
        fwrite(out, 1, sizeof(out), to);
    }
}

/* Compresses bytes into the output buffer, which is large enough for everything (deflateBound()). */
static void pack(z_stream *packed, const void *bytes, size_t count)
{
    packed->next_in = (Bytef *)(uintptr_t)bytes;
    packed->avail_in = (uInt)count;
    deflate(packed, Z_NO_FLUSH);
}

/* Writes the columns one after the other, in the order in which page.js reads them. */
static bool write_calls(struct ct_export *to)
{
    const struct ct_html_records *records = &((struct state *)to->state)->records;
    const struct ct_html_record *record = records->record, *const end = record + records->count;
    z_stream packed = { 0 };
    if (records->count == 0)
        return true;
    if (deflateInit(&packed, Z_DEFAULT_COMPRESSION) != Z_OK)
        return false;
    packed.avail_out = (uInt)deflateBound(&packed, CALL_BYTES * records->count);
    uint8_t *bytes = packed.next_out = malloc(packed.avail_out);
    for (record = records->record; bytes && record < end; record++)
        pack(&packed, &record->start, sizeof(record->start));
    for (record = records->record; bytes && record < end; record++)
        pack(&packed, &record->duration, sizeof(record->duration));
    for (record = records->record; bytes && record < end; record++)
        pack(&packed, &record->site, sizeof(record->site));
    for (record = records->record; bytes && record < end; record++)
        pack(&packed, &record->calls, sizeof(record->calls));
    const bool good = bytes && deflate(&packed, Z_FINISH) == Z_STREAM_END;
    if (good)
        write_base64(to->to, bytes, packed.total_out);
    deflateEnd(&packed);
    free(bytes);
    return good;
}

static bool end(struct ct_export *to)
{
    char *text = NULL;
    size_t bytes = 0;
    label_records(to);
    struct ct_export json = *to;
    json.to = open_memstream(&text, &bytes);
    bool good = json.to && print_json(&json);
    if (json.to && fclose(json.to) != 0)
        good = false;
    if (good) {
        fwrite(ct_html_page_head, 1, sizeof(ct_html_page_head), to->to);
        fputs("<script id=\"trace\" type=\"application/json\">", to->to);
        write_json(to->to, text);
        fputs("</script>\n<script id=\"calls\" type=\"text/plain\">", to->to);
        good = write_calls(to);
        fputs("</script>\n", to->to);
        fwrite(ct_html_page_tail, 1, sizeof(ct_html_page_tail), to->to);
    }
    free(text);
    return good;
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    ct_page_sections_finish(state->sections);
    ct_html_records_finish(&state->records);
    ct_names_free(&state->functions);
    ct_intern_finish(&state->shapes);
    free(state->shape_labels);
    free(state->durations);
}

static const struct ct_export_format page = {
    .name = "html",
    .about = "Writes the trace as one page for a browser. The page needs no network. It shows what bounds\n"
             "the run, a timeline to zoom into, the device memory in use, the durations of calls, and the\n"
             "tables of the report, which can be sorted and filtered. --layers and --calls affect only the\n"
             "timeline.\n"
             "\n"
             "If the work of GPUs was recorded, each stream has a row below the threads of its process.\n"
             "If the timeline contains more than a million calls, adjacent short calls are drawn as one.\n"
             "Select fewer calls with --from, --to or --pid to see each of them.\n",
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .work = work,
    .has_no_causes = true,
    .end = end,
    .finish = finish,
};

static int html(int argc, char **argv)
{
    return ct_export_command(argc, argv, &page, "trace.html");
}

const struct ct_subcommand ct_subcommand_html = {
    "html", "write the trace as one page for a browser: timeline, charts, tables", html
};
