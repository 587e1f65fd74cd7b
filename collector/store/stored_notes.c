#include "stored_notes.h"

#include "account.h"
#include "bulk.h"
#include "deferred.h"
#include "detail.h"
#include "names.h"
#include "numbers.h"
#include "process_rows.h"
#include "returned_work.h"
#include "store_state.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Names an object from the note's time on, or removes its name. */
static void name_object(struct ct_store *store, int64_t process_id, const struct ct_call *note)
{
    struct ct_object_name name;
    if (note->payload_bytes <= sizeof(name))
        return;
    memcpy(&name, note->payload, sizeof(name));
    const char *text = (const char *)note->payload + sizeof(name);
    if (name.role == CT_ROLE_none || name.role >= CT_ROLE_COUNT || name.text_bytes == 0 ||
        name.text_bytes > note->payload_bytes - sizeof(name) || text[name.text_bytes - 1] != '\0')
        return;
    char clean[CT_SLOTS_MAX * CT_SLOT_BYTES];
    ct_text_clean(clean, text, strlen(text));
    const int64_t handle = ct_stored(note->value);
    ct_store_defer(store, CT_SQL_name_object, CT_VALUES(process_id, name.role, handle, (int64_t)note->end_ns),
                   clean);
    if (name.role == CT_ROLE_thread && *clean)
        ct_store_defer(store, CT_SQL_name_thread, CT_VALUES(process_id, handle), clean);
}

static void name_kernel(struct ct_store *store, int64_t process_id, const struct ct_call *note)
{
    const char *text = note->payload;
    if (note->payload_bytes == 0 || !memchr(text, '\0', note->payload_bytes))
        return;
    char clean[UINT16_MAX]; /* maximum length of a payload */
    ct_text_clean(clean, text, strlen(text));
    ct_store_defer(store, CT_SQL_insert_kernel, CT_VALUES(process_id, ct_stored(note->value)), clean);
}

/* ---- GPU work ---- */

static const char *const work_names[CT_GPU_WORK_KINDS] = {
    [CT_GPU_KERNEL] = "kernel",
    [CT_GPU_COPY] = "copy",
    [CT_GPU_SET] = "set",
    [CT_GPU_GRAPH] = "graph",
};

static int64_t at_most(uint64_t value, uint64_t most)
{
    return (int64_t)(value < most ? value : most);
}

static void store_dropped(struct ct_store *store, const struct ct_call *note, const struct ct_gpu_work *work)
{
    if (work->bytes > 0)
        ct_store_defer(store, CT_SQL_add_dropped_work,
                       CT_VALUES(note->caller->account->segment_id, at_most(work->bytes, CT_UNSENT_CALLS_MAX),
                                 (int64_t)note->end_ns),
                       NULL);
}

/* Returns the ID of the work's (process, kind, kernel, device, context, stream, graph, graph node)
 * combination. */
static int64_t task_of(struct ct_store *store, const struct ct_call *note, const struct ct_gpu_work *work)
{
    const bool is_copy = work->kind == CT_GPU_COPY;
    const uint8_t copy_kind = is_copy && work->copy_kind < CT_TRANSFER_COUNT ? work->copy_kind : 0;
    return ct_store_number(store, CT_NUMBER_GPU_TASK,
                           (const int64_t[CT_GPU_TASK_VALUES]){ note->caller->account->process_id, work->kind,
                                                                copy_kind, work->kernel, work->device,
                                                                work->context, work->stream, work->graph,
                                                                ct_stored(work->graph_node) },
                           is_copy ? ct_transfer_names[copy_kind] : work_names[work->kind]);
}

static void store_gpu_work(struct ct_store *store, const struct ct_call *note)
{
    struct ct_gpu_work work;
    if (!ct_gpu_work_read(note->payload, note->payload_bytes, &work))
        return;
    if (work.kind == CT_GPU_DROPPED) {
        store_dropped(store, note, &work);
        return;
    }
    const int64_t task = task_of(store, note, &work);
    if (note->value)
        ct_returned_note(store, &(struct ct_returned_stream){ note->caller->account->process_id, work.context,
                                                              work.stream, ct_stored(note->value),
                                                              ct_stored(note->end_ns) });
    const int64_t duration_ns = at_most(note->duration_ns, note->end_ns);
    const bool has_bytes = work.kind == CT_GPU_COPY || work.kind == CT_GPU_SET;
    int64_t *value = ct_bulk_add(store, CT_BULK_GPU_RUN, store->next_run_id++);
    value[1] = task;
    value[2] = (int64_t)note->end_ns - duration_ns;
    value[3] = duration_ns;
    value[4] = note->value ? ct_stored(note->value) : CT_NULL;
    value[5] = work.queued ? at_most(work.queued, INT64_MAX) : CT_NULL;
    value[6] = has_bytes ? at_most(work.bytes, INT64_MAX) : CT_NULL;
}

static void write_uuid(char *text, size_t bytes, const char *prefix, const uint8_t uuid[16])
{
    int used = snprintf(text, bytes, "%s", prefix);
    for (int i = 0; i < 16; i++)
        used += snprintf(text + used, bytes - (size_t)used, "%s%02x",
                         i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* Adds the GPU unless it is already known, and adds the process's device. The GPU's strings have the same
 * form as in NVML. */
static void store_device(struct ct_store *store, const struct ct_call *note)
{
    struct ct_device device;
    char uuid[64];
    if (note->payload_bytes < sizeof(device) || note->value > UINT32_MAX)
        return;
    memcpy(&device, note->payload, sizeof(device));
    write_uuid(uuid, sizeof(uuid), "GPU-", device.gpu_uuid);
    ct_store_defer(store, CT_SQL_add_gpu, CT_VALUES(device.pci_domain, device.pci_bus, device.pci_slot),
                   uuid);
    const bool is_instance = memcmp(device.gpu_uuid, device.own_uuid, sizeof(device.gpu_uuid)) != 0;
    write_uuid(uuid, sizeof(uuid), is_instance ? "MIG-" : "GPU-", device.own_uuid);
    ct_store_defer(store, CT_SQL_save_gpu_device,
                   CT_VALUES(note->caller->account->process_id, (int64_t)note->value, device.pci_domain,
                             device.pci_bus, device.pci_slot),
                   uuid);
}

static void store_correlation(struct ct_store *store, const struct ct_call *note)
{
    const struct ct_caller *caller = note->caller;
    if (caller->last_call_id != 0)
        ct_store_defer(store, CT_SQL_insert_correlation,
                       CT_VALUES(caller->account->process_id, ct_stored(note->value), caller->last_call_id),
                       NULL);
}

void ct_store_note(struct ct_store *store, const struct ct_call *note)
{
    switch (note->kind) {
    case CT_KIND_NAME:
        name_object(store, note->caller->account->process_id, note);
        break;
    case CT_KIND_STRING:
        name_kernel(store, note->caller->account->process_id, note);
        break;
    case CT_KIND_GPU_WORK:
        store_gpu_work(store, note);
        break;
    case CT_KIND_CORRELATION:
        store_correlation(store, note);
        break;
    case CT_KIND_DEVICE:
        store_device(store, note);
        break;
    default:
        break;
    }
}
