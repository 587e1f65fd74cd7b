/* Decoders for calls that reveal the handles and names of kernels, and for calls that unload kernels. They
 * update the data in kernel_names.c. */
#include "decode.h"
#include "kernel_names.h"
#include "object_names.h"

static void got(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_role owner)
{
    const uint64_t handle = out(frame, 0);
    const char *name = handle && frame->args[2] ? ct_target_text(frame->args[2]) : NULL;
    if (name)
        ct_names_learn(handle, frame->args[1], name, frame->producer);
    if (handle)
        ct_decode_add_object(decoded, CT_ROLE_function, handle);
    ct_decode_add_object(decoded, owner, frame->args[1]);
    const uint32_t string = name ? ct_names_kernel(handle, frame->producer, false) : 0;
    if (string)
        ct_decode_add_object(decoded, CT_ROLE_kernel, string);
}

void ct_decode_get_function(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    got(frame, decoded, CT_ROLE_module);
}

void ct_decode_get_kernel(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    got(frame, decoded, CT_ROLE_library);
}

void ct_decode_kernel_function(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t handle = out(frame, 0);
    if (handle)
        ct_names_alias(handle, frame->args[1], frame->producer);
}

/* The program's array may have room for more handles than there are. The driver leaves the remaining elements
 * unset. */
void ct_decode_enumerate(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t handles = frame->args[0];
    bool more = succeeded(frame) && handles;
    for (uint32_t i = 0; more && i < (uint32_t)frame->args[1]; i++) {
        uint64_t handle;
        more = ct_target_read(handles + i * sizeof(handle), &handle, sizeof(handle)) && handle &&
               ct_names_listed(handle, frame->args[2], frame->producer);
    }
}

/* (const char **name, function or kernel). The driver has just returned the name to the program. */
void ct_decode_get_name(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const uint64_t address = out(frame, 0);
    const char *name = address ? ct_target_text(address) : NULL;
    if (name)
        ct_names_told(frame->args[1], name, frame->producer);
}

/* The program may get functions from a library's module. These functions become invalid when the library is
 * unloaded. */
void ct_decode_library_module(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const uint64_t module = out(frame, 0);
    if (module)
        ct_decode_add_object(decoded, CT_ROLE_module, module);
    ct_decode_add_object(decoded, CT_ROLE_library, frame->args[1]);
    if (module)
        ct_names_alias(module, frame->args[1], frame->producer);
}

static void unloaded(const struct ct_frame *frame, struct ct_decoded *decoded, enum ct_role role)
{
    ct_decode_add_object(decoded, role, frame->args[0]);
    if (succeeded(frame))
        ct_names_unload(frame->args[0], began(frame));
}

void ct_decode_module_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    unloaded(frame, decoded, CT_ROLE_module);
}

void ct_decode_library_unload(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    unloaded(frame, decoded, CT_ROLE_library);
}

/* Destroying a context unloads all modules that were loaded in it. Releasing a primary context does not
 * necessarily destroy it, since it may have other holders unknown to the hook. */
void ct_decode_context_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_context, frame->args[0]);
    if (succeeded(frame)) {
        ct_names_doubt();
        ct_named_end(CT_ROLE_context, frame->args[0], frame->producer);
    }
}

void ct_decode_device_end(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    ct_decode_add_object(decoded, CT_ROLE_device, (uint64_t)(int64_t)(int32_t)frame->args[0]);
    if (succeeded(frame))
        ct_names_doubt();
}
