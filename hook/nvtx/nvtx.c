/* NVTX: the entry points through which applications name ranges of their time (torch.cuda.nvtx, the header
 * library of NVTX 3, libnvToolsExt of version 2). A client loads the library that NVTX_INJECTION64_PATH names
 * at its first call and runs InitializeInjectionNvtx2(), which fills in the client's tables; the executable
 * and each library that uses NVTX are clients of their own, so this happens many times in a process.
 *
 * Handles are numbers, checked at each use. What is not filled in here (names of OpenCL objects,
 * user-defined synchronisation) the client turns into calls that do nothing. */
#include "nvtx.h"

#include "object_names.h"
#include "range.h"

/* ---- what the arguments say ---- */

static uint32_t domain_of(const void *handle)
{
    const uintptr_t domain = (uintptr_t)handle;
    return domain < CT_DOMAINS_MAX ? (uint32_t)domain : 0;
}

#define HERE ((const char *)__builtin_dwarf_cfa() - 8)

static struct ct_said plain(const char *message, const wchar_t *wide, const void *frame)
{
    return (struct ct_said){ .message = message, .wide = wide, .frame = frame };
}

/* Older attributes have the same fields; newer ones may have more behind them. */
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

/* ---- the default domain ---- */

static void mark_ex(const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(NULL, attributes, HERE);
    ct_range_mark(&said);
}

static void mark_a(const char *message)
{
    const struct ct_said said = plain(message, NULL, HERE);
    ct_range_mark(&said);
}

static void mark_w(const wchar_t *message)
{
    const struct ct_said said = plain(NULL, message, HERE);
    ct_range_mark(&said);
}

static uint64_t range_start_ex(const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(NULL, attributes, HERE);
    return ct_range_start(&said);
}

static uint64_t range_start_a(const char *message)
{
    const struct ct_said said = plain(message, NULL, HERE);
    return ct_range_start(&said);
}

static uint64_t range_start_w(const wchar_t *message)
{
    const struct ct_said said = plain(NULL, message, HERE);
    return ct_range_start(&said);
}

static void range_end(uint64_t id)
{
    ct_range_end(id, HERE);
}

static int range_push_ex(const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(NULL, attributes, HERE);
    return ct_range_push(&said);
}

static int range_push_a(const char *message)
{
    const struct ct_said said = plain(message, NULL, HERE);
    return ct_range_push(&said);
}

static int range_push_w(const wchar_t *message)
{
    const struct ct_said said = plain(NULL, message, HERE);
    return ct_range_push(&said);
}

static int range_pop(void)
{
    return ct_range_pop(0, HERE);
}

/* ---- other domains ---- */

static void domain_mark_ex(const void *domain, const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(domain, attributes, HERE);
    ct_range_mark(&said);
}

static uint64_t domain_range_start_ex(const void *domain, const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(domain, attributes, HERE);
    return ct_range_start(&said);
}

static void domain_range_end(const void *domain, uint64_t id)
{
    (void)domain;
    ct_range_end(id, HERE);
}

static int domain_range_push_ex(const void *domain, const struct ct_nvtx_attributes *attributes)
{
    const struct ct_said said = read_attributes(domain, attributes, HERE);
    return ct_range_push(&said);
}

static int domain_range_pop(const void *domain)
{
    return ct_range_pop(domain_of(domain), HERE);
}

static void *domain_create_a(const char *name)
{
    return (void *)(uintptr_t)ct_range_domain(name ? name : "");
}

static void *domain_create_w(const wchar_t *name)
{
    char narrow[CT_RANGE_NAME_BYTES];
    ct_range_narrow(narrow, sizeof(narrow), name ? name : L"");
    return (void *)(uintptr_t)ct_range_domain(narrow);
}

/* A domain that is created again has the same number, so nothing is given back. */
static void domain_destroy(const void *domain)
{
    (void)domain;
}

static void initialize(const void *reserved)
{
    (void)reserved;
}

/* ---- names of threads and of CUDA's objects: the runtime's are the driver's ---- */

static_assert((int)CT_NAMED_TEXT_BYTES == (int)CT_RANGE_NAME_BYTES, "one length of names");

