/* Implements `cudatrace export --format perfetto`. Writes Perfetto's native format (perfetto.proto), packet
 * by packet. Each thread has a track with a slice for each call. A range that crosses other ranges has a
 * separate track, and memory has a counter. Each stream has a track with the work of its GPU. Arrows lead
 * from a runtime call to each driver call that it made, and from a call to each piece of work that it caused.
 * Names and arguments are written once and then referred to by number. */
#include "export_open.h"
#include "export_work.h"
#include "name_numbers.h"
#include "perfetto_tracks.h"

#include "perfetto.pb-c.h"
#include "schema_sql.h"

#include <stdlib.h>
#include <string.h>

/* NAMES_MAX limits the number of interned names of each kind, because a program may give every range a
 * different name. */
enum { NAMES_MAX = 1 << 16, ANNOTATIONS_MAX = 24 };

/* Perfetto assumes that all events of a sequence are written by the thread that the sequence described last.
 * If an event belongs to no thread, Perfetto adds that thread to the event's arguments. Therefore, tracks are
 * described in a sequence of their own. */
enum { SEQUENCE_EVENTS = 1, SEQUENCE_TRACKS };

enum kind { CATEGORY, EVENT, ANNOTATION, VALUE, KINDS };

struct state {
    bool failed;           /* out of memory */
    int64_t gpu_id;        /* the GPU described last; 0: none yet */
    uint32_t gpu_counters; /* bits of the columns whose counters are described for that GPU */

    struct ct_export_open_calls open;
    size_t open_written;

    struct {
        struct ct_names names;
        /* Names to be defined in the next packet, which is the first to use them. */
        Perfetto__InternedName fresh[ANNOTATIONS_MAX], *list[ANNOTATIONS_MAX];
        size_t fresh_count;
    } names[KINDS];

    /* The event being written. */
    Perfetto__TrackEvent event;
    Perfetto__DebugAnnotation annotation[ANNOTATIONS_MAX], *annotations[ANNOTATIONS_MAX];
    Perfetto__LegacyEvent source;
    uint64_t categories[2], flow;

    uint8_t *packed;
    size_t packed_room;
};

/* ---- packets ---- */

static void attach_names(struct state *state, Perfetto__InternedData *data)
{
    struct {
        size_t *count;
        Perfetto__InternedName ***list;
    } const fields[KINDS] = {
        [CATEGORY] = { &data->n_event_categories, &data->event_categories },
        [EVENT] = { &data->n_event_names, &data->event_names },
        [ANNOTATION] = { &data->n_debug_annotation_names, &data->debug_annotation_names },
        [VALUE] = { &data->n_debug_annotation_string_values, &data->debug_annotation_string_values },
    };
    for (int kind = 0; kind < KINDS; kind++) {
        *fields[kind].count = state->names[kind].fresh_count;
        *fields[kind].list = state->names[kind].list;
        state->names[kind].fresh_count = 0;
    }
}

/* Writes the packet as a field of a Trace message, which consists of the field's number and type, the length,
 * and the packet. */
static bool write_packet(struct ct_export *to, Perfetto__TracePacket *packet)
{
    struct state *state = to->state;
    Perfetto__InternedData names = PERFETTO__INTERNED_DATA__INIT;
    const bool is_track = packet->data_case == PERFETTO__TRACE_PACKET__DATA_TRACK_DESCRIPTOR;
    packet->trusted_packet_sequence_id = is_track ? SEQUENCE_TRACKS : SEQUENCE_EVENTS;
    if (!is_track) /* only events use names */
        packet->sequence_flags |= PERFETTO__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_NEEDS_INCREMENTAL_STATE;
    bool fresh = false;
    for (int kind = 0; kind < KINDS; kind++)
        fresh |= state->names[kind].fresh_count > 0;
    if (fresh) {
        attach_names(state, &names);
        packet->interned_data = &names;
    }
    const size_t bytes = protobuf_c_message_get_packed_size(&packet->base);
    if (bytes > state->packed_room) {
        uint8_t *packed = realloc(state->packed, 2 * bytes);
        if (!packed)
            return false;
        state->packed = packed;
        state->packed_room = 2 * bytes;
    }
    protobuf_c_message_pack(&packet->base, state->packed);
    fputc(1 << 3 | 2, to->to);
    for (size_t rest = bytes; fputc((int)(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0), to->to), rest >>= 7;)
        ;
    return fwrite(state->packed, 1, bytes, to->to) == bytes;
}

