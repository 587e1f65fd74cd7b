#include "detail.h"

#include "account.h"
#include "bulk.h"
#include "deferred.h"
#include "fields.h"
#include "names.h"
#include "numbers.h"
#include "store_state.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const ct_transfer_names[CT_TRANSFER_COUNT] = {
    [CT_TRANSFER_UNKNOWN] = "unknown", [CT_TRANSFER_HTOD] = "HtoD", [CT_TRANSFER_DTOH] = "DtoH",
    [CT_TRANSFER_DTOD] = "DtoD",       [CT_TRANSFER_HTOH] = "HtoH", [CT_TRANSFER_PTOP] = "PtoP",
    [CT_TRANSFER_SET] = "set",
};

static const char *const alloc_names[CT_ALLOC_COUNT] = {
    [CT_ALLOC_DEVICE] = "device",         [CT_ALLOC_MANAGED] = "managed",   [CT_ALLOC_HOST] = "host",
    [CT_ALLOC_REGISTERED] = "registered", [CT_ALLOC_POOL] = "pool",         [CT_ALLOC_PHYSICAL] = "physical",
    [CT_ALLOC_RESERVED] = "reserved",     [CT_ALLOC_MAPPED] = "mapped",     [CT_ALLOC_IPC] = "ipc",
    [CT_ALLOC_ARRAY] = "array",           [CT_ALLOC_EXTERNAL] = "external",
};

struct context {
    struct ct_store *store;
    const struct ct_call *call;
    int64_t call_id, process_id, start_ns;
    uint32_t flags;
};

static void store_launch(const struct context *c, const struct ct_launch *launch)
{
    const int64_t shape =
        ct_store_number(c->store, CT_NUMBER_SHAPE,
                        (const int64_t[CT_SHAPE_VALUES]){
                            c->process_id, launch->kernel, launch->grid[0], launch->grid[1], launch->grid[2],
                            launch->block[0], launch->block[1], launch->block[2], launch->shared_bytes,
                            ct_stored(c->call->value), (c->flags & CT_FLAG_CAPTURED) != 0 },
                        NULL);
    int64_t *value = ct_bulk_add(c->store, CT_BULK_LAUNCH, c->call_id);
    value[1] = shape;
    value[2] = c->process_id;
}

static void store_transfer(const struct context *c, const struct ct_transfer *transfer)
{
    const int64_t kind = transfer->transfer < CT_TRANSFER_COUNT ? transfer->transfer : CT_TRANSFER_UNKNOWN;
    const int64_t route = ct_store_number(
        c->store, CT_NUMBER_ROUTE,
        (const int64_t[CT_ROUTE_VALUES]){ c->process_id, kind, transfer->async != 0,
                                          ct_stored(transfer->stream), (c->flags & CT_FLAG_CAPTURED) != 0 },
        ct_transfer_names[kind]);
    int64_t *value = ct_bulk_add(c->store, CT_BULK_TRANSFER, c->call_id);
    value[1] = route;
    value[2] = transfer->source ? ct_stored(transfer->source) : CT_NULL;
    value[3] = transfer->destination ? ct_stored(transfer->destination) : CT_NULL;
}

/* Stores a successful allocation, or a successful free. A failed allocation holds no memory, and its size is
 * stored only with the call. A captured allocation takes effect only when the graph is launched. If an
 * address is allocated again without having been freed, either the call that freed it was lost, or its
 * context has ended. Shared allocations are an exception: they can be allocated again, but must then be freed
 * as often. */
static void store_held(const struct context *c, const struct ct_alloc *alloc, const char *kind)
{
    const int64_t address = ct_stored(alloc->address);
    const int64_t bytes = c->flags & CT_FLAG_UNKNOWN ? CT_NULL : ct_stored(c->call->value);
    const int64_t pool = alloc->pool ? ct_stored(alloc->pool) : CT_NULL;
    if (c->flags & CT_FLAG_FREE) {
        ct_store_defer(
            c->store, CT_SQL_free_allocation, CT_FREE_VALUES,
            (const int64_t[]){ c->process_id, address, c->start_ns, c->call_id, bytes, CT_FREE_SLACK_NS },
            kind);
    } else if (alloc->shared) {
        ct_store_defer(c->store, CT_SQL_share_allocation, CT_VALUES(c->process_id, address), kind);
        ct_store_defer(c->store, CT_SQL_insert_shared_allocation,
                       CT_VALUES(c->call_id, c->process_id, address, bytes, pool), kind);
    } else {
        ct_store_defer(c->store, CT_SQL_supersede_allocation, CT_VALUES(c->process_id, address, c->call_id),
                       kind);
        ct_store_defer(c->store, CT_SQL_insert_allocation,
                       CT_VALUES(c->call_id, c->process_id, address, bytes, pool), kind);
        if ((uint64_t)c->call_id < c->store->calls.last_id)
            ct_store_defer(c->store, CT_SQL_supersede_late_allocation,
                           CT_VALUES(c->process_id, address, c->call_id), kind);
    }
}

