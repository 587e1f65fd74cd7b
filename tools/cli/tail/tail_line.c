#include "tail_line.h"

#include "print_rows.h"
#include "printable.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT_MAX = 60 }; /* limited because a trace file may claim any depth */

/* ---- colours ---- */

#define DIM     "\x1b[2m"
#define RED     "\x1b[1;31m"
#define YELLOW  "\x1b[33m"
#define CYAN    "\x1b[36m"
#define GREEN   "\x1b[32m"
#define MAGENTA "\x1b[35m"
#define PLAIN   "\x1b[0m"

/* Returns a layer's colour. Driver calls, the most frequent ones, have no colour. */
static const char *colour_of(const char *layer)
{
    static const struct {
        const char *layer, *colour;
    } colours[] = { { "runtime", CYAN }, { "nvtx", GREEN }, { "ioctl", MAGENTA } };
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
        if (strcmp(colours[i].layer, layer) == 0)
            return colours[i].colour;
    }
    return "";
}

static void put_printable(FILE *to, const char *text)
{
    char *printable = ct_printable(text, strlen(text));
    fputs(printable ? printable : "?", to);
    free(printable);
}

static void put_coloured(FILE *to, const struct ct_line_style *style, const char *colour, const char *text)
{
    const bool is_coloured = style->is_coloured && *colour;
    fputs(is_coloured ? colour : "", to);
    put_printable(to, text);
    fputs(is_coloured ? PLAIN : "", to);
}

/* ---- arguments ---- */

struct arguments {
    FILE *to;
    const struct ct_line_style *style;
    bool has_one;
};

static FILE *next(struct arguments *arguments, const char *name)
{
    fputs(arguments->has_one ? ", " : "", arguments->to);
    put_printable(arguments->to, name);
    fputs(*name ? "=" : "", arguments->to);
    arguments->has_one = true;
    return arguments->to;
}

static void put_text(struct arguments *arguments, const char *name, const char *text, const char *quote)
{
    if (!text)
        return;
    char *printable = ct_printable(text, strlen(text));
    const char *whole = printable ? printable : "";
    const int width = arguments->style->text_width;
    const bool is_cut = width > 0 && ct_text_width(whole) > width;
    const int bytes = is_cut ? ct_text_bytes(whole, width) : (int)strlen(whole);
    fprintf(next(arguments, name), "%s%.*s%s%s", quote, bytes, whole, is_cut ? "…" : "", quote);
    free(printable);
}

/* Returns the index of the named column, or -1 if the row has no such column or its value is NULL. */
static int column_of(sqlite3_stmt *row, const char *name)
{
    for (int c = 0; c < sqlite3_column_count(row); c++) {
        if (strcmp(sqlite3_column_name(row, c), name) == 0)
            return sqlite3_column_type(row, c) == SQLITE_NULL ? -1 : c;
    }
    return -1;
}

static int64_t number_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name);
    return column < 0 ? 0 : sqlite3_column_int64(row, column);
}

static const char *text_of(sqlite3_stmt *row, const char *name)
{
    const int column = column_of(row, name);
    return column < 0 ? NULL : (const char *)sqlite3_column_text(row, column);
}

static void put_number(struct arguments *arguments, sqlite3_stmt *row, const char *column)
{
    if (column_of(row, column) >= 0)
        fprintf(next(arguments, column), "%" PRId64, number_of(row, column));
}

static void put_handle(struct arguments *arguments, const char *name, int64_t handle)
{
    fprintf(next(arguments, name), handle ? "0x%" PRIx64 : "%" PRIx64, (uint64_t)handle);
}

static void put_handle_column(struct arguments *arguments, sqlite3_stmt *row, const char *column,
                              const char *name)
{
    if (column_of(row, column) >= 0)
        put_handle(arguments, name, number_of(row, column));
}

/* Prints the stream's name, or its handle if it has no name, and whether the call was captured into a graph.
 * */