/* Returns a name's ID, or 0 if there are too many names. A new name is defined in the next packet. A packet
 * defines at most ANNOTATIONS_MAX new names of each kind. */
static uint64_t number_of(struct state *state, enum kind kind, const char *text)
{
    const struct ct_name name = ct_names_number(&state->names[kind].names, text, &state->failed);
    if (name.is_new) {
        const size_t slot = state->names[kind].fresh_count++;
        Perfetto__InternedName *fresh = state->names[kind].list[slot] = &state->names[kind].fresh[slot];
        perfetto__interned_name__init(fresh);
        fresh->iid = name.number;
        fresh->name = (char *)(uintptr_t)name.text; /* packing does not change it */
    }
    return name.number;
}

/* ---- events ---- */

static void begin_event(struct state *state, Perfetto__TrackEvent__Type type, uint64_t track)
{
    perfetto__track_event__init(&state->event);
    state->event.type = type;
    state->event.track_uuid = track;
}

static bool write_event(struct ct_export *to, int64_t at_ns)
{
    struct state *state = to->state;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = (uint64_t)at_ns;
    packet.data_case = PERFETTO__TRACE_PACKET__DATA_TRACK_EVENT;
    packet.track_event = &state->event;
    return write_packet(to, &packet) && !state->failed;
}

static void set_name(struct state *state, const char *text)
{
    const uint64_t iid = number_of(state, EVENT, text);
    state->event.name_field_case =
        iid ? PERFETTO__TRACK_EVENT__NAME_FIELD_NAME_IID : PERFETTO__TRACK_EVENT__NAME_FIELD_NAME;
    if (iid)
        state->event.name_iid = iid;
    else
        state->event.name = (char *)(uintptr_t)text;
}

static void set_category(struct state *state, const char *text)
{
    const uint64_t iid = number_of(state, CATEGORY, text);
    if (!iid)
        return;
    state->categories[state->event.n_category_iids++] = iid;
    state->event.category_iids = state->categories;
}

/* Adds an annotation. Returns NULL if there is no room for another one. */
static Perfetto__DebugAnnotation *annotate(struct state *state, const char *name)
{
    const size_t count = state->event.n_debug_annotations;
    const uint64_t iid = count < ANNOTATIONS_MAX ? number_of(state, ANNOTATION, name) : 0;
    if (!iid)
        return NULL;
    Perfetto__DebugAnnotation *annotation = state->annotations[count] = &state->annotation[count];
    perfetto__debug_annotation__init(annotation);
    annotation->name_field_case = PERFETTO__DEBUG_ANNOTATION__NAME_FIELD_NAME_IID;
    annotation->name_iid = iid;
    state->event.debug_annotations = state->annotations;
    state->event.n_debug_annotations++;
    return annotation;
}

static void annotate_number(struct state *state, const char *name, int64_t value)
{
    Perfetto__DebugAnnotation *annotation = annotate(state, name);
    if (!annotation)
        return;
    annotation->value_case = PERFETTO__DEBUG_ANNOTATION__VALUE_INT_VALUE;
    annotation->int_value = value;
}

/* Adds a string annotation. The caller still owns `value`, which must stay valid until the event is written.
 */
static void annotate_text(struct state *state, const char *name, const char *value)
{
    Perfetto__DebugAnnotation *annotation = annotate(state, name);
    if (!annotation)
        return;
    const uint64_t iid = number_of(state, VALUE, value);
    annotation->value_case = iid ? PERFETTO__DEBUG_ANNOTATION__VALUE_STRING_VALUE_IID
                                 : PERFETTO__DEBUG_ANNOTATION__VALUE_STRING_VALUE;
    if (iid)
        annotation->string_value_iid = iid;
    else
        annotation->string_value = (char *)(uintptr_t)value;
}

