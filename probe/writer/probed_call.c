#include "probed_call.h"

#include "current.h"
#include "request_rows.h"
#include "target_memory.h"

#include <string.h>

void ct_probed_call_correct(uint64_t entry_ns, uint64_t return_ns, const struct ct_thread *thread,
                            uint64_t *start, uint64_t *end)
{
    const uint64_t added = entry_ns + return_ns, took = *end - *start;
    *end -= return_ns;
    if (thread && *end < thread->last_end)
        *end = thread->last_end;
    if (took > added)
        *start += entry_ns;
    else
        *start = (*end)++;
}

static struct ct_decoded decode_arguments(const struct ct_function_table *functions,
                                          const struct ct_probe_values *values,
                                          const struct ct_thread *thread, struct ct_producer *producer,
                                          uint64_t start, uint64_t end)
{
    const struct ct_probe_record *call = &values->record;
    const uint32_t row = functions->entry[call->function].row;
    const struct ct_probe_shape *shape = ct_functions_shape(functions, call->function);
    struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = call->status };
    if (shape->kind == CT_SHAPE_PLAIN || row >= CT_ROW_COUNT)
        return decoded;
    struct ct_frame frame = {
        .stack_args = &values->argument[CT_PROBE_REGISTERS],
        .start = start,
        .producer = producer,
        .row = row,
        .depth = call->depth,
        .result = (uint32_t)call->status,
    };
    memcpy(frame.args, values->argument, sizeof(frame.args));
    ct_replayed = (struct ct_replayed){ .now_ns = end, .thread = (uintptr_t)thread };
    ct_target_set_call(values, shape);
    decoded = ct_decode(&frame);
    ct_target_set_call(NULL, NULL);
    ct_replayed = (struct ct_replayed){ 0 };
    return decoded;
}

/* A request needs no decoder. Its status has already been read by the BPF program, because the process may
 * reuse the memory of the status after the return. */
struct ct_decoded ct_probed_call_decode(const struct ct_function_table *functions,
                                        const struct ct_probe_record *call, const struct ct_thread *thread,
                                        struct ct_producer *producer, uint64_t start, uint64_t end)
{
    if (call->kind != CT_PROBE_IOCTL)
        return decode_arguments(functions, (const struct ct_probe_values *)call, thread, producer, start,
                                end);
    const struct ct_probe_ioctl *request = (const struct ct_probe_ioctl *)call;
    struct ct_decoded decoded = { .kind = CT_KIND_OBJECTS,
                                  .payload_bytes = sizeof(decoded.payload.objects),
                                  .status = call->status,
                                  .flags = CT_FLAG_BYTES,
                                  .value = request->bytes };
    ct_ioctl_objects(ct_request_space(call->function), request->request, request->code,
                     &decoded.payload.objects);
    return decoded;
}