static void store_graph(const struct context *c, const struct ct_graph_launch *graph)
{
    ct_store_defer(c->store, CT_SQL_insert_graph_launch,
                   CT_VALUES(c->call_id, c->process_id, ct_stored(graph->exec),
                             c->flags & CT_FLAG_UNKNOWN ? CT_NULL : graph->kernel_nodes,
                             ct_stored(c->call->value), (c->flags & CT_FLAG_CAPTURED) != 0),
                   NULL);
}

static void store_graph_nodes(const struct context *c, const struct ct_graph_nodes *nodes)
{
    int64_t value[4 + CT_NODE_KINDS] = { c->call_id, c->process_id, ct_stored(nodes->exec),
                                         ct_stored(c->call->value) };
    for (int kind = 0; kind < CT_NODE_KINDS; kind++)
        value[4 + kind] = c->flags & CT_FLAG_UNKNOWN ? CT_NULL : nodes->count[kind];
    ct_store_defer(c->store, CT_SQL_insert_graph, 4 + CT_NODE_KINDS, value, NULL);
}

static void store_objects(const struct context *c, const struct ct_objects *objects)
{
    int64_t value[CT_SUBJECT_VALUES] = { c->process_id, (c->flags & CT_FLAG_CAPTURED) != 0 };
    for (int i = 0; i < CT_OBJECTS_MAX; i++) {
        const uint8_t role = objects->role[i];
        value[2 + 2 * i] = role < CT_ROLE_COUNT ? role : CT_ROLE_none;
        value[3 + 2 * i] = ct_stored(objects->handle[i]);
    }
    const int64_t subject = ct_store_number(c->store, CT_NUMBER_SUBJECT, value, NULL);
    ct_bulk_add(c->store, CT_BULK_CALL_SUBJECT, c->call_id)[1] = subject;
}

/* Returns the text_id of the string at *texts, or CT_NULL if there is no string, and advances *texts past it.
 * The string has `bytes` bytes including its NUL, and *left bytes of the record remain. If a length in the
 * record is invalid, all further strings are skipped. */
static int64_t take_text(struct ct_store *store, const char **texts, size_t *left, uint32_t bytes)
{
    char clean[CT_SLOTS_MAX * CT_SLOT_BYTES];
    if (bytes == 0 || bytes > *left || bytes > sizeof(clean)) {
        *left = bytes == 0 ? *left : 0;
        return CT_NULL;
    }
    ct_text_clean(clean, *texts, bytes - 1);
    *texts += bytes;
    *left -= bytes;
    return ct_store_text(store, clean);
}

/* Prints the payload in decimal. The type is an nvtxPayloadType_t. Prints nothing for NaN, or if there is no
 * payload. Prints infinity as a number that SQLite reads as infinity. */
static void print_payload(char *to, size_t bytes, uint32_t type, uint64_t value)
{
    double real;
    float single;
    const uint32_t half = (uint32_t)value;
    to[0] = '\0';
    switch (type) {
    case 1:
    case 4:
        snprintf(to, bytes, "%" PRIu64, type == 4 ? half : value);
        return;
    case 2:
    case 5:
        snprintf(to, bytes, "%" PRId64, type == 5 ? (int32_t)half : (int64_t)value);
        return;
    case 3:
        memcpy(&real, &value, sizeof(real));
        break;
    case 6:
        memcpy(&single, &half, sizeof(single));
        real = single;
        break;
    default:
        return;
    }
    if (isinf(real))
        snprintf(to, bytes, real < 0 ? "-9e999" : "9e999");
    else if (!isnan(real))
        snprintf(to, bytes, "%.17g", real);
}

static void store_range(const struct context *c, const struct ct_range *range, const char *texts, size_t left)
{
    char payload[64];
    print_payload(payload, sizeof(payload), range->payload_type, c->call->value);
    const int64_t message = take_text(c->store, &texts, &left, range->message_bytes);
    const int64_t domain = take_text(c->store, &texts, &left, range->domain_bytes);
    const int64_t category_name = take_text(c->store, &texts, &left, range->category_bytes);
    ct_store_defer(
        c->store, CT_SQL_insert_range,
        CT_VALUES(c->call_id, message, domain, category_name, range->category ? range->category : CT_NULL,
                  range->color ? range->color : CT_NULL, range->id ? ct_stored(range->id) : CT_NULL),
        payload);
}

