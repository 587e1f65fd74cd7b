#include "returned_work.h"

#include "deferred.h"
#include "store_state.h"

#include <stdbool.h>
#include <string.h>

static void write_stream(struct ct_store *store, struct ct_returned_stream *stream)
{
    if (stream->process_id != 0)
        ct_store_defer(store, CT_SQL_save_returned,
                       CT_VALUES(stream->process_id, stream->context, stream->stream, stream->correlation,
                                 stream->ended_ns),
                       NULL);
    stream->process_id = 0;
}

void ct_returned_note(struct ct_store *store, const struct ct_returned_stream *work)
{
    const uint64_t mixed = ((uint64_t)work->process_id * UINT64_C(0x100000001b3) ^
                            (uint64_t)work->context << 32 ^ (uint64_t)work->stream) *
                           UINT64_C(0x9e3779b97f4a7c15);
    struct ct_returned_stream *stream = &store->returned[(mixed >> 32) % CT_RETURNED_STREAMS];
    const bool is_same = stream->process_id == work->process_id && stream->context == work->context &&
                         stream->stream == work->stream;
    if (!is_same) {
        write_stream(store, stream);
        *stream = *work;
        return;
    }
    if (stream->correlation < work->correlation)
        stream->correlation = work->correlation;
    if (stream->ended_ns < work->ended_ns)
        stream->ended_ns = work->ended_ns;
}

void ct_returned_hand_over(struct ct_store *store)
{
    for (int i = 0; i < CT_RETURNED_STREAMS; i++)
        write_stream(store, &store->returned[i]);
}

void ct_returned_clear(struct ct_store *store)
{
    memset(store->returned, 0, sizeof(store->returned));
}