static void put_stream(struct arguments *arguments, sqlite3_stmt *row)
{
    if (text_of(row, "stream_name"))
        put_text(arguments, "stream", text_of(row, "stream_name"), "\"");
    else
        put_handle_column(arguments, row, "stream", "stream");
    if (number_of(row, "captured"))
        next(arguments, "captured");
}

static void put_extent(struct arguments *arguments, sqlite3_stmt *row, const char *name, int first)
{
    fprintf(next(arguments, name), "%" PRId64 "x%" PRId64 "x%" PRId64,
            (int64_t)sqlite3_column_int64(row, first), (int64_t)sqlite3_column_int64(row, first + 1),
            (int64_t)sqlite3_column_int64(row, first + 2));
}

/* Prints how many threads a launch has in total, unless a forged trace claims too many to count. */
static void put_threads(struct arguments *arguments, sqlite3_stmt *row, int first)
{
    enum { EXTENTS = 6 };
    int64_t threads = 1;
    for (int c = first; c < first + EXTENTS; c++) {
        if (__builtin_mul_overflow(threads, (int64_t)sqlite3_column_int64(row, c), &threads))
            return;
    }
    fprintf(next(arguments, "threads"), "%" PRId64, threads);
}

static void put_launch(struct arguments *arguments, sqlite3_stmt *row)
{
    const char *kernel = text_of(row, "kernel");
    put_text(arguments, "", kernel ? kernel : "?", "");
    put_extent(arguments, row, "grid", 1);
    put_extent(arguments, row, "block", 4);
    put_threads(arguments, row, 1);
    if (number_of(row, "shared_bytes"))
        fprintf(next(arguments, "shared"), "%" PRId64, number_of(row, "shared_bytes"));
    put_stream(arguments, row);
}

static void put_graph_launch(struct arguments *arguments, sqlite3_stmt *row)
{
    put_handle_column(arguments, row, "graph_exec", "graph");
    put_number(arguments, row, "kernel_nodes");
    put_stream(arguments, row);
}

static void put_bytes(struct arguments *arguments, const struct ct_stream_call *call)
{
    if (call->has_bytes)
        fprintf(next(arguments, "bytes"), "%" PRId64, call->bytes);
}

static void put_range(struct arguments *arguments, sqlite3_stmt *row)
{
    put_text(arguments, "", text_of(row, "message"), "\"");
    put_text(arguments, "domain", text_of(row, "domain"), "\"");
    put_text(arguments, "category", text_of(row, "range_category"), "");
}

/* In every trace written by a daemon, the names consist of letters, digits and '_'. */
static void put_fields(struct arguments *arguments, sqlite3_stmt *row)
{
    for (int c = 0; c + 1 < sqlite3_column_count(row); c += 2) {
        const char *name = (const char *)sqlite3_column_text(row, c);
        if (name && sqlite3_column_type(row, c + 1) == SQLITE_TEXT)
            put_text(arguments, name, (const char *)sqlite3_column_text(row, c + 1), "\"");
        else if (name && sqlite3_column_type(row, c + 1) == SQLITE_NULL)
            fputs("NULL", next(arguments, name));
        else if (name)
            fprintf(next(arguments, name), "%" PRId64, (int64_t)sqlite3_column_int64(row, c + 1));
    }
}

static void put_subject(struct arguments *arguments, sqlite3_stmt *row)
{
    for (int c = 0; c < 6; c += 2) {
        const char *role = (const char *)sqlite3_column_text(row, c);
        if (role && sqlite3_column_type(row, c + 1) == SQLITE_TEXT)
            put_text(arguments, role, (const char *)sqlite3_column_text(row, c + 1), "");
        else if (role)
            put_handle(arguments, role, sqlite3_column_int64(row, c + 1));
    }
    if (number_of(row, "captured"))
        next(arguments, "captured");
}

