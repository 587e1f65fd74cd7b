/* The result of decoding a call. Decoders read a call's arguments and result. */
#ifndef CT_DECODED_H
#define CT_DECODED_H

#include "frame.h"
#include "payload.h"
#include "record.h"
#include "rows.h"

/* A decoder's description of a call that has returned. Fields not set by the decoder are 0, except `kind` and
 * `status`. */
struct ct_decoded {
    uint8_t kind;          /* enum ct_kind; CT_KIND_CALL if no other kind fits */
    uint8_t flags;         /* CT_FLAG_… */
    uint8_t payload_bytes; /* 0: no payload */
    int32_t status;        /* the lower half of the result, unless the decoder sets the status */
    uint64_t value;
    union ct_payload payload;
};

/* Returns the number of bytes that the call adds to the `totals` table, which counts only successful
 * calls. */
static inline uint64_t ct_decoded_bytes(const struct ct_decoded *decoded)
{
    return decoded->status == 0 && ct_kind_has_bytes(decoded->kind, decoded->flags) ? decoded->value : 0;
}

/* The beginning of CUlaunchConfig. */
struct ct_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    uint64_t stream;
};

/* Reads the arguments and the result of a call that has returned. In the hook, a decoder runs on the
 * application's thread, and may call the real driver only for lookups that neither synchronise nor break a
 * stream capture. */
typedef void ct_decoder(const struct ct_frame *frame, struct ct_decoded *decoded);

#define DECODER(name)        ct_decoder ct_decode_##name;
#define DECODER_ALWAYS(name) DECODER(name)
#include "decoders.def"
#undef DECODER_ALWAYS
#undef DECODER
#define OBJECTS(name, ...)        ct_decoder ct_decode_##name;
#define OBJECTS_ALWAYS(name, ...) OBJECTS(name)
#include "objects.def"
#undef OBJECTS_ALWAYS
#undef OBJECTS

/* Runs the row's decoder. If the row has no decoder, returns a plain CT_KIND_CALL with the status from the
 * result. */
struct ct_decoded ct_decode(const struct ct_frame *frame);
/* True if the row's decoder must run even while nothing is recorded. */
bool ct_decode_always(uint32_t row);

#endif
