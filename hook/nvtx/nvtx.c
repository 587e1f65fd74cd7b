/* Implements the NVTX functions, which applications call to name ranges of time (torch.cuda.nvtx, NVTX 3's
 * header library, version 2's libnvToolsExt). At its first call, a client loads the library named by
 * NVTX_INJECTION64_PATH and calls that library's InitializeInjectionNvtx2(), which fills in the client's
 * tables. The executable and each library that uses NVTX are separate clients, so a process may call
 * InitializeInjectionNvtx2() many times.
 *
 * Handles are IDs, and are checked whenever they are used. Functions whose table entries are not filled in
 * here (names of OpenCL objects, user-defined synchronisation) do nothing in the client. */
#include "attach.h"
#include "compiler.h"
#include "error_guard.h"
#include "kernel_names.h"
#include "nvtx_abi.h"
#include "object_names.h"
#include "process.h"
#include "range.h"
#include "range_process.h"
#include "ring.h"
#include "thread.h"

/* ---- reading arguments ---- */

static uint32_t domain_of(const void *handle)
{
    const uintptr_t domain = (uintptr_t)handle;
    return domain < CT_DOMAINS_MAX ? (uint32_t)domain : 0;
}

#define HERE ((const char *)__builtin_dwarf_cfa() - 8)

/* Older versions of the attributes have the same fields. Newer versions may have further fields at the
 * end. */
static struct ct_said read_attributes(const void *domain, const struct ct_nvtx_attributes *attributes,
                                      const void *frame)
{
    struct ct_said said = { .domain = domain_of(domain), .frame = frame };
    if (!attributes || attributes->size < sizeof(*attributes))
        return said;
    said.category = attributes->category;
    if (attributes->color_type == CT_NVTX_COLOR_ARGB)
        said.color = attributes->color;
    const int32_t type = attributes->payload_type;
    if (type > 0 && type < CT_NVTX_PAYLOAD_COUNT) {
        said.payload_type = (uint32_t)type;
        said.payload = type > 3 ? attributes->payload.u32 : attributes->payload.u64;
    }
    if (attributes->message_type == CT_NVTX_MESSAGE_ASCII)
        said.message = attributes->message.ascii;
    else if (attributes->message_type == CT_NVTX_MESSAGE_UNICODE)
        said.wide = attributes->message.unicode;
    else if (attributes->message_type == CT_NVTX_MESSAGE_REGISTERED)
        said.registered = (uintptr_t)attributes->message.registered;
    return said;
}

/* ---- ranges and marks, in the default domain and in other domains ---- */

/* Defines both forms of a function that takes a string: one for UTF-8 and one for wide characters. */
#define IN_BOTH_FORMS(type, function, parameters, act)                                                       \
    static type function##_a(parameters const char *text)                                                    \
    {                                                                                                        \
        const wchar_t *const wide = NULL;                                                                    \
        act;                                                                                                 \
    }                                                                                                        \
    static type function##_w(parameters const wchar_t *wide)                                                 \
    {                                                                                                        \
        const char *const text = NULL;                                                                       \
        act;                                                                                                 \
    }
#define AND ,

/* Defines the functions for ranges or marks. `act` takes a struct ct_said, and begins with `return` if the
 * functions return a value. */
#define SAYS(type, name, act)                                                                                \
    static type name##_ex(const struct ct_nvtx_attributes *attributes)                                       \
    {                                                                                                        \
        const struct ct_said said = read_attributes(NULL, attributes, HERE);                                 \
        act(&said);                                                                                          \
    }                                                                                                        \
    IN_BOTH_FORMS(type, name, ,                                                                              \
                  act((&(const struct ct_said){ .message = text, .wide = wide, .frame = HERE })))            \
    static type domain_##name##_ex(const void *domain, const struct ct_nvtx_attributes *attributes)          \
    {                                                                                                        \
        const struct ct_said said = read_attributes(domain, attributes, HERE);                               \
        act(&said);                                                                                          \
    }
SAYS(void, mark, ct_range_mark)
SAYS(uint64_t, range_start, return ct_range_start)
SAYS(int, range_push, return ct_range_push)

static void range_end(uint64_t id)
{
    ct_range_end(id, HERE);
}

static void domain_range_end(const void *domain, uint64_t id)
{
    (void)domain;
    ct_range_end(id, HERE);
}

static int range_pop(void)
{
    return ct_range_pop(0, HERE);
}

static int domain_range_pop(const void *domain)
{
    return ct_range_pop(domain_of(domain), HERE);
}

