/* cudatrace html: the trace as one file for a browser. The page (tools/html) has two gaps: a JSON object that
 * says what there is, and the calls, deflated columns in base64: start and duration (64-bit floats,
 * nanoseconds since the trace began), site and number of calls (32-bit), little-endian, one column behind the
 * other. */
#include "export.h"
#include "html_records.h"
#include "name_numbers.h"
#include "report.h"
#include "room.h"
#include "subcommand.h"

#include "html_page.h"
#include "schema_sql.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

enum {
    BUCKETS = 256,
    BUCKETS_OF_OCTAVE = 4,
    MEMORY_STEPS = 2000, /* of which each process has three points at most */
};

struct state {
    struct ct_html_records records;
    struct ct_names functions;
    uint64_t (*durations)[BUCKETS]; /* by function */
    size_t functions_room;
    uint64_t calls;
    bool another; /* open call was printed */
    bool failed;
};

/* ---- calls ---- */

/* What is known of a launch or a range, as a label. */
static uint32_t label_of(struct ct_export *to, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    sqlite3_stmt *row = ct_stream_detail(to->stream, call, &detail);
    if (!row || (detail != CT_DETAIL_LAUNCH && detail != CT_DETAIL_RANGE))
        return 0;
    const char *text = (const char *)sqlite3_column_text(row, 0);
    return text ? ct_html_label(&((struct state *)to->state)->records, text) : 0;
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
    ct_html_records_add(&state->records, call, (double)(call->start_ns - to->extent.begin_ns), level,
                        label_of(to, call));
    state->failed |= state->records.failed;
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    if (event->is_begin)
        take_call(to, event);
    return !((struct state *)to->state)->failed;
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    return ct_html_records_begin(&state->records, (double)(to->extent.end_ns - to->extent.begin_ns));
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
                                                   : "a code that is not known");
        fputc(']', to->to);
    }
    fputs("],\n\"names\":[\"\"", to->to);
    for (uint64_t i = 1; i <= records->names.count && !records->failed; i++) {
        fputs(",\n", to->to);
        ct_export_string(to, records->names.text[i]);
    }
    fputc(']', to->to);
}

/* The newest thread of a number is named first. */
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
        fprintf(to->to, "%s{\"process\":%lld,\"tid\":%lld,\"name\":", i ? ",\n" : "",
                (long long)thread->process_id, (long long)(thread->tid < 0 ? 0 : thread->tid));
        ct_export_string(to, thread->tid < 0 ? "further threads" : thread->name);
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

/* Of each process its most, its least and its last in each step of time. */
struct point {
    int64_t at, held;
};
struct memory {
    int64_t process_id, step, printed_at;
    struct point most, least, last;
    FILE *points;
    char *text;
    size_t bytes;
};

static void print_point(struct memory *memory, struct point point)
{
    if (point.at == memory->printed_at)
        return;
    fprintf(memory->points, "%s[%lld,%lld]", memory->printed_at < 0 ? "" : ",", (long long)point.at,
            (long long)point.held);
    memory->printed_at = point.at;
}

static void print_step(struct memory *memory)
{
    if (memory->step < 0)
        return;
    const bool falls = memory->most.at < memory->least.at;
    print_point(memory, falls ? memory->most : memory->least);
    print_point(memory, falls ? memory->least : memory->most);
    print_point(memory, memory->last);
}

static void take_memory(struct memory *memory, struct point now, int64_t step_ns)
{
    if (now.at / step_ns != memory->step) {
        print_step(memory);
        memory->step = now.at / step_ns;
        memory->most = memory->least = now;
    }
    if (now.held > memory->most.held)
        memory->most = now;
    if (now.held < memory->least.held)
        memory->least = now;
    memory->last = now;
}

