#include "replay_source.h"

#include "dump_file.h"
#include "interner.h"
#include "known.h"
#include "payload.h"

#include <stdlib.h>
#include <string.h>

enum { FILLED_MAX = 64 };

struct ct_replay {
    struct ct_source source; /* first */
    struct ct_stream stream;
    struct ct_dump_file file;
    struct ct_known known;
    bool loaded;   /* the current frame is not yet completely committed */
    bool told;     /* the frame's processes and functions are registered */
    bool stale;    /* the ids that the store assigned are no longer valid */
    bool finished; /* there is no further frame */
    size_t filled; /* the stream's position in the frame */
    uint64_t until_ns;
    struct ct_call call[FILLED_MAX];
    struct ct_thread_name name[FILLED_MAX];
};

static struct ct_replay *replay_of(struct ct_source *source)
{
    return (struct ct_replay *)source;
}

/* ---- a frame ---- */

/* Checks every event of a frame, and learns its definitions. If any event is invalid, no part of the frame is
 * stored. */
static bool check_frame(struct ct_replay *replay)
{
    size_t at = 0;
    struct ct_dump_view view;
    replay->until_ns = replay->file.head.until_ns;
    while (ct_dump_view(&replay->file, &at, &view)) {
        if (!ct_known_learn(&replay->known, &view))
            return false;
        if (view.type == CT_DUMP_CALL && view.body->call.end_ns > replay->until_ns)
            replay->until_ns = view.body->call.end_ns;
    }
    return at == replay->file.head.bytes;
}

static void load(struct ct_replay *replay)
{
    replay->filled = 0;
    replay->told = false;
    replay->loaded = ct_dump_next(&replay->file);
    if (replay->loaded && !check_frame(replay)) {
        ct_dump_doubt(&replay->file);
        replay->loaded = false;
    }
    replay->finished = !replay->loaded;
}

static int tell(struct ct_replay *replay, struct ct_ledger *ledger)
{
    size_t at = 0;
    struct ct_dump_view view;
    while (ct_dump_view(&replay->file, &at, &view)) {
        if (ct_known_tell(&replay->known, ledger, &view) != 0)
            return -1;
    }
    replay->told = true;
    return 0;
}

static int begin(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_replay *replay = replay_of(source);
    if (!replay->loaded && !replay->finished)
        load(replay);
    if (replay->stale && ct_known_tell_anew(&replay->known, batch->ledger) != 0)
        return -1;
    replay->stale = false;
    return replay->loaded && !replay->told ? tell(replay, batch->ledger) : 0;
}

static void watermark(struct ct_source *source, struct ct_batch *batch)
{
    const struct ct_replay *replay = replay_of(source);
    if (replay->loaded && replay->until_ns < batch->until_ns)
        batch->until_ns = replay->until_ns;
}

/* ---- calls ---- */

static bool fill_in(struct ct_replay *replay, const struct ct_dump_view *view, size_t place)
{
    struct ct_call *call = &replay->call[place];
    if (view->type == CT_DUMP_THREAD) {
        const struct ct_dump_thread *thread = &view->body->thread;
        struct ct_thread_name *name = &replay->name[place];
        *name = (struct ct_thread_name){ 0 };
        strncpy(name->name, view->text[0], sizeof(name->name) - 1);
        *call = (struct ct_call){ .caller =
                                      ct_known_thread(&replay->known, thread->segment_id, thread->thread_id),
                                  .value = thread->tid,
                                  .payload = name,
                                  .payload_bytes = sizeof(*name),
                                  .kind = CT_KIND_THREAD };
        return call->caller->account->segment_id != 0;
    }
    if (view->type != CT_DUMP_CALL && view->type != CT_DUMP_NOTE)
        return false;
    const struct ct_dump_call *body = &view->body->call;
    *call = (struct ct_call){
        .end_ns = body->end_ns,
        .duration_ns = body->duration_ns < body->end_ns ? body->duration_ns : body->end_ns,
        .caller = ct_known_thread(&replay->known, body->segment_id, body->thread_id),
        .callee = view->type == CT_DUMP_CALL
                      ? ct_known_callee(&replay->known, body->segment_id, body->function_id)
                      : NULL,
        .value = body->value,
        .payload = view->tail,
        .status = body->status,
        .payload_bytes = view->tail_bytes,
        .kind = body->kind,
        .depth = body->depth,
        .flags = body->flags,
    };
    return call->caller->account->segment_id != 0;
}

