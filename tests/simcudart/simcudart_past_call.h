/* Exported by this folder's libcudart.so in addition to the runtime's functions, for the test of
 * arguments. */
#ifndef SIMCUDART_PAST_CALL_H
#define SIMCUDART_PAST_CALL_H

#include "simcuda_verify.h"

/* Like simcuda_past_call(). */
int simcudart_past_call(unsigned back, const char **name, uint64_t *checksum, int *misaligned);

#endif
