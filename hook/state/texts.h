/* Texts that records name by number. The table lock is held around all of this but ct_texts_number(). */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include "producer.h"

/* A string that holds a copy of `text`, of which `room` bytes at most are looked at, with one holder more; 0
 * without memory. Equal texts are one string. */
uint32_t ct_texts_hold(const char *text, size_t room);
/* One holder more of a string that has one, and one less; 0 is fine. */
void ct_texts_share(uint32_t string);
void ct_texts_release(uint32_t string);
/* The same as holding, once for each text and for good. A text beyond what is kept, KEPT_MAX strings of
 * KEPT_BYTES_MAX bytes in all, gives the string of one that says so. */
uint32_t ct_texts_keep(const char *text);
/* The text of a string that is kept, and its length; NULL for one that is not. Takes no lock. */
const char *ct_texts_kept(uint32_t string, size_t *bytes);
/* All strings are gone; numbers go on. */
void ct_texts_forget(void);

/* The number by which records name a string that somebody holds, defined in the caller's lane if need be.
 * `producer` is busy, or NULL when nothing is recorded. */
uint32_t ct_texts_number(uint32_t string, struct ct_producer *producer);
/* True if the definition of that string, 0 for none, went into a lane of the producer's segment. */
bool ct_texts_sent(uint32_t string, const struct ct_producer *producer);

#endif
