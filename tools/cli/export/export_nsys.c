/* Implements `cudatrace export --format nsys`. Writes an SQLite file with all tables of Nsight Systems'
 * exports that cudatrace can fill (schema/nsys.sql). Without `cudatrace run --gpu`, the tables of GPU work
 * are empty. */
#include "export_work.h"
#include "kernel_name.h"
#include "name_numbers.h"

#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_MARK = 34, EVENT_PUSHED = 59, EVENT_STARTED = 60, EVENT_DOMAIN = 75 };
enum { CLASS_RUNTIME = 0, CLASS_DRIVER = 1 };
#define STATEMENTS_OF_CALLS(ROW)                                                                             \
    ROW(string) ROW(process) ROW(thread) ROW(session) ROW(meta) ROW(call) ROW(os_call) ROW(range)
#define STATEMENTS_OF_WORK(ROW) ROW(kernel) ROW(copy) ROW(set) ROW(graph) ROW(gpu) ROW(device)
#define STATEMENTS(ROW)         STATEMENTS_OF_CALLS(ROW) STATEMENTS_OF_WORK(ROW)
enum statement {
#define ROW(name) INSERT_##name,
    STATEMENTS(ROW)
#undef ROW
        INSERTS
};

struct state {
    sqlite3 *file;
    sqlite3_stmt *insert[INSERTS];
    struct ct_names strings, domains;
    bool failed; /* out of memory, or the file cannot be written */
};

/* Inserts the row that has been bound, and clears the bindings. */
static void insert(struct state *state, enum statement statement)
{
    sqlite3_stmt *row = state->insert[statement];
    state->failed |= sqlite3_step(row) != SQLITE_DONE;
    sqlite3_reset(row);
    sqlite3_clear_bindings(row);
}

static void bind_text(sqlite3_stmt *row, int column, const char *text)
{
    sqlite3_bind_text(row, column, text, -1, SQLITE_STATIC);
}

static int64_t string_id(struct state *state, const char *text)
{
    const struct ct_name name = ct_names_number(&state->strings, text, &state->failed);
    if (name.is_new) {
        sqlite3_bind_int64(state->insert[INSERT_string], 1, (int64_t)name.number);
        bind_text(state->insert[INSERT_string], 2, name.text);
        insert(state, INSERT_string);
    }
    return (int64_t)name.number;
}

/* Packs pid and tid into 24 bits each, as readers of these files expect. Two processes with the same pid
 * differ in the higher bits, where Nsight Systems stores the ID of a virtual machine. */
static int64_t global_pid(const struct ct_export *to, int64_t process_id)
{
    const struct ct_export_process *process = ct_export_process(to, process_id);
    const int64_t machine = process->track == process->pid ? 0 : process_id & 0xff;
    return machine << 48 | (process->pid & 0xffffff) << 24;
}

static int64_t global_tid(const struct ct_export *to, const struct ct_site *site)
{
    return global_pid(to, site->process_id) | (site->tid & 0xffffff);
}

/* ---- calls ---- */

/* Returns the domain's ID. Writes one row per domain and process, when the domain is first seen. */
static int64_t domain_id(struct ct_export *to, const struct ct_stream_call *call, const char *domain)
{
    struct state *state = to->state;
    char *text = sqlite3_mprintf("%lld %s", (long long)call->site.process_id, domain);
    if (!text) {
        state->failed = true;
        return 0;
    }
    const struct ct_name name = ct_names_number(&state->domains, text, &state->failed);
    sqlite3_free(text);
    if (name.is_new) {
        sqlite3_stmt *row = state->insert[INSERT_range];
        sqlite3_bind_int64(row, 1, call->start_ns - to->extent.begin_ns);
        sqlite3_bind_int64(row, 3, global_tid(to, &call->site));
        sqlite3_bind_int(row, 4, EVENT_DOMAIN);
        bind_text(row, 5, domain);
        sqlite3_bind_int64(row, 6, (int64_t)name.number);
        insert(state, INSERT_range);
    }
    return (int64_t)name.number;
}

/* Binds the first values of a row: begin, end and thread. */
static sqlite3_stmt *bind_call(struct ct_export *to, enum statement statement,
                               const struct ct_stream_call *call)
{
    sqlite3_stmt *row = ((struct state *)to->state)->insert[statement];
    sqlite3_bind_int64(row, 1, call->start_ns - to->extent.begin_ns);
    if (call->site.kind != CT_SITE_MARK)
        sqlite3_bind_int64(row, 2, call->id - to->extent.begin_ns);
    sqlite3_bind_int64(row, 3, global_tid(to, &call->site));
    return row;
}

