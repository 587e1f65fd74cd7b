/* Decoders for calls that return addresses of driver functions. They replace these addresses with stubs, but
 * do not change the result, the status, or pointers to anything else. */
#include "decode.h"
#include "driver_functions.h"
#include "lookup.h"
#include "stack.h"

#include <dlfcn.h>

/* CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags), and _v2,
 * whose fifth argument is a pointer to a status. */
void ct_decode_proc_address(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const char *symbol = (const char *)frame->args[0];
    void **answer = (void **)frame->args[1];
    if (succeeded(frame) && answer && *answer && symbol && *symbol)
        ct_lookup_replace(answer, symbol);
}

/* cudaGetDriverEntryPoint(symbol, function *, …). libcudart calls cuGetProcAddress, which already returns
 * stubs unless libcudart obtained its address before the hook could replace it. */
void ct_decode_entry_point(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    void **answer = (void **)frame->args[1];
    if (succeeded(frame) && answer && (!ct_stack_is_plain() || ct_driver_look(RTLD_DEFAULT, false)))
        ct_lookup_replace(answer, NULL);
}