static bool fill(struct ct_stream *stream, uint64_t until_ns)
{
    struct ct_replay *replay = (struct ct_replay *)((char *)stream - offsetof(struct ct_replay, stream));
    struct ct_dump_view view;
    size_t at = replay->filled;
    stream->next = stream->end = replay->call;
    while (stream->end < replay->call + FILLED_MAX && ct_dump_view(&replay->file, &at, &view)) {
        const bool is_filled = fill_in(replay, &view, (size_t)(stream->end - replay->call));
        if (is_filled && ct_call_due_ns(stream->end) > until_ns)
            break;
        stream->end += is_filled;
        replay->filled = at;
    }
    return stream->next < stream->end;
}

static int streams(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_replay *replay = replay_of(source);
    if (!replay->loaded || ct_merge_add(&batch->ledger->merge, &replay->stream) == 0)
        return 0;
    ct_store_short_of_memory(batch->ledger->store);
    return -1;
}

/* ---- other facts ---- */

static bool is_taken(const struct ct_replay *replay)
{
    return replay->stream.next == replay->stream.end && replay->filled == replay->file.head.bytes;
}

static int save(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_replay *replay = replay_of(source);
    size_t at = 0;
    struct ct_dump_view view;
    if (ct_known_save(&replay->known, batch->ledger) != 0)
        return -1;
    while (replay->loaded && ct_dump_view(&replay->file, &at, &view)) {
        /* The trace may continue in its next file before the whole frame is taken, and needs the lanes. */
        if ((is_taken(replay) || view.type == CT_DUMP_LANE) &&
            ct_known_save_event(&replay->known, batch->ledger, &view) != 0)
            return -1;
    }
    return 0;
}

static void publish(struct ct_source *source, struct ct_batch *batch)
{
    struct ct_replay *replay = replay_of(source);
    (void)batch;
    if (replay->loaded && is_taken(replay))
        replay->loaded = false;
}

static void revert(struct ct_source *source)
{
    replay_of(source)->stale = true;
}

static void rest(struct ct_source *source, struct ct_report *report)
{
    report->backlog |= !replay_of(source)->finished;
}

static const struct ct_source_class replay_class = {
    .begin = begin,
    .watermark = watermark,
    .streams = streams,
    .save = save,
    .publish = publish,
    .revert = revert,
    .rest = rest,
};

/* ---- the option ---- */

static void close_replay(struct ct_source *source)
{
    struct ct_replay *replay = replay_of(source);
    ct_dump_close(&replay->file);
    ct_known_finish(&replay->known);
    free(replay);
}

static int open_replay(const char *path, struct ct_source **result, char message[CT_MESSAGE_BYTES])
{
    struct ct_replay *replay = calloc(1, sizeof(*replay));
    if (!replay)
        return ct_message(message, "out of memory");
    replay->source.class = &replay_class;
    replay->stream.fill = fill;
    ct_known_init(&replay->known);
    if (ct_dump_open(&replay->file, path) != 0) {
        ct_message(message, "%s", replay->file.problem);
        close_replay(&replay->source);
        return -1;
    }
    /* Before a database is created, reject a file that contains nothing to store. */
    load(replay);
    if (!replay->loaded && replay->file.problem[0]) {
        ct_message(message, "%s", replay->file.problem);
        close_replay(&replay->source);
        return -1;
    }
    *result = &replay->source;
    return 0;
}

static const struct ct_origin *origin_of(const struct ct_source *source)
{
    return &((const struct ct_replay *)source)->file.header.origin;
}

/* Compares the files' first frames, which have the same form whatever the files' format is. */
static bool is_same(const struct ct_source *a, const struct ct_source *b)
{
    const struct ct_replay *one = (const struct ct_replay *)a, *other = (const struct ct_replay *)b;
    return one->loaded && other->loaded && one->file.head.bytes == other->file.head.bytes &&
           memcmp(one->file.events, other->file.events, one->file.head.bytes) == 0;
}

static bool problem_of(const struct ct_source *source, size_t number, char message[CT_MESSAGE_BYTES])
{
    const struct ct_dump_file *file = &((const struct ct_replay *)source)->file;
    char dropped[CT_DROPPED_BYTES + 128];
    if (number < file->dropped.kinds) {
        ct_dropped_text(&file->dropped, number, dropped, sizeof(dropped));
        ct_message(message, "'%s': %s", file->path, dropped);
        return true;
    }
    ct_message(message, "%s", file->problem);
    return number == file->dropped.kinds && file->problem[0];
}

const struct ct_file_source ct_replay_files = {
    .name = "replay",
    .help = "  --replay FILE     store FILE and the files after it (recordings, JSON lines or Chrome\n"
            "                    traces) in a new database, and exit\n",
    .open = open_replay,
    .origin = origin_of,
    .is_same = is_same,
    .problem = problem_of,
    .close = close_replay,
};