static void annotate_column(struct state *state, const char *name, sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_INTEGER)
        annotate_number(state, name, sqlite3_column_int64(row, column));
    else if (sqlite3_column_type(row, column) != SQLITE_NULL)
        annotate_text(state, name, (const char *)sqlite3_column_text(row, column));
}

/* Perfetto shows names with dots as members of an object. */
static void annotate_fields(struct state *state, sqlite3_stmt *row)
{
    char name[64];
    for (int c = 0; c + 1 < sqlite3_column_count(row); c += 2) {
        if (sqlite3_column_type(row, c) == SQLITE_NULL)
            continue;
        snprintf(name, sizeof(name), "fields.%s", ct_export_text(row, c));
        annotate_column(state, name, row, c + 1);
    }
}

static void annotate_details(struct ct_export *to, sqlite3_stmt *row, enum ct_detail detail)
{
    if (detail == CT_DETAIL_HOOK)
        annotate_fields(to->state, row);
    for (int c = 0; row && detail != CT_DETAIL_HOOK && c < sqlite3_column_count(row); c++)
        annotate_column(to->state, sqlite3_column_name(row, c), row, c);
}

/* ---- arrows ---- */

/* Lets arrows begin at the call. The ID of the arrows' flow is the number of the call. */
static void begin_arrows(struct state *state, int64_t call_id)
{
    state->flow = (uint64_t)call_id;
    state->event.flow_ids = &state->flow;
    state->event.n_flow_ids = 1;
}

/* Adds an arrow from a call that began earlier. If `flow_ids` of this event contained the call's number, the
 * next arrow from the call would begin at this event. The format's legacy field for arrows avoids this. */
static void add_arrow_from(struct state *state, int64_t call_id)
{
    perfetto__legacy_event__init(&state->source);
    state->source.bind_id = (uint64_t)call_id;
    state->source.flow_direction = PERFETTO__LEGACY_EVENT__FLOW_DIRECTION__FLOW_IN;
    state->event.legacy_event = &state->source;
}

static void add_arrows(const struct ct_export *to, const struct ct_event *event)
{
    const char *around = event->around.layer, *layer = event->call.site.layer;
    const bool is_runtime = strcmp(layer, "runtime") == 0;
    if (around && strcmp(around, "runtime") == 0 && strcmp(layer, "driver") == 0)
        add_arrow_from(to->state, event->around.id);
    if (is_runtime || to->has_caused_work)
        begin_arrows(to->state, event->call.id);
}

/* ---- calls ---- */

static bool describe(struct ct_export *to, Perfetto__TrackDescriptor *track)
{
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.data_case = PERFETTO__TRACE_PACKET__DATA_TRACK_DESCRIPTOR;
    packet.track_descriptor = track;
    return write_packet(to, &packet);
}

/* Describes a track below another. The track is a counter if `counter` is not NULL. */
static bool describe_below(struct ct_export *to, uint64_t parent, uint64_t uuid, const char *name,
                           Perfetto__CounterDescriptor *counter)
{
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    track.has_parent_uuid = true;
    track.uuid = uuid;
    track.parent_uuid = parent;
    track.name = (char *)(uintptr_t)name;
    track.counter = counter;
    return describe(to, &track);
}

/* Describes the track of a call or range that crosses others. */
static bool describe_across(struct ct_export *to, int64_t process_id, uint64_t uuid, bool is_range)
{
    return describe_below(to, ct_track_of_process(process_id), uuid,
                          is_range ? "NVTX ranges" : "calls across ranges", NULL);
}

static uint64_t track_of(const struct ct_event *event)
{
    const struct ct_site *site = &event->call.site;
    return event->is_across ? ct_track_of_range(event->call.id)
                            : ct_track_of_thread(site->process_id, site->tid);
}