/* Prints the memory that a call sets or allocates, or the objects that it uses. */
static void put_others(struct arguments *arguments, struct ct_stream *stream,
                       const struct ct_stream_call *call)
{
    const bool is_driver = strcmp(call->site.layer, "driver") == 0;
    sqlite3_stmt *row;
    put_bytes(arguments, call);
    if (is_driver && strcmp(call->site.category, "set") == 0 &&
        (row = ct_stream_detail_of(stream, call, CT_DETAIL_SET))) {
        put_handle_column(arguments, row, "address", "address");
        put_stream(arguments, row);
        return;
    }
    if (is_driver && (row = ct_stream_detail_of(stream, call, CT_DETAIL_ALLOCATION))) {
        put_handle_column(arguments, row, "address", "address");
        if (strcmp(text_of(row, "kind") ? text_of(row, "kind") : "", "device") != 0)
            put_text(arguments, "kind", text_of(row, "kind"), "");
        put_handle_column(arguments, row, "pool", "pool");
    }
    if ((row = ct_stream_detail_of(stream, call, CT_DETAIL_SUBJECT)))
        put_subject(arguments, row);
}

static void put_copy(struct arguments *arguments, struct ct_stream *stream, const struct ct_stream_call *call,
                     sqlite3_stmt *row)
{
    const char *kind = text_of(row, "kind");
    if (kind && !strstr(call->site.name, kind)) /* unless the name already contains the kind, as in
                                                 * cuMemcpyHtoD */
        put_text(arguments, "kind", kind, "");
    put_bytes(arguments, call);
    sqlite3_stmt *addresses = ct_stream_detail_of(stream, call, CT_DETAIL_ADDRESSES);
    if (addresses) {
        put_handle_column(arguments, addresses, "source", "from");
        put_handle_column(arguments, addresses, "destination", "to");
    }
    put_stream(arguments, row);
}

static void put_arguments(FILE *to, const struct ct_line_style *style, struct ct_stream *stream,
                          const struct ct_stream_call *call)
{
    struct arguments arguments = { .to = to, .style = style };
    enum ct_detail detail;
    sqlite3_stmt *row = ct_stream_detail(stream, call, &detail);
    switch (detail) {
    case CT_DETAIL_LAUNCH:
        put_launch(&arguments, row);
        break;
    case CT_DETAIL_GRAPH_LAUNCH:
        put_graph_launch(&arguments, row);
        break;
    case CT_DETAIL_RANGE:
        put_range(&arguments, row);
        break;
    case CT_DETAIL_HOOK:
        put_fields(&arguments, row);
        break;
    case CT_DETAIL_COPY:
        put_copy(&arguments, stream, call, row);
        break;
    default:
        put_others(&arguments, stream, call);
    }
}

/* ---- lines ---- */

static void put_duration(FILE *to, const struct ct_line_style *style, int64_t ns)
{
    static const struct {
        int64_t below_ns;
        double unit_ns;
        const char *unit;
        int decimals;
        const char *colour;
    } units[] = { { 1000, 1, "ns", 0, DIM },
                  { 1000000, 1e3, "us", 1, DIM },
                  { 1000000000, 1e6, "ms", 1, YELLOW },
                  { INT64_MAX, 1e9, "s", 3, YELLOW } };
    char text[40];
    size_t i = 0;
    while (ns >= units[i].below_ns && i + 1 < sizeof(units) / sizeof(units[0]))
        i++;
    snprintf(text, sizeof(text), " <%.*f%s>", units[i].decimals, (double)ns / units[i].unit_ns,
             units[i].unit);
    put_coloured(to, style, units[i].colour, text);
}

/* Prints how fast a synchronous copy moved its bytes. An asynchronous one only takes the time to submit it.
 */
static void put_rate(FILE *to, const struct ct_line_style *style, struct ct_stream *stream,
                     const struct ct_stream_call *call)
{
    const int64_t ns = call->id - call->start_ns;
    char text[40];
    enum ct_detail detail;
    if (!call->has_bytes || call->bytes <= 0 || ns <= 0 || call->site.status != 0)
        return;
    sqlite3_stmt *row = ct_stream_detail(stream, call, &detail);
    if (detail != CT_DETAIL_COPY || number_of(row, "async") || number_of(row, "captured"))
        return;
    snprintf(text, sizeof(text), " %.3gGB/s", (double)call->bytes / (double)ns);
    put_coloured(to, style, DIM, text);
}

