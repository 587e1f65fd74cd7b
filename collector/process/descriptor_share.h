/* The daemon's limit on open files, and how it is divided between traced processes and connections. */
#ifndef CT_DESCRIPTOR_SHARE_H
#define CT_DESCRIPTOR_SHARE_H

#include "message.h"

#include <stdbool.h>
#include <stdint.h>

/* Raises the limit as far as the hard limit allows, and checks that the daemon can open as many files as it
 * needs. Returns false with a sentence in `message` if it cannot. */
bool ct_descriptors_require(char message[CT_MESSAGE_BYTES]);
/* Returns how many processes can be read at once, up to `most`. The system daemon also reserves descriptors
 * for other users' connections. */
uint32_t ct_descriptors_for_processes(uint32_t most, bool system);
/* Returns how many connections of other users the system daemon accepts at once. The rest of the limit is
 * left for root's connections and the traced processes. */
uint32_t ct_descriptors_for_clients(void);

#endif