static bool write_begin(struct ct_export *to, const struct ct_event *event)
{
    struct state *state = to->state;
    const struct ct_stream_call *call = &event->call;
    const struct ct_site *site = &call->site;
    if (event->is_across &&
        !describe_across(to, site->process_id, track_of(event), site->kind != CT_SITE_CALL))
        return false;
    begin_event(state,
                site->kind == CT_SITE_MARK ? PERFETTO__TRACK_EVENT__TYPE__TYPE_INSTANT
                                           : PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN,
                track_of(event));
    enum ct_detail detail;
    sqlite3_stmt *row = ct_stream_detail(to->stream, call, &detail);
    const bool is_named = detail == CT_DETAIL_RANGE && row && sqlite3_column_type(row, 0) == SQLITE_TEXT;
    set_name(state, is_named ? (const char *)sqlite3_column_text(row, 0) : site->name);
    set_category(state, site->layer);
    set_category(state, site->category);
    annotate_number(state, "call_id", call->id);
    if (site->status != 0) {
        annotate_number(state, "status", site->status);
        annotate_text(state, "status_name", site->status_name ? site->status_name : "");
    }
    if (call->has_bytes)
        annotate_number(state, "bytes", call->bytes);
    annotate_details(to, row, detail);
    add_arrows(to, event);
    return write_event(to, call->start_ns);
}

static bool write_end(struct ct_export *to, const struct ct_event *event)
{
    if (event->call.site.kind == CT_SITE_MARK)
        return true;
    begin_event(to->state, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, track_of(event));
    return write_event(to, event->at_ns);
}

static bool event(struct ct_export *to, const struct ct_event *event)
{
    if (event->is_begin && !event->is_across)
        ct_export_open_calls_pass(&((struct state *)to->state)->open, event);
    return (event->is_begin ? write_begin : write_end)(to, event);
}

/* ---- GPU work ---- */

static void annotate_work(struct state *state, const struct ct_work *work)
{
    static const char *const sizes[CT_LAUNCH_SIZES] = { "grid_x",  "grid_y",  "grid_z",      "block_x",
                                                        "block_y", "block_z", "shared_bytes" };
    annotate_number(state, "device", work->device);
    annotate_number(state, "context", work->context);
    annotate_number(state, "stream", work->stream);
    if (work->cause.call_id)
        annotate_number(state, "caused_by", work->cause.call_id);
    if (work->copy_kind)
        annotate_text(state, "copy_kind", work->copy_kind);
    if (work->copy_kind || strcmp(work->kind, "set") == 0)
        annotate_number(state, "bytes", work->bytes);
    if (work->graph)
        annotate_number(state, "graph", work->graph);
    if (work->node)
        annotate_number(state, "node", work->node);
    for (int i = 0; i < CT_LAUNCH_SIZES && work->cause.size[CT_SIZE_BLOCK_X]; i++)
        annotate_number(state, sizes[i], work->cause.size[i]);
}

static bool write_work(struct ct_export *to, const struct ct_work *work)
{
    struct state *state = to->state;
    const uint64_t track = ct_track_of_work(work);
    const bool is_kernel = strcmp(work->kind, "kernel") == 0;
    char name[CT_WORK_LANE_NAME_BYTES];
    ct_work_lane_name(work, name);
    if (work->is_first_in_lane &&
        !describe_below(to, ct_track_of_process(work->process_id), track, name, NULL))
        return false;
    begin_event(state, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, track);
    snprintf(name, sizeof(name), "%s%s%s", work->kind, work->copy_kind ? " " : "",
             work->copy_kind ? work->copy_kind : "");
    set_name(state, is_kernel ? work->kernel : name);
    set_category(state, "gpu");
    set_category(state, work->kind);
    annotate_work(state, work);
    if (work->cause.call_id && work->cause.start_ns <= work->start_ns) /* clocks may differ slightly */
        add_arrow_from(state, work->cause.call_id);
    if (!write_event(to, work->start_ns))
        return false;
    begin_event(state, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_END, track);
    return write_event(to, work->end_ns);
}

/* ---- processes, threads, memory, open calls ---- */

static bool write_process(struct ct_export *to, const struct ct_export_process *its)
{
    const int64_t process_id = its->process_id;
    Perfetto__ProcessDescriptor process = PERFETTO__PROCESS_DESCRIPTOR__INIT;
    process.pid = (int32_t)its->track;
    process.process_name = its->name;
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    track.uuid = ct_track_of_process(process_id);
    track.process = &process;
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    counter.unit = PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNIT_SIZE_BYTES;
    return describe(to, &track) &&
           describe_below(to, track.uuid, ct_track_of_memory(process_id), "device memory held", &counter);
}