/* Prints the seconds since the first line. The time of a call that reached the trace late may be before it.
 */
static void put_relative_time(FILE *to, struct ct_line_style *style, int64_t at_ns)
{
    int64_t ns;
    char text[40];
    style->first_ns = style->first_ns ? style->first_ns : at_ns;
    if (__builtin_sub_overflow(at_ns, style->first_ns, &ns))
        ns = 0;
    snprintf(text, sizeof(text), "%12.6f", (double)ns / 1e9);
    put_coloured(to, style, DIM, text);
}

/* Prints the time at which the call returned, by which lines are ordered. */
static void put_time(FILE *to, struct ct_line_style *style, int64_t at_ns)
{
    int64_t ns;
    char text[40];
    if (__builtin_add_overflow(at_ns, style->realtime_offset_ns, &ns) || ns < 0)
        ns = at_ns;
    const time_t second = (time_t)(ns / 1000000000);
    if (!*style->second_text || second != style->second) {
        struct tm parts = { 0 };
        style->is_json ? gmtime_r(&second, &parts) : localtime_r(&second, &parts);
        strftime(style->second_text, sizeof(style->second_text),
                 style->is_json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &parts);
        style->second = second;
    }
    if (style->is_json) {
        fprintf(to, "%s.%09dZ", style->second_text, (int)(ns % 1000000000));
    } else {
        snprintf(text, sizeof(text), "%s.%06d", style->second_text, (int)(ns % 1000000000 / 1000));
        put_coloured(to, style, DIM, text);
    }
}

static void put_who(FILE *to, struct ct_line_style *style, const struct ct_site *site)
{
    char text[48];
    const bool has_thread = style->has_threads || site->tid != site->pid;
    const int length = has_thread ? snprintf(text, sizeof(text), "%" PRId64 "/%" PRId64, site->pid, site->tid)
                                  : snprintf(text, sizeof(text), "%" PRId64, site->pid);
    style->who_width = length > style->who_width ? length : style->who_width;
    const int indent = site->depth < 0 ? 0 : site->depth > INDENT_MAX / 2 ? INDENT_MAX : 2 * site->depth;
    fprintf(to, " %-*s %*s", style->who_width, text, indent, "");
}

static void put_status(FILE *to, const struct ct_line_style *style, const struct ct_site *site)
{
    char number[16];
    if (site->kind != CT_SITE_CALL)
        return;
    snprintf(number, sizeof(number), "%" PRId32, site->status);
    fputs(" = ", to);
    put_coloured(to, style, site->has_failed ? RED : "", site->status_name ? site->status_name : number);
}

static void print_text(FILE *to, struct ct_line_style *style, struct ct_stream *stream,
                       const struct ct_stream_call *call)
{
    const bool is_relative = style->is_relative || style->realtime_offset_ns == 0; /* imported from lines */
    is_relative ? put_relative_time(to, style, call->id) : put_time(to, style, call->id);
    put_who(to, style, &call->site);
    put_coloured(to, style, colour_of(call->site.layer), call->site.name);
    fputc('(', to);
    put_arguments(to, style, stream, call);
    fputc(')', to);
    put_status(to, style, &call->site);
    if (call->site.kind != CT_SITE_MARK)
        put_duration(to, style, call->id - call->start_ns);
    put_rate(to, style, stream, call);
    fputc('\n', to);
}

/* ---- JSON ---- */

static void put_member(FILE *to, const char *name, const char *text)
{
    if (!text)
        return;
    fprintf(to, ",\"%s\":", name);
    ct_print_json_string(text, strlen(text), to);
}

