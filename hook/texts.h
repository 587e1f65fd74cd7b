/* Texts that records name by number. The process lock is held around all of this but ct_texts_number(). */
#ifndef CT_TEXTS_H
#define CT_TEXTS_H

#include "hook.h"

#pragma GCC visibility push(hidden)

/* A string that holds a copy of `text`, with one holder more; 0 without memory. Equal texts are one string.
 */
uint32_t ct_texts_hold(const char *text);
/* One holder more of a string that has one, and one less; 0 is fine. */
void ct_texts_share(uint32_t string);
void ct_texts_release(uint32_t string);
/* All strings are gone; numbers go on. */
void ct_texts_forget(void);

/* The number by which records name a string that somebody holds, defined in the caller's lane if need be.
 * `producer` is busy, or NULL when nothing is recorded. */
uint32_t ct_texts_number(uint32_t string, struct ct_producer *producer);

#pragma GCC visibility pop

#endif
