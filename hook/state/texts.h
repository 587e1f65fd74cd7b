/* Strings that records refer to by ID. Callers hold the table lock, except for ct_texts_kept(),
 * ct_texts_number() and ct_texts_sent(). */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include "producer.h"

/* Returns a string, as an index in a pool, that contains a copy of `text`, and adds a holder to it. Reads at
 * most `room` bytes. Returns 0 if out of memory. Equal texts share one string. */
uint32_t ct_texts_hold(const char *text, size_t room);
/* ct_texts_share() adds another holder to a string, and ct_texts_release() removes a holder. Both ignore
 * string 0. */
void ct_texts_share(uint32_t string);
void ct_texts_release(uint32_t string);
/* Like ct_texts_hold(), but the string is never released, and further calls with the same text add no holder.
 * At most KEPT_MAX strings, of KEPT_BYTES_MAX bytes in total, are kept. All others share a placeholder
 * string. */
uint32_t ct_texts_keep(const char *text);
/* Returns the text of a string kept by ct_texts_keep(), and sets *bytes to its length. Returns NULL for other
 * strings. Takes no lock. */
const char *ct_texts_kept(uint32_t string, size_t *bytes);
/* Drops all strings. IDs are not reused. */
void ct_texts_forget(void);

/* Returns the ID that records use for a held string. Defines it in the caller's lane if necessary. The lane
 * of `producer` is held. `producer` is NULL while nothing is recorded. */
uint32_t ct_texts_number(uint32_t string, struct ct_producer *producer);
/* True if the string was defined in a lane of the producer's segment. False for string 0. */
bool ct_texts_sent(uint32_t string, const struct ct_producer *producer);

#endif