/* Does nothing. Used for the functions that initialize a client or destroy domains and resources. There is
 * nothing to free, since a domain that is created again gets the same ID, and an object's name outlives its
 * resource. */
static void nothing(const void *object)
{
    (void)object;
}

/* ---- names of domains and categories, and strings ---- */

static void *create_domain(const char *text, const wchar_t *wide)
{
    char name[CT_RANGE_NAME_BYTES];
    ct_range_text(name, sizeof(name), text, wide);
    return (void *)(uintptr_t)ct_range_domain(name);
}
IN_BOTH_FORMS(void *, domain_create, , return create_domain(text, wide))

static void name_a_category(const void *domain, uint32_t category, const char *text, const wchar_t *wide)
{
    char name[CT_RANGE_NAME_BYTES];
    if (!text && !wide)
        return;
    ct_range_text(name, sizeof(name), text, wide);
    ct_range_name_category(domain_of(domain), category, name);
}
IN_BOTH_FORMS(void, name_category, uint32_t category AND, name_a_category(NULL, category, text, wide))
IN_BOTH_FORMS(void, domain_name_category, const void *domain AND uint32_t category AND,
              name_a_category(domain, category, text, wide))

/* A registered string can be used in every domain, since string IDs are valid throughout the process. */
static void *register_text(const char *text, const wchar_t *wide, const void *frame)
{
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(frame, &cause);
    if (!thread)
        return NULL;
    char *room = ct_range_room(thread);
    ct_range_text(room, CT_RANGE_MESSAGE_BYTES, text, wide);
    void *handle = (void *)(uintptr_t)ct_names_string(room);
    ct_range_release(thread);
    return handle;
}
IN_BOTH_FORMS(void *, domain_register_string, const void *domain AND,
              return ((void)domain, register_text(text, wide, HERE)))

/* ---- names of threads and CUDA objects, the same for the runtime and the driver ---- */

static_assert((int)CT_NAMED_TEXT_BYTES == (int)CT_RANGE_NAME_BYTES, "one length of names");

static void end_thread(void)
{
    ct_named_end_thread();
    if (ct_self->lane && ct_wants_doorbell(ct_self->lane, ct_self->position))
        ct_attach_apply(ct_self);
}

/* Sends a name immediately if there is a daemon. If a signal handler that interrupted a record calls this
 * function, the name is sent when the next lane is taken. */
static void set_name(enum ct_role role, uint64_t handle, const char *name)
{
    CT_ERROR_GUARD;
    const bool kept = ct_named_keep(role, handle, name);
    if (role == CT_ROLE_thread)
        ct_thread_watch_end(CT_THREAD_NAME, end_thread);
    struct ct_producer *self = ct_process_attach(0) == CT_ATTACHED ? ct_self : NULL;
    if (self && self->lane && self->idle) {
        ct_record_hold(self, (uintptr_t)__builtin_frame_address(0));
        ct_named_tell(self, role, handle, name, kept);
        ct_record_release(self);
        if (ct_wants_doorbell(self->lane, self->position))
            ct_attach_apply(self);
    }
}

static void name_object(enum ct_role role, uint64_t handle, const char *text, const wchar_t *wide)
{
    char name[CT_NAMED_TEXT_BYTES];
    if (!text && !wide)
        return;
    ct_range_text(name, sizeof(name), text, wide);
    set_name(role, handle, name);
}