static void write_range(struct ct_export *to, const struct ct_stream_call *call)
{
    static const int types[] = {
        [CT_SITE_PUSH] = EVENT_PUSHED, [CT_SITE_START] = EVENT_STARTED, [CT_SITE_MARK] = EVENT_MARK
    };
    enum ct_detail detail;
    sqlite3_stmt *range = ct_stream_detail(to->stream, call, &detail);
    const char *message = range ? (const char *)sqlite3_column_text(range, 0) : NULL;
    const char *domain = range ? (const char *)sqlite3_column_text(range, 1) : NULL;
    const int64_t id = domain ? domain_id(to, call, domain) : 0;
    sqlite3_stmt *row = bind_call(to, INSERT_range, call);
    sqlite3_bind_int(row, 4, types[call->site.kind]);
    bind_text(row, 5, message);
    sqlite3_bind_int64(row, 6, id);
    insert(to->state, INSERT_range);
}

static void write_call(struct ct_export *to, const struct ct_event *event)
{
    struct state *state = to->state;
    const struct ct_site *site = &event->call.site;
    const bool is_runtime = strcmp(site->layer, "runtime") == 0;
    const bool is_cuda = is_runtime || strcmp(site->layer, "driver") == 0;
    if (site->kind != CT_SITE_CALL) {
        write_range(to, &event->call);
        return;
    }
    if (is_cuda && event->around.outermost_id)
        return;
    const enum statement statement = is_cuda ? INSERT_call : INSERT_os_call;
    const int64_t name = string_id(state, site->name);
    sqlite3_stmt *row = bind_call(to, statement, &event->call);
    sqlite3_bind_int64(row, 4, name);
    sqlite3_bind_int(row, 5, site->status);
    if (is_cuda) {
        sqlite3_bind_int(row, 6, is_runtime ? CLASS_RUNTIME : CLASS_DRIVER);
        sqlite3_bind_int64(row, 7, event->call.id);
    } else {
        sqlite3_bind_int(row, 6, 0);
    }
    insert(state, statement);
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    if (event->is_begin)
        write_call(to, event);
    return !((struct state *)to->state)->failed;
}

/* ---- GPU work ---- */

static void bind_kernel(struct state *state, sqlite3_stmt *row, const struct ct_work *work)
{
    size_t length;
    const char *its_own = ct_kernel_name_short(work->kernel, &length);
    char *short_name = strndup(its_own, length);
    state->failed |= !short_name;
    if (!short_name)
        return;
    sqlite3_bind_int64(row, 10, string_id(state, work->kernel));
    sqlite3_bind_int64(row, 11, string_id(state, short_name));
    if (work->mangled)
        sqlite3_bind_int64(row, 12, string_id(state, work->mangled));
    for (int i = 0; i < CT_LAUNCH_SIZES && work->cause.size[CT_SIZE_BLOCK_X]; i++)
        sqlite3_bind_int64(row, 13 + i, work->cause.size[i]);
    free(short_name);
}

static bool write_work(struct ct_export *to, const struct ct_work *work)
{
    static const struct {
        const char *kind;
        enum statement statement;
    } kinds[] = {
        { "kernel", INSERT_kernel }, { "copy", INSERT_copy }, { "set", INSERT_set }, { "graph", INSERT_graph }
    };
    enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
    struct state *state = to->state;
    size_t k = 0;
    while (k < KINDS && strcmp(kinds[k].kind, work->kind) != 0)
        k++;
    if (k == KINDS)
        return true;
    const enum statement statement = kinds[k].statement;
    sqlite3_stmt *row = state->insert[statement];
    sqlite3_bind_int64(row, 1, work->start_ns - to->extent.begin_ns);
    sqlite3_bind_int64(row, 2, work->end_ns - to->extent.begin_ns);
    sqlite3_bind_int64(row, 3, work->device);
    sqlite3_bind_int64(row, 4, work->context);
    sqlite3_bind_int64(row, 5, work->stream);
    sqlite3_bind_int64(row, 6, global_pid(to, work->process_id));
    if (work->cause.call_id)
        sqlite3_bind_int64(row, 7, work->cause.correlation);
    if (work->node)
        sqlite3_bind_int64(row, 8, work->node);
    if (statement == INSERT_kernel) {
        bind_kernel(state, row, work);
    } else if (statement == INSERT_graph) {
        sqlite3_bind_int64(row, 9, work->graph);
    } else {
        sqlite3_bind_int64(row, 10, work->bytes);
        bind_text(row, 11, work->copy_kind);
    }
    insert(state, statement);
    return !state->failed;
}