static bool write_thread(struct ct_export *to, sqlite3_stmt *rows)
{
    const int64_t process_id = sqlite3_column_int64(rows, 0), tid = sqlite3_column_int64(rows, 1);
    Perfetto__ThreadDescriptor thread = PERFETTO__THREAD_DESCRIPTOR__INIT;
    thread.pid = sqlite3_column_int(rows, 3);
    thread.tid = tid;
    thread.thread_name = (char *)(uintptr_t)ct_export_text(rows, 2);
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    track.uuid = ct_track_of_thread(process_id, tid);
    track.thread = &thread;
    return describe(to, &track);
}

static bool write_memory(struct ct_export *to, sqlite3_stmt *rows)
{
    struct state *state = to->state;
    begin_event(state, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER,
                ct_track_of_memory(sqlite3_column_int64(rows, 0)));
    state->event.counter_value_field_case = PERFETTO__TRACK_EVENT__COUNTER_VALUE_FIELD_COUNTER_VALUE;
    state->event.counter_value = sqlite3_column_int64(rows, 2);
    return write_event(to, sqlite3_column_int64(rows, 1));
}

static bool describe_gpu(struct ct_export *to, sqlite3_stmt *rows, uint64_t uuid)
{
    Perfetto__TrackDescriptor track = PERFETTO__TRACK_DESCRIPTOR__INIT;
    track.uuid = uuid;
    track.name = (char *)(uintptr_t)ct_export_text(rows, CT_GPU_COLUMN_NAME);
    struct state *state = to->state;
    state->gpu_id = sqlite3_column_int64(rows, CT_GPU_COLUMN_ID);
    state->gpu_counters = 0;
    return describe(to, &track);
}

/* Describes a counter when its first value is written. Not every GPU has all counters. */
static bool describe_gpu_counter(struct ct_export *to, sqlite3_stmt *rows, uint64_t uuid, int c)
{
    struct state *state = to->state;
    if (state->gpu_counters >> c & 1)
        return true;
    state->gpu_counters |= UINT32_C(1) << c;
    Perfetto__CounterDescriptor counter = PERFETTO__COUNTER_DESCRIPTOR__INIT;
    counter.unit = PERFETTO__COUNTER_DESCRIPTOR__UNIT__UNIT_UNSPECIFIED; /* the name has the unit */
    return describe_below(to, uuid, uuid + (uint64_t)c, sqlite3_column_name(rows, c), &counter);
}

static bool write_gpu(struct ct_export *to, sqlite3_stmt *rows)
{
    struct state *state = to->state;
    const int64_t gpu_id = sqlite3_column_int64(rows, CT_GPU_COLUMN_ID);
    const uint64_t uuid = ct_track_of_gpu(gpu_id);
    bool good = gpu_id == state->gpu_id || describe_gpu(to, rows, uuid);
    for (int c = CT_GPU_COLUMN_COUNTERS; c < sqlite3_column_count(rows) && good; c++) {
        if (sqlite3_column_type(rows, c) == SQLITE_NULL)
            continue;
        good = describe_gpu_counter(to, rows, uuid, c);
        begin_event(state, PERFETTO__TRACK_EVENT__TYPE__TYPE_COUNTER, uuid + (uint64_t)c);
        state->event.counter_value_field_case = PERFETTO__TRACK_EVENT__COUNTER_VALUE_FIELD_COUNTER_VALUE;
        state->event.counter_value = sqlite3_column_int64(rows, c);
        good = good && write_event(to, sqlite3_column_int64(rows, CT_GPU_COLUMN_TIME));
    }
    return good;
}

static bool note_open_call(struct ct_export *to, sqlite3_stmt *rows)
{
    return ct_export_open_calls_add(&((struct state *)to->state)->open, rows);
}

/* Writes a slice that does not end, for a call that has not returned. Since the end of a slice ends the
 * newest slice of its track, a call that began inside one that has returned needs a separate track. The query
 * returns the same rows as for note_open_call(), because all queries are in one transaction. */
