/* The payload in the record of a hooked call. */
#ifndef CT_PROBE_HOOKED_H
#define CT_PROBE_HOOKED_H

#include "functions.h"
#include "hook_rule.h"

#include <stddef.h>

/* Writes the fields that were read. Returns the payload's length in bytes. */
size_t ct_hooked_payload(uint8_t payload[CT_FIELDS_BYTES_MAX], const struct ct_function_entry *function,
                         const struct ct_probe_hooked *hooked);
/* Returns the value of the field `status`, or the record's status if there is none. */
int32_t ct_hooked_status(const struct ct_function_entry *function, const struct ct_probe_hooked *hooked);

#endif