#define NAMES(role, type)                                                                                    \
    IN_BOTH_FORMS(void, name_##role, type object AND,                                                        \
                  name_object(CT_ROLE_##role, (uint64_t)object, text, wide))
NAMES(thread, uint32_t)
NAMES(device, int32_t)
NAMES(context, uintptr_t)
NAMES(stream, uintptr_t)
NAMES(event, uintptr_t)

static enum ct_role role_of_resource(int32_t type)
{
    static const struct {
        int32_t type, role;
    } roles[] = {
        { CT_NVTX_RESOURCE_THREAD_NATIVE, CT_ROLE_thread },
        { CT_NVTX_RESOURCE_CUDA_DEVICE, CT_ROLE_device },
        { CT_NVTX_RESOURCE_CUDART_DEVICE, CT_ROLE_device },
        { CT_NVTX_RESOURCE_CUDA_CONTEXT, CT_ROLE_context },
        { CT_NVTX_RESOURCE_CUDA_STREAM, CT_ROLE_stream },
        { CT_NVTX_RESOURCE_CUDART_STREAM, CT_ROLE_stream },
        { CT_NVTX_RESOURCE_CUDA_EVENT, CT_ROLE_event },
        { CT_NVTX_RESOURCE_CUDART_EVENT, CT_ROLE_event },
    };
    for (size_t i = 0; i < CT_ARRAY_LENGTH(roles); i++) {
        if (roles[i].type == type)
            return (enum ct_role)roles[i].role;
    }
    return CT_ROLE_none;
}

/* Never returns NULL, since a client may interpret NULL as a failure. */
static void *resource_create(const void *domain, const struct ct_nvtx_resource *resource)
{
    static char handle;
    (void)domain;
    const bool readable = resource && resource->size >= sizeof(*resource);
    const enum ct_role role = readable ? role_of_resource(resource->type) : CT_ROLE_none;
    if (role == CT_ROLE_none)
        return &handle;
    const uint64_t object = role == CT_ROLE_device   ? (uint64_t)(int64_t)(int32_t)resource->identifier
                            : role == CT_ROLE_thread ? (uint32_t)resource->identifier
                                                     : resource->identifier;
    size_t bytes;
    if (resource->message_type == CT_NVTX_MESSAGE_ASCII)
        name_object(role, object, resource->message.ascii, NULL);
    else if (resource->message_type == CT_NVTX_MESSAGE_UNICODE)
        name_object(role, object, NULL, resource->message.unicode);
    else if (resource->message_type == CT_NVTX_MESSAGE_REGISTERED)
        name_object(role, object, ct_names_text((uintptr_t)resource->message.registered, &bytes), NULL);
    return &handle;
}

/* ---- a client's tables ---- */

#define TABLE(name, ...) static const void *const name[] = { NULL, __VA_ARGS__ }
/* The tables are in the order of NvtxCallbackIdCore, NvtxCallbackIdCore2, NvtxCallbackIdCuda and
 * NvtxCallbackIdCudaRt. */
TABLE(core, mark_ex, mark_a, mark_w, range_start_ex, range_start_a, range_start_w, range_end, range_push_ex,
      range_push_a, range_push_w, range_pop, name_category_a, name_category_w, name_thread_a, name_thread_w);
TABLE(core2, domain_mark_ex, domain_range_start_ex, domain_range_end, domain_range_push_ex, domain_range_pop,
      resource_create, nothing, domain_name_category_a, domain_name_category_w, domain_register_string_a,
      domain_register_string_w, domain_create_a, domain_create_w, nothing, nothing);
TABLE(cuda, name_device_a, name_device_w, name_context_a, name_context_w, name_stream_a, name_stream_w,
      name_event_a, name_event_w);
TABLE(cudart, name_device_a, name_device_w, name_stream_a, name_stream_w, name_event_a, name_event_w);

/* Fills in the entries that both the client and the hook know, since the client's version may be older or
 * newer. */
static bool fill_in(const struct ct_nvtx_callbacks *callbacks, uint32_t module, const void *const *ours,
                    size_t count)
{
    ct_nvtx_function ***table = NULL;
    unsigned entries = 0;
    if (!callbacks->get_module(module, &table, &entries) || !table)
        return false;
    for (size_t i = 1; i < count && i < entries; i++) {
        if (table[i])
            *table[i] = (ct_nvtx_function *)ours[i];
    }
    return true;
}

/* Called by a client, which holds its own lock during the call. If the result is 1, the client uses the
 * functions in its tables. If it is 0, the client unloads the library and continues without it. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(ct_nvtx_get_table *get_table);

int InitializeInjectionNvtx2(ct_nvtx_get_table *get_table)
{
    const struct ct_nvtx_callbacks *callbacks = get_table(CT_NVTX_TABLE_CALLBACKS);
    if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) || !ct_range_begin() ||
        !ct_range_process_begin())
        return 0;
    const struct ct_nvtx_version *version = get_table(CT_NVTX_TABLE_VERSION);
    if (version && version->struct_bytes >= sizeof(*version) && version->set_injection_version)
        version->set_injection_version(CT_NVTX_VERSION);
    const bool filled = fill_in(callbacks, CT_NVTX_MODULE_CORE, core, CT_ARRAY_LENGTH(core));
    /* NVTX version 1 has only the first table. */
    fill_in(callbacks, CT_NVTX_MODULE_CORE2, core2, CT_ARRAY_LENGTH(core2));
    fill_in(callbacks, CT_NVTX_MODULE_CUDA, cuda, CT_ARRAY_LENGTH(cuda));
    fill_in(callbacks, CT_NVTX_MODULE_CUDART, cudart, CT_ARRAY_LENGTH(cudart));
    return filled;
}