/* Stores the fields of a call. A call with an invalid payload has no fields. */
static void store_fields(const struct context *c)
{
    struct ct_field field[CT_FIELDS_MAX];
    const int count = ct_fields_read(c->call->payload, c->call->payload_bytes, field);
    if (count < 0)
        return;
    int64_t value[2 + CT_FIELDS_MAX] = { c->call_id };
    value[1] = ct_store_field_set(c->store, c->call->callee->function_id, field, (size_t)count);
    for (int i = 0; i < CT_FIELDS_MAX; i++) {
        char clean[CT_FIELD_TEXT_MAX + 1];
        const char *text = i < count ? field[i].text : NULL;
        if (text)
            ct_text_clean(clean, text, strlen(text));
        value[2 + i] = text                                          ? ct_store_text(c->store, clean)
                       : i < count && field[i].type != CT_FIELD_TEXT ? ct_stored(field[i].value)
                                                                     : CT_NULL;
    }
    ct_store_defer(c->store, CT_SQL_insert_hook_call, 2 + CT_FIELDS_MAX, value, NULL);
}

/* Stores an allocation or a free. The call's objects also include the stream if the call uses a pool, and the
 * address if the call failed to free it. */
static void store_alloc(const struct context *c, const struct ct_alloc *alloc)
{
    const uint8_t kind = alloc->alloc < CT_ALLOC_COUNT ? alloc->alloc : CT_ALLOC_DEVICE;
    struct ct_objects objects = { 0 };
    if (c->call->status == 0 && alloc->address != 0 && !(c->flags & CT_FLAG_CAPTURED))
        store_held(c, alloc, alloc_names[kind]);
    int count = 0;
    if (kind == CT_ALLOC_POOL) {
        objects.role[count] = CT_ROLE_stream;
        objects.handle[count++] = alloc->stream;
    }
    if (c->call->status != 0 && c->flags & CT_FLAG_FREE) {
        const bool is_handle = kind == CT_ALLOC_PHYSICAL || kind == CT_ALLOC_ARRAY;
        objects.role[count] = !is_handle               ? CT_ROLE_address
                              : kind == CT_ALLOC_ARRAY ? CT_ROLE_array
                                                       : CT_ROLE_memory;
        objects.handle[count++] = alloc->address;
    }
    if (count > 0)
        store_objects(c, &objects);
}

void ct_detail_store(struct ct_store *store, const struct ct_call *call, int64_t call_id)
{
    const int64_t process_id = call->caller->account->process_id;
    const struct context c = {
        .store = store,
        .call = call,
        .call_id = call_id,
        .process_id = process_id,
        .start_ns = (int64_t)(call->end_ns - call->duration_ns),
        .flags = call->flags,
    };
    union ct_payload payload = { 0 };
    /* If a record is too short for its kind, zeros are used for the missing bytes. */
    const size_t bytes = call->payload_bytes;
    memcpy(&payload, call->payload, bytes < sizeof(payload) ? bytes : sizeof(payload));
    switch (call->kind) {
    case CT_KIND_LAUNCH:
        store_launch(&c, &payload.launch);
        break;
    case CT_KIND_TRANSFER:
        store_transfer(&c, &payload.transfer);
        break;
    case CT_KIND_ALLOC:
        store_alloc(&c, &payload.alloc);
        break;
    case CT_KIND_GRAPH:
        store_graph(&c, &payload.graph);
        break;
    case CT_KIND_NODES:
        store_graph_nodes(&c, &payload.nodes);
        break;
    case CT_KIND_OBJECTS:
        store_objects(&c, &payload.objects);
        if (c.flags & CT_FLAG_SIZE && c.flags & CT_FLAG_BYTES && call->status == 0)
            ct_store_defer(
                store, CT_SQL_size_allocation,
                CT_VALUES(process_id, ct_stored(payload.objects.handle[1]), ct_stored(call->value)), NULL);
        break;
    case CT_KIND_RANGE:
        store_range(&c, &payload.range, (const char *)call->payload + sizeof(payload.range),
                    bytes > sizeof(payload.range) ? bytes - sizeof(payload.range) : 0);
        break;
    case CT_KIND_FIELDS:
        store_fields(&c);
        break;
    default:
        break;
    }
}