static bool print_memory(struct ct_export *to)
{
    const int64_t length_ns = to->extent.end_ns - to->extent.begin_ns;
    const int64_t step_ns = (length_ns > 0 ? length_ns : 0) / MEMORY_STEPS + 1;
    struct memory *memory = calloc(to->process_count + 1, sizeof(*memory));
    if (!memory)
        return false;
    bool good = true;
    for (size_t i = 0; i < to->process_count; i++)
        memory[i] = (struct memory){ .process_id = to->process[i].process_id, .step = -1, .printed_at = -1 };
    sqlite3_stmt *rows = ct_export_ask(to, ct_sql_exports_memory);
    int rc = SQLITE_ERROR;
    while (rows && (rc = sqlite3_step(rows)) == SQLITE_ROW) {
        const struct ct_export_process *process = ct_export_process(to, sqlite3_column_int64(rows, 0));
        struct memory *its = process->pid ? &memory[process - to->process] : NULL;
        const struct point now = { sqlite3_column_int64(rows, 1) - to->extent.begin_ns,
                                   sqlite3_column_int64(rows, 2) };
        if (its && !its->points)
            its->points = open_memstream(&its->text, &its->bytes);
        good = good && (!its || its->points);
        if (good && its && now.at >= 0)
            take_memory(its, now, step_ns);
    }
    sqlite3_finalize(rows);
    fputs(",\n\"memory\":[", to->to);
    for (size_t i = 0; i < to->process_count; i++) {
        if (memory[i].points && good)
            print_step(&memory[i]);
        if (memory[i].points && fclose(memory[i].points) != 0)
            good = false;
        if (good)
            fprintf(to->to, "%s{\"process\":%lld,\"points\":[%s]}", i ? ",\n" : "",
                    (long long)memory[i].process_id, memory[i].text ? memory[i].text : "");
        free(memory[i].text);
    }
    fputc(']', to->to);
    free(memory);
    return good && rc == SQLITE_DONE;
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
    struct ct_section *sections = ct_report_sections(to->connection, &to->scope, &count);
    fputs(",\n\"sections\":[", to->to);
    for (size_t i = 0; i < count; i++) {
        fprintf(to->to, "%s{\"name\":\"%s\",\"title\":", i ? ",\n" : "", sections[i].name);
        ct_export_string(to, sections[i].title);
        fputs(",\"about\":", to->to);
        ct_export_string(to, sections[i].about);
        fputs(",\"problem\":", to->to);
        ct_export_string(to, sections[i].problem);
        fprintf(to->to, ",\"rows\":%s}", sections[i].problem[0] ? "[]" : sections[i].text);
    }
    fputc(']', to->to);
    ct_sections_finish(sections, count);
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

/* What was chosen of the trace's time: null for all of it. */
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
    ct_export_string(to, basename(to->trace));
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
    if (!print_memory(to) || !print_open_calls(to))
        return false;
    print_sections(to);
    fputs("}\n", to->to);
    return true;
}

/* In a page, what a trace says must not end the element that it stands in. */
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

struct packer {
    FILE *to;
    z_stream deflate;
    uint8_t rest[3]; /* of base64, not written yet */
    size_t rest_bytes;
};

static void write_base64(struct packer *packer, const uint8_t *bytes, size_t count, bool is_last)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count || (is_last && packer->rest_bytes > 0); i++) {
        const size_t had = packer->rest_bytes;
        packer->rest[packer->rest_bytes++] = i < count ? bytes[i] : 0;
        const bool ends = i >= count;
        while (ends && packer->rest_bytes < 3)
            packer->rest[packer->rest_bytes++] = 0;
        if (packer->rest_bytes < 3)
            continue;
        const uint8_t *r = packer->rest;
        const char out[4] = { digits[r[0] >> 2], digits[(r[0] & 3) << 4 | r[1] >> 4],
                              ends && had < 2 ? '=' : digits[(r[1] & 15) << 2 | r[2] >> 6],
                              ends ? '=' : digits[r[2] & 63] };
        fwrite(out, 1, sizeof(out), packer->to);
        packer->rest_bytes = 0;
    }
}

static bool pack(struct packer *packer, const void *bytes, size_t count, bool is_last)
{
    static uint8_t out[1 << 16];
    packer->deflate.next_in = (Bytef *)(uintptr_t)bytes;
    packer->deflate.avail_in = (uInt)count;
    do {
        packer->deflate.next_out = out;
        packer->deflate.avail_out = sizeof(out);
        if (deflate(&packer->deflate, is_last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
            return false;
        write_base64(packer, out, sizeof(out) - packer->deflate.avail_out, false);
    } while (packer->deflate.avail_out == 0);
    if (is_last)
        write_base64(packer, NULL, 0, true);
    return true;
}

static bool write_calls(struct ct_export *to)
{
    const struct ct_html_records *records = &((struct state *)to->state)->records;
    const struct ct_html_record *record = records->record;
    const size_t count = records->count;
    struct packer packer = { .to = to->to };
    if (count == 0)
        return true;
    if (deflateInit(&packer.deflate, Z_DEFAULT_COMPRESSION) != Z_OK)
        return false;
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = pack(&packer, &record[i].start, sizeof(double), false);
    for (size_t i = 0; good && i < count; i++)
        good = pack(&packer, &record[i].duration, sizeof(double), false);
    for (size_t i = 0; good && i < count; i++)
        good = pack(&packer, &record[i].site, sizeof(uint32_t), false);
    for (size_t i = 0; good && i < count; i++)
        good = pack(&packer, &record[i].calls, sizeof(uint32_t), i + 1 == count);
    deflateEnd(&packer.deflate);
    return good;
}

static bool end(struct ct_export *to)
{
    char *text = NULL;
    size_t bytes = 0;
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
    ct_html_records_finish(&state->records);
    ct_names_free(&state->functions);
    free(state->durations);
}

static const struct ct_export_format page = {
    .name = "html",
    .about = "The trace as one file for a browser, which asks no network: what bounds the run, a\n"
             "timeline to zoom into, the device memory that is held, how long calls took, and the\n"
             "tables of the report, to be sorted and filtered. --layers and --calls are about the\n"
             "timeline alone.\n"
             "\n"
             "Of more than a million calls in the timeline, short ones beside each other are drawn\n"
             "as one; --from, --to and --pid show fewer in full.\n",
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .end = end,
    .finish = finish,
};

static int html(int argc, char **argv)
{
    return ct_export_command(argc, argv, &page, "trace.html");
}

const struct ct_subcommand ct_subcommand_html = {
    "html", "the trace as one page for a browser: timeline, charts, tables", html
};
