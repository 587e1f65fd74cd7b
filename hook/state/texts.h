/* Texts that records refer to by number. Callers hold the table lock, except for ct_texts_kept(),
 * ct_texts_number() and ct_texts_sent(). */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include "producer.h"

/* Returns a string with a copy of `text` and adds a holder. Reads at most `room` bytes. Returns 0 without
 * memory. Equal texts share one string. */
uint32_t ct_texts_hold(const char *text, size_t room);
/* Add a holder to a string that already has one, and remove a holder. 0 is ignored. */
void ct_texts_share(uint32_t string);
void ct_texts_release(uint32_t string);
/* Like ct_texts_hold(), but once for each text and for good. At most KEPT_MAX strings of KEPT_BYTES_MAX bytes
 * in all are kept. All further texts share one placeholder string. */
uint32_t ct_texts_keep(const char *text);
/* Returns the text of a string that ct_texts_keep() has kept, and its length. Returns NULL for others. Takes
 * no lock. */
const char *ct_texts_kept(uint32_t string, size_t *bytes);
/* Drops all strings. Numbers are not reused. */
void ct_texts_forget(void);

/* Returns the number that records use for a held string. Defines it in the caller's lane if necessary.
 * `producer` is busy, or NULL while nothing is recorded. */
uint32_t ct_texts_number(uint32_t string, struct ct_producer *producer);
/* True if that string, 0 for none, was defined in a lane of the producer's segment. */
bool ct_texts_sent(uint32_t string, const struct ct_producer *producer);

#endif
