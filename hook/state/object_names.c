/* A name is sent in a record of its own, before the object's records in the lane. Names are kept, since a
 * program names its streams only once, but its daemon may be restarted. The memory for names is mapped when
 * the first name is given. */
#include "object_names.h"

#include "bound.h"
#include "current.h"
#include "payload.h"
#include "ring.h"
#include "table.h"
#include "test_point.h"
#include "thread.h"

#include <string.h>

struct named {
    uint64_t handle;
    uint32_t role;                  /* CT_ROLE_none: the place is free */
    uint32_t epoch;                 /* the epoch of the last segment that the name was sent to */
    char text[CT_NAMED_TEXT_BYTES]; /* empty: the object has been destroyed, but this has not been sent yet */
};

/* Protected by the table lock. The child of a fork has its parent's names until ct_named_forget(). If another
 * thread was writing a name during the fork, that name may be truncated. */
static struct named *all;
static uint32_t used; /* number of places that have ever been taken */

/* The number of named objects. While it is 0, which is usually the case, destroyed objects are not looked
 * up. */
static _Atomic uint32_t count;
static bool overflowed;           /* some names are not kept */
static __thread uint64_t own_tid; /* the thread's number, if the thread has a name */

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
        all = ct_pages_map(CT_NAMED_MAX * sizeof(*all));
    if (!named && all && used < CT_NAMED_MAX)
        named = &all[used++];
    if (named) {
        named->handle = handle;
        named->role = (uint32_t)role;
        atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    }
    return named;
}

static void give(struct named *named)
{
    memset(named, 0, sizeof(*named));
    atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
}

/* Writes a name record. Returns false if there is no room. */
static bool write_name(struct ct_producer *producer, uint32_t role, uint64_t handle, const char *text)
{
    struct {
        struct ct_object_name name;
        char text[CT_NAMED_TEXT_BYTES];
    } payload = { .name = { .role = role,
                            .text_bytes = (uint32_t)strnlen(text, CT_NAMED_TEXT_BYTES - 1) + 1 } };
    memcpy(payload.text, text, payload.name.text_bytes - 1);
    const size_t bytes = sizeof(payload.name) + payload.name.text_bytes;
    struct ct_record record = { .end = ct_now(), .kind = CT_KIND_NAME, .value = handle };
    ct_record_measure(&record, bytes);
    if (!ct_record_room(producer, record.slots))
        return false;
    CT_TEST_POINT("object_names.sending");
    ct_record_write(producer, &record, &payload, bytes);
    ct_lane_announce(producer->lane, producer->position);
    CT_TEST_POINT("object_names.sent");
    return true;
}

/* Sends all names that are not yet in the segment of `producer`, until there is no more room. The lane is
 * held. */
static void send_all(struct ct_producer *producer)
{
    if (!atomic_load_explicit(&count, memory_order_relaxed) || !ct_table_lock())
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

bool ct_named_keep(enum ct_role role, uint64_t handle, const char *name)
{
    bool kept = false;
    ct_thread_on_take(send_all);
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
    return kept;
}

void ct_named_tell(struct ct_producer *producer, enum ct_role role, uint64_t handle, const char *name,
                   bool kept)
{
    if (role == CT_ROLE_thread && handle == atomic_load_explicit(&producer->lane->tid, memory_order_relaxed))
        own_tid = handle;
    if (kept)
        send_all(producer);
    else
        write_name(producer, role, handle, name);
}

void ct_named_end(enum ct_role role, uint64_t handle, struct ct_producer *producer)
{
    if (!atomic_load_explicit(&count, memory_order_relaxed) || !ct_table_lock())
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

/* Removes the thread's name, since the kernel may reuse the thread ID. */
void ct_named_end_thread(void)
{
    const uint64_t tid = own_tid;
    own_tid = 0;
    if (!tid)
        return;
    struct ct_producer *self = ct_self->lane && ct_self->idle ? ct_self : NULL;
    if (self)
        ct_record_hold(self, (uintptr_t)__builtin_frame_address(0));
    ct_named_end(CT_ROLE_thread, tid, self);
    if (self)
        ct_record_release(self);
}

void ct_named_forget(void)
{
    atomic_store_explicit(&count, 0, memory_order_relaxed);
    used = 0;
    own_tid = 0;
}
