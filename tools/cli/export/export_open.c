/* Owns the list of open calls, and determines which of them cross a call or range that has returned. */
#include "export_open.h"

#include "room.h"

#include <stdlib.h>

bool ct_export_open_calls_add(struct ct_export_open_calls *calls, sqlite3_stmt *row)
{
    if (!ct_make_room(&calls->call, calls->count, &calls->room, sizeof(*calls->call)))
        return false;
    calls->call[calls->count++] = (struct ct_export_open_call){ .process_id = sqlite3_column_int64(row, 0),
                                                                .tid = sqlite3_column_int64(row, 1),
                                                                .start_ns = sqlite3_column_int64(row, 3) };
    return true;
}

void ct_export_open_calls_pass(struct ct_export_open_calls *calls, const struct ct_event *event)
{
    const struct ct_site *site = &event->call.site;
    while (calls->next < calls->count && calls->call[calls->next].start_ns < event->at_ns)
        calls->next++;
    for (size_t i = calls->next; i < calls->count && calls->call[i].start_ns < event->call.id; i++)
        calls->call[i].is_across |=
            calls->call[i].process_id == site->process_id && calls->call[i].tid == site->tid;
}

void ct_export_open_calls_finish(struct ct_export_open_calls *calls)
{
    free(calls->call);
}