static void put_objects(FILE *to, sqlite3_stmt *row)
{
    fputs(",\"objects\":[", to);
    for (int c = 0, count = 0; c < 6; c += 2) {
        const char *role = (const char *)sqlite3_column_text(row, c);
        if (!role)
            continue;
        fprintf(to, "%s{\"role\":", count++ ? "," : "");
        ct_print_json_string(role, strlen(role), to);
        fputs(",\"handle\":", to);
        if (sqlite3_column_type(row, c + 1) == SQLITE_TEXT)
            ct_print_json_string((const char *)sqlite3_column_text(row, c + 1),
                                 (size_t)sqlite3_column_bytes(row, c + 1), to);
        else
            fprintf(to, "%" PRId64, (int64_t)sqlite3_column_int64(row, c + 1));
        fputc('}', to);
    }
    fputc(']', to);
}

/* Prints a call's details, using the column names of schema/stream.sql. */
static void put_details(FILE *to, struct ct_stream *stream, const struct ct_stream_call *call)
{
    enum ct_detail detail;
    sqlite3_stmt *row = ct_stream_detail(stream, call, &detail);
    if (detail == CT_DETAIL_HOOK) {
        fputs(",\"fields\":", to);
        ct_print_json_pairs(row, to);
    } else if (row) {
        ct_print_json_members(row, ",", to);
    }
    const bool is_driver = strcmp(call->site.layer, "driver") == 0;
    const enum ct_detail more = detail == CT_DETAIL_COPY                  ? CT_DETAIL_ADDRESSES
                                : !is_driver || detail != CT_DETAIL_NONE  ? CT_DETAIL_NONE
                                : strcmp(call->site.category, "set") == 0 ? CT_DETAIL_SET
                                                                          : CT_DETAIL_ALLOCATION;
    if ((row = ct_stream_detail_of(stream, call, more)))
        ct_print_json_members(row, ",", to);
    if ((row = ct_stream_detail_of(stream, call, CT_DETAIL_SUBJECT)))
        put_objects(to, row);
}

static void print_json(FILE *to, struct ct_line_style *style, struct ct_stream *stream,
                       const struct ct_stream_call *call)
{
    const struct ct_site *site = &call->site;
    fputs("{\"time\":\"", to);
    put_time(to, style, call->id);
    fprintf(to, "\",\"call_id\":%" PRId64 ",\"process_id\":%" PRId64 ",\"pid\":%" PRId64 ",\"tid\":%" PRId64,
            call->id, site->process_id, site->pid, site->tid);
    put_member(to, "layer", site->layer);
    put_member(to, "name", site->name);
    put_member(to, "category", site->category);
    fprintf(to, ",\"depth\":%d,\"start_ns\":%" PRId64 ",\"duration_ns\":%" PRId64 ",\"status\":%" PRId32,
            site->depth, call->start_ns, call->id - call->start_ns, site->status);
    put_member(to, "status_name", site->status_name);
    if (call->has_bytes)
        fprintf(to, ",\"bytes\":%" PRId64, call->bytes);
    put_details(to, stream, call);
    fputs("}\n", to);
}

void ct_line_call(FILE *to, struct ct_line_style *style, struct ct_stream *stream,
                  const struct ct_stream_call *call)
{
    (style->is_json ? print_json : print_text)(to, style, stream, call);
}

static void put_notice(FILE *to, const struct ct_line_style *style, const char *text)
{
    put_coloured(to, style, YELLOW, text);
    fputc('\n', to);
}

void ct_line_not_shown(FILE *to, const struct ct_line_style *style, uint64_t calls)
{
    char text[64];
    if (style->is_json) {
        fprintf(to, "{\"not_shown\":%" PRIu64 "}\n", calls);
        return;
    }
    snprintf(text, sizeof(text), "… %" PRIu64 " call%s not shown …", calls, calls == 1 ? "" : "s");
    put_notice(to, style, text);
}

void ct_line_removed(FILE *to, const struct ct_line_style *style)
{
    if (style->is_json)
        fputs("{\"removed_unread\":true}\n", to);
    else
        put_notice(to, style, "… calls were removed before they were read (--keep, --max-db) …");
}
