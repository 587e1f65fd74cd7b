/* Calls that hand out the driver's functions: the program gets stubs. The result, the status and a pointer
 * that is not the driver's stay as they are. */
#include "decode.h"
#include "driver_functions.h"
#include "lookup.h"

#include <dlfcn.h>

/* CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags), and _v2 with
 * a status pointer more. */
void ct_decode_proc_address(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    const char *symbol = (const char *)frame->args[0];
    void **answer = (void **)frame->args[1];
    if (succeeded(frame) && answer && *answer && symbol && *symbol)
        ct_lookup_replace(answer, symbol);
}

/* cudaGetDriverEntryPoint(symbol, function *, …): libcudart asks cuGetProcAddress, whose answers are stubs
 * already, unless it knew the function before the hook could look. */
void ct_decode_entry_point(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)decoded;
    void **answer = (void **)frame->args[1];
    if (succeeded(frame) && answer && ct_driver_look(RTLD_DEFAULT, false))
        ct_lookup_replace(answer, NULL);
}