static bool write_gpu(struct ct_export *to, sqlite3_stmt *gpu)
{
    struct state *state = to->state;
    for (int c = 0; c < sqlite3_column_count(gpu); c++)
        sqlite3_bind_value(state->insert[INSERT_gpu], c + 1, sqlite3_column_value(gpu, c));
    insert(state, INSERT_gpu);
    return !state->failed;
}

static bool write_device(struct ct_export *to, sqlite3_stmt *device)
{
    struct state *state = to->state;
    sqlite3_stmt *row = state->insert[INSERT_device];
    sqlite3_bind_int64(row, 1, ct_export_process(to, sqlite3_column_int64(device, 0))->pid);
    for (int c = 1; c < sqlite3_bind_parameter_count(row); c++)
        sqlite3_bind_value(row, c + 1, sqlite3_column_value(device, c));
    insert(state, INSERT_device);
    return !state->failed;
}

/* ---- processes, threads, metadata ---- */

static void write_meta(struct state *state, const char *name, const char *value)
{
    bind_text(state->insert[INSERT_meta], 1, name);
    bind_text(state->insert[INSERT_meta], 2, value);
    insert(state, INSERT_meta);
}

static void write_processes(struct ct_export *to)
{
    struct state *state = to->state;
    for (size_t i = 0; i < to->process_count; i++) {
        sqlite3_stmt *row = state->insert[INSERT_process];
        sqlite3_bind_int64(row, 1, global_pid(to, to->process[i].process_id));
        sqlite3_bind_int64(row, 2, to->process[i].pid);
        bind_text(row, 3, to->process[i].name);
        insert(state, INSERT_process);
    }
}

static bool write_thread(struct ct_export *to, sqlite3_stmt *row)
{
    struct state *state = to->state;
    const int64_t id = string_id(state, ct_export_text(row, 2));
    sqlite3_bind_int64(state->insert[INSERT_thread], 1, id);
    sqlite3_bind_int64(state->insert[INSERT_thread], 2,
                       global_pid(to, sqlite3_column_int64(row, 0)) |
                           (sqlite3_column_int64(row, 1) & 0xffffff));
    insert(state, INSERT_thread);
    return true;
}

/* Creates the tables. The file needs no journal, because nobody reads it before it has its final name. */
static bool create(struct ct_export *to, struct state *state)
{
    static const char *const inserts[INSERTS] = {
#define ROW(name) ct_sql_nsys_##name,
        STATEMENTS(ROW)
#undef ROW
    };
    if (sqlite3_open_v2(to->path, &state->file, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(state->file, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", NULL, NULL,
                     NULL) != SQLITE_OK ||
        sqlite3_exec(state->file, ct_sql_nsys_tables, NULL, NULL, NULL) != SQLITE_OK)
        return false;
    for (int i = 0; i < INSERTS; i++) {
        if (sqlite3_prepare_v3(state->file, inserts[i], -1, SQLITE_PREPARE_PERSISTENT, &state->insert[i],
                               NULL) != SQLITE_OK)
            return false;
    }
    return true;
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    if (!create(to, state))
        return false;
    write_meta(state, "tool", "cudatrace " CUDATRACE_VERSION);
    sqlite3_bind_int64(state->insert[INSERT_session], 1, to->extent.begin_ns + to->extent.realtime_offset_ns);
    insert(state, INSERT_session);
    write_processes(to);
    return ct_export_each(to, ct_sql_exports_threads, write_thread) && !state->failed;
}

static bool end(struct ct_export *to)
{
    const struct state *state = to->state;
    return ct_export_each_of_newer(to, ct_sql_exports_gpus, write_gpu) &&
           ct_export_each_of_newer(to, ct_sql_exports_gpu_devices, write_device) &&
           sqlite3_exec(state->file, "COMMIT", NULL, NULL, NULL) == SQLITE_OK;
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    ct_export_note_error(state->file);
    for (int i = 0; i < INSERTS; i++)
        sqlite3_finalize(state->insert[i]);
    sqlite3_close(state->file);
    ct_names_free(&state->strings);
    ct_names_free(&state->domains);
}

const struct ct_export_format ct_export_nsys = {
    .name = "nsys",
    .about = "a SQLite file with the tables of Nsight Systems' exports, for `nsys stats`\n"
             "            and scripts that read them",
    .is_file = true,
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .work = write_work,
    .end = end,
    .finish = finish,
};
