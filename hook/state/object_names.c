/* Names are records of their own, ahead of what they are about in their lane, and no calls. They are kept,
 * since a program names its streams once and its daemons come and go; the memory for that is mapped with the
 * first name. */
#include "object_names.h"

#include "quiet.h"
#include "table.h"
#include "test_point.h"

#include <string.h>

struct named {
    uint64_t handle;
    uint32_t role;                  /* CT_ROLE_none: the place is free */
    uint32_t epoch;                 /* of the segment that has got it */
    char text[CT_NAMED_TEXT_BYTES]; /* empty: the object has ended, which is to be told yet */
};

/* The lock of tables is held around all of these. A fork's child has them as they were; what another thread
 * was about to write then may be a name that is cut. */
static struct named *all;
static uint32_t used; /* places that were ever taken */

_Atomic uint32_t ct_named_count;
static bool overflowed;           /* some have a name that is not kept */
static __thread uint64_t own_tid; /* of a thread that has a name */

static struct named *find(enum ct_role role, uint64_t handle)
{
    for (uint32_t i = 0; i < used; i++) {
        if (all[i].role == (uint32_t)role && all[i].handle == handle)
            return &all[i];
    }
    return NULL;
}

static struct named *take(enum ct_role role, uint64_t handle)
{
    struct named *named = find(CT_ROLE_none, 0);
    if (!all)
        all = ct_map_pages(CT_NAMED_MAX * sizeof(*all));
    if (!named && all && used < CT_NAMED_MAX)
        named = &all[used++];
    if (named) {
        named->handle = handle;
        named->role = (uint32_t)role;
        atomic_fetch_add_explicit(&ct_named_count, 1, memory_order_relaxed);
    }
    return named;
}

static void give(struct named *named)
{
    memset(named, 0, sizeof(*named));
    atomic_fetch_sub_explicit(&ct_named_count, 1, memory_order_relaxed);
}

/* False without room. */
static bool write_name(struct ct_producer *producer, uint32_t role, uint64_t handle, const char *text)
{
    struct {
        struct ct_object_name name;
        char text[CT_NAMED_TEXT_BYTES];
    } payload = { .name = { .role = role,
                            .text_bytes = (uint32_t)strnlen(text, CT_NAMED_TEXT_BYTES - 1) + 1 } };
    memcpy(payload.text, text, payload.name.text_bytes - 1);
    const size_t bytes = sizeof(payload.name) + payload.name.text_bytes;
    const uint32_t slots = 1 + (uint32_t)(bytes + CT_SLOT_BYTES - 1) / CT_SLOT_BYTES;
    if (!ct_record_room(producer, slots))
        return false;
    const struct ct_record record = {
        .end = ct_now(), .kind = CT_KIND_NAME, .slots = (uint8_t)slots, .value = handle
    };
    CT_TEST_POINT("named.sending");
    ct_record_write(producer, &record, &payload, bytes);
    ct_lane_announce(producer->lane, producer->position);
    CT_TEST_POINT("named.sent");
    return true;
}

void ct_named_send(struct ct_producer *producer)
{
    if (!atomic_load_explicit(&ct_named_count, memory_order_relaxed) || !ct_table_lock())
        return;
    for (uint32_t i = 0; i < used; i++) {
        struct named *named = &all[i];
        if (named->role == CT_ROLE_none || named->epoch == producer->epoch)
            continue;
        if (!write_name(producer, named->role, named->handle, named->text))
            break;
        named->epoch = producer->epoch;
        if (!*named->text)
            give(named);
    }
    ct_table_unlock();
}

/* The thread's lane, held for records that are no call's; NULL when there is none, and in a signal handler
 * that interrupted a record. */
static struct ct_producer *hold_lane(void)
{
    struct ct_producer *self = ct_thread_attach(0) ? ct_self : NULL;
    if (!self || !self->lane || !self->idle)
        return NULL;
    self->act = (uintptr_t)__builtin_frame_address(0);
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 0;
    atomic_signal_fence(memory_order_seq_cst);
    ct_lane_announce(self->lane, self->position);
    return self;
}

static void release_lane(struct ct_producer *self)
{
    ct_lane_publish(self->lane, self->position);
    atomic_signal_fence(memory_order_seq_cst);
    self->idle = 1;
    atomic_signal_fence(memory_order_seq_cst);
    self->act = 0;
    if (ct_wants_doorbell(self, self->lane, self->position))
        ct_record_wake(self);
}

void ct_named_set(enum ct_role role, uint64_t handle, const char *name)
{
    const struct quiet quiet = quiet_begin();
    bool kept = false;
    if (ct_table_lock()) {
        struct named *named = find(role, handle);
        if (!named && *name)
            named = take(role, handle);
        if (named && *name) {
            strncpy(named->text, name, CT_NAMED_TEXT_BYTES - 1);
            named->epoch = 0;
            kept = true;
        } else if (named) {
            give(named);
        }
        overflowed |= *name && !kept;
        ct_table_unlock();
    }
    if (role == CT_ROLE_thread)
        ct_thread_watch_exit();
    struct ct_producer *self = hold_lane();
    if (self) {
        if (role == CT_ROLE_thread && handle == atomic_load_explicit(&self->lane->tid, memory_order_relaxed))
            own_tid = handle;
        if (kept)
            ct_named_send(self); /* unless attaching has */
        else
            write_name(self, role, handle, name);
        release_lane(self);
    }
    quiet_end(quiet);
}

void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer)
{
    if (!atomic_load_explicit(&ct_named_count, memory_order_relaxed) || !ct_table_lock())
        return;
    struct named *named = find(role, handle);
    const bool lane = producer && producer->lane;
    const bool told = (named || overflowed) && lane && write_name(producer, role, handle, "");
    if (named && (told || named->epoch == 0)) {
        give(named);
    } else if (named) {
        named->text[0] = '\0';
        named->epoch = lane ? 0 : named->epoch;
    }
    ct_table_unlock();
}

/* Its number may be the next thread's. */
void ct_named_thread_exit(void)
{
    const uint64_t tid = own_tid;
    own_tid = 0;
    struct ct_producer *self = tid && ct_self->lane && ct_self->idle ? hold_lane() : NULL;
    if (tid)
        ct_named_end(CT_ROLE_thread, tid, self);
    if (self)
        release_lane(self);
}

void ct_named_forget(void)
{
    atomic_store_explicit(&ct_named_count, 0, memory_order_relaxed);
    used = 0;
    own_tid = 0;
}