static bool write_open_call(struct ct_export *to, sqlite3_stmt *rows)
{
    struct state *state = to->state;
    const size_t number = state->open_written++;
    const struct ct_export_open_call *call = &state->open.call[number];
    const bool is_range = strcmp(ct_export_text(rows, 6), "nvtx") == 0;
    uint64_t track = ct_track_of_thread(call->process_id, call->tid);
    if (call->is_across) {
        track = ct_track_of_open_call(number);
        if (!describe_across(to, call->process_id, track, is_range))
            return false;
    }
    begin_event(state, PERFETTO__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN, track);
    set_name(state, ct_export_text(rows, 2));
    set_category(state, "open");
    Perfetto__DebugAnnotation *annotation = annotate(state, "returned");
    if (annotation)
        annotation->value_case = PERFETTO__DEBUG_ANNOTATION__VALUE_BOOL_VALUE;
    return write_event(to, call->start_ns);
}

/* Writes a clock snapshot that relates the monotonic clock, on which all times are based, to the time of
 * day. Perfetto 58 reports an error if the snapshot does not have the boot time, which a trace does not
 * record. Unlike the monotonic clock, the boot time also runs while the machine is suspended. */
static bool write_clocks(struct ct_export *to)
{
    const struct {
        Perfetto__BuiltinClock clock;
        int64_t offset_ns;
    } known[] = {
        { PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC, 0 },
        { PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_BOOTTIME, 0 },
        { PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_REALTIME, to->extent.realtime_offset_ns },
    };
    enum { CLOCKS = sizeof(known) / sizeof(known[0]) };
    Perfetto__ClockSnapshot__Clock clock[CLOCKS], *clocks[CLOCKS];
    for (int i = 0; i < CLOCKS; i++) {
        perfetto__clock_snapshot__clock__init(&clock[i]);
        clock[i].clock_id = known[i].clock;
        clock[i].timestamp = (uint64_t)(to->extent.begin_ns + known[i].offset_ns);
        clocks[i] = &clock[i];
    }
    Perfetto__ClockSnapshot snapshot = PERFETTO__CLOCK_SNAPSHOT__INIT;
    snapshot.n_clocks = CLOCKS;
    snapshot.clocks = clocks;
    snapshot.primary_trace_clock = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
    Perfetto__TracePacketDefaults defaults = PERFETTO__TRACE_PACKET_DEFAULTS__INIT;
    defaults.timestamp_clock_id = PERFETTO__BUILTIN_CLOCK__BUILTIN_CLOCK_MONOTONIC;
    Perfetto__TracePacket packet = PERFETTO__TRACE_PACKET__INIT;
    packet.has_timestamp = true;
    packet.timestamp = (uint64_t)to->extent.begin_ns;
    packet.sequence_flags = PERFETTO__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED;
    packet.trace_packet_defaults = &defaults;
    packet.data_case = PERFETTO__TRACE_PACKET__DATA_CLOCK_SNAPSHOT;
    packet.clock_snapshot = &snapshot;
    return write_packet(to, &packet);
}

static bool begin(struct ct_export *to)
{
    struct state *state = to->state;
    for (int kind = 0; kind < KINDS; kind++)
        state->names[kind].names.max = NAMES_MAX;
    bool good = write_clocks(to);
    for (size_t i = 0; i < to->process_count && good; i++)
        good = write_process(to, &to->process[i]);
    return good && ct_export_each(to, ct_sql_exports_threads, write_thread) &&
           ct_export_each_open_call(to, note_open_call);
}

static bool end(struct ct_export *to)
{
    return ct_export_each_open_call(to, write_open_call) &&
           ct_export_each(to, ct_sql_exports_memory, write_memory) &&
           ct_export_each_of_newer(to, ct_sql_exports_gpu_counters, write_gpu);
}

static void finish(struct ct_export *to)
{
    struct state *state = to->state;
    for (int kind = 0; kind < KINDS; kind++)
        ct_names_free(&state->names[kind].names);
    ct_export_open_calls_finish(&state->open);
    free(state->packed);
}

const struct ct_export_format ct_export_perfetto = {
    .name = "perfetto",
    .about = "the same in Perfetto's own format, a third of the size",
    .is_binary = true,
    .state_bytes = sizeof(struct state),
    .begin = begin,
    .event = event,
    .work = write_work,
    .end = end,
    .finish = finish,
};
