/* Declares a function that this folder's libcudart.so exports in addition to the runtime's functions, for the
 * argument tests. */
#ifndef SIMCUDART_PAST_CALL_H
#define SIMCUDART_PAST_CALL_H

#include "simcuda_verify.h"

/* Like simcuda_past_call(). */
int simcudart_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned);

#endif
