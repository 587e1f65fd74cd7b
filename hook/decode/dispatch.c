#include "decoded.h"

#include "error_guard.h"
#include "graphs.h"

enum {
    ALWAYS_none = false,
#define DECODER(name)        ALWAYS_##name = false,
#define DECODER_ALWAYS(name) ALWAYS_##name = true,
#include "decoders.def"
#undef DECODER_ALWAYS
#undef DECODER
#define OBJECTS(name, ...)        ALWAYS_##name = false,
#define OBJECTS_ALWAYS(name, ...) ALWAYS_##name = true,
#include "objects.def"
#undef OBJECTS_ALWAYS
#undef OBJECTS
};

#define ct_decode_none NULL
#ifdef CT_DECODE_REMOTE
/* The probe neither traces runtime calls nor replaces driver functions. */
#define RUNTIME_DECODERS 0
void ct_decode_proc_address(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    (void)frame;
    (void)decoded;
}
#else
#define RUNTIME_DECODERS CT_RUNTIME_FUNCTIONS
#endif
/* The decoders in row order. Each runtime function appears only once, for all versions of libcudart. */
static const struct decoder {
    ct_decoder *decode;
    bool always;
} decoders[CT_ROW_COUNT + RUNTIME_DECODERS] = {
#define ROW(function, category, words, decoder) { ct_decode_##decoder, ALWAYS_##decoder },
#include "driver_api.def"
#ifndef CT_DECODE_REMOTE
#include "runtime_api.def"
#endif
#undef ROW
};

static const struct decoder *decoder_of(uint32_t row)
{
    static const struct decoder none;
    if (row < CT_ROW_COUNT)
        return &decoders[row];
    if (RUNTIME_DECODERS > 0 && row < CT_SECOND_FIRST)
        return &decoders[CT_ROW_COUNT + (row - CT_ROW_COUNT) % CT_RUNTIME_FUNCTIONS];
    const bool has_one = row < CT_NAMED_COUNT && ct_rows[row].flags & CT_ROW_DECODED;
    return has_one ? &decoders[row - CT_SECOND_FIRST] : &none;
}

/* During a capture, any call may become a graph node. */
bool ct_decode_always(uint32_t row)
{
    const struct decoder *decoder = decoder_of(row);
    return decoder->always || (decoder->decode && ct_capturing());
}

/* Decoders that learn facts or replace functions may open files or make system calls, so they run with
 * CT_ERROR_GUARD. Most of the others only read. Those that do more take the table lock, or use CT_ERROR_GUARD
 * themselves. They handle the most frequent calls, which CT_ERROR_GUARD would slow down: disabling and
 * re-enabling cancellation takes two locked instructions, which wait until a launch's stores have reached the
 * device. */
struct ct_decoded ct_decode(const struct ct_frame *frame)
{
    struct ct_decoded decoded = { .kind = CT_KIND_CALL, .status = (int32_t)frame->result };
    const struct decoder *decoder = decoder_of(frame->row);
    if (decoder->always) {
        CT_ERROR_GUARD;
        decoder->decode(frame, &decoded);
    } else if (decoder->decode) {
        decoder->decode(frame, &decoded);
    }
    return decoded;
}