static void name_object(enum ct_role role, uint64_t handle, const char *name, const wchar_t *wide)
{
    char text[CT_NAMED_TEXT_BYTES];
    if (!name && !wide)
        return;
    if (wide)
        ct_range_narrow(text, sizeof(text), wide);
    else
        ct_range_copy(text, sizeof(text), name);
    ct_named_set(role, handle, text);
}

#define NAMES(function, role, type)                                                                          \
    static void function##_a(type object, const char *name)                                                  \
    {                                                                                                        \
        name_object(CT_ROLE_##role, (uint64_t)object, name, NULL);                                           \
    }                                                                                                        \
    static void function##_w(type object, const wchar_t *name)                                               \
    {                                                                                                        \
        name_object(CT_ROLE_##role, (uint64_t)object, NULL, name);                                           \
    }
NAMES(name_thread, thread, uint32_t)
NAMES(name_device, device, int32_t)
NAMES(name_context, context, uintptr_t)
NAMES(name_stream, stream, uintptr_t)
NAMES(name_event, event, uintptr_t)

static enum ct_role role_of_resource(int32_t type)
{
    switch (type) {
    case CT_NVTX_RESOURCE_THREAD_NATIVE:
        return CT_ROLE_thread;
    case CT_NVTX_RESOURCE_CUDA_DEVICE:
    case CT_NVTX_RESOURCE_CUDART_DEVICE:
        return CT_ROLE_device;
    case CT_NVTX_RESOURCE_CUDA_CONTEXT:
        return CT_ROLE_context;
    case CT_NVTX_RESOURCE_CUDA_STREAM:
    case CT_NVTX_RESOURCE_CUDART_STREAM:
        return CT_ROLE_stream;
    case CT_NVTX_RESOURCE_CUDA_EVENT:
    case CT_NVTX_RESOURCE_CUDART_EVENT:
        return CT_ROLE_event;
    default:
        return CT_ROLE_none;
    }
}

/* A client may take a handle of NULL for failure. The name stays with the object when the resource goes. */
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

static void resource_destroy(const void *resource)
{
    (void)resource;
}

/* ---- names and strings ---- */

static void domain_name_category_a(const void *domain, uint32_t category, const char *name)
{
    if (name)
        ct_range_name_category(domain_of(domain), category, name);
}

static void domain_name_category_w(const void *domain, uint32_t category, const wchar_t *name)
{
    char narrow[CT_RANGE_NAME_BYTES];
    if (!name)
        return;
    ct_range_narrow(narrow, sizeof(narrow), name);
    ct_range_name_category(domain_of(domain), category, narrow);
}

static void name_category_a(uint32_t category, const char *name)
{
    domain_name_category_a(NULL, category, name);
}

static void name_category_w(uint32_t category, const wchar_t *name)
{
    domain_name_category_w(NULL, category, name);
}

/* The numbers are the process's: a string serves in every domain. */
static void *register_text(const char *text, const wchar_t *wide, const void *frame)
{
    enum ct_loss_cause cause;
    struct ct_range_thread *thread = ct_range_hold(frame, &cause);
    if (!thread)
        return NULL;
    char *room = ct_range_room(thread);
    if (wide)
        ct_range_narrow(room, CT_RANGE_MESSAGE_BYTES, wide);
    else
        ct_range_copy(room, CT_RANGE_MESSAGE_BYTES, text ? text : "");
    void *handle = (void *)(uintptr_t)ct_names_string(room);
    ct_range_release(thread);
    return handle;
}

static void *domain_register_string_a(const void *domain, const char *text)
{
    (void)domain;
    return register_text(text, NULL, HERE);
}

static void *domain_register_string_w(const void *domain, const wchar_t *text)
{
    (void)domain;
    return register_text(NULL, text, HERE);
}

/* ---- a client's tables ---- */

#define FUNCTION(name) (ct_nvtx_function *)(name)

/* In the order of NvtxCallbackIdCore, NvtxCallbackIdCore2, NvtxCallbackIdCuda and NvtxCallbackIdCudaRt. */
static ct_nvtx_function *const core[] = {
    NULL,
    FUNCTION(mark_ex),
    FUNCTION(mark_a),
    FUNCTION(mark_w),
    FUNCTION(range_start_ex),
    FUNCTION(range_start_a),
    FUNCTION(range_start_w),
    FUNCTION(range_end),
    FUNCTION(range_push_ex),
    FUNCTION(range_push_a),
    FUNCTION(range_push_w),
    FUNCTION(range_pop),
    FUNCTION(name_category_a),
    FUNCTION(name_category_w),
    FUNCTION(name_thread_a),
    FUNCTION(name_thread_w),
};
static ct_nvtx_function *const core2[] = {
    NULL,
    FUNCTION(domain_mark_ex),
    FUNCTION(domain_range_start_ex),
    FUNCTION(domain_range_end),
    FUNCTION(domain_range_push_ex),
    FUNCTION(domain_range_pop),
    FUNCTION(resource_create),
    FUNCTION(resource_destroy),
    FUNCTION(domain_name_category_a),
    FUNCTION(domain_name_category_w),
    FUNCTION(domain_register_string_a),
    FUNCTION(domain_register_string_w),
    FUNCTION(domain_create_a),
    FUNCTION(domain_create_w),
    FUNCTION(domain_destroy),
    FUNCTION(initialize),
};
static ct_nvtx_function *const cuda[] = {
    NULL,
    FUNCTION(name_device_a),
    FUNCTION(name_device_w),
    FUNCTION(name_context_a),
    FUNCTION(name_context_w),
    FUNCTION(name_stream_a),
    FUNCTION(name_stream_w),
    FUNCTION(name_event_a),
    FUNCTION(name_event_w),
};
static ct_nvtx_function *const cudart[] = {
    NULL,
    FUNCTION(name_device_a),
    FUNCTION(name_device_w),
    FUNCTION(name_stream_a),
    FUNCTION(name_stream_w),
    FUNCTION(name_event_a),
    FUNCTION(name_event_w),
};

/* Fills in what both sides know: the client's table may be that of an older or a newer version. */
static bool fill_in(const struct ct_nvtx_callbacks *callbacks, uint32_t module, ct_nvtx_function *const *ours,
                    size_t count)
{
    ct_nvtx_function ***table = NULL;
    unsigned entries = 0;
    if (!callbacks->get_module(module, &table, &entries) || !table)
        return false;
    for (size_t i = 1; i < count && i < entries; i++) {
        if (table[i])
            *table[i] = ours[i];
    }
    return true;
}

static bool find_rows(void)
{
    ct_range_row_push = ct_functions_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxRangePush", NULL);
    ct_range_row_start = ct_functions_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxRangeStart", NULL);
    ct_range_row_mark = ct_functions_extra(CT_LAYER_NVTX, CT_CATEGORY_range, "nvtxMark", NULL);
    return ct_range_row_push != CT_ROWS_ALL && ct_range_row_start != CT_ROWS_ALL &&
           ct_range_row_mark != CT_ROWS_ALL;
}

/* The client holds its own lock and waits; it finds the functions in its tables when this returns 1. After a
 * 0 it unloads the library and works without. */
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(ct_nvtx_get_table *get_table);

int InitializeInjectionNvtx2(ct_nvtx_get_table *get_table)
{
    const struct ct_nvtx_callbacks *callbacks = get_table(CT_NVTX_TABLE_CALLBACKS);
    if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) || !find_rows())
        return 0;
    const struct ct_nvtx_version *version = get_table(CT_NVTX_TABLE_VERSION);
    if (version && version->struct_bytes >= sizeof(*version) && version->set_injection_version)
        version->set_injection_version(CT_NVTX_VERSION);
    const bool filled = fill_in(callbacks, CT_NVTX_MODULE_CORE, core, CT_ARRAY_LENGTH(core));
    /* Version 1 has the first table alone. */
    fill_in(callbacks, CT_NVTX_MODULE_CORE2, core2, CT_ARRAY_LENGTH(core2));
    fill_in(callbacks, CT_NVTX_MODULE_CUDA, cuda, CT_ARRAY_LENGTH(cuda));
    fill_in(callbacks, CT_NVTX_MODULE_CUDART, cudart, CT_ARRAY_LENGTH(cudart));
    return filled;
}
