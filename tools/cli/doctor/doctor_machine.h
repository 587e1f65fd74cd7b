/* What the machine has for tracing: the hook, the driver, the kernel, shared memory. */
#ifndef CT_DOCTOR_MACHINE_H
#define CT_DOCTOR_MACHINE_H

#include "doctor_say.h"

void ct_doctor_machine(struct ct_doctor *doctor);
/* Says which functions of a driver the hook does not know. */
void ct_doctor_compare(struct ct_doctor *doctor, const struct ct_elf_names *driver);
bool ct_doctor_is_driver_name(const char *name);
/* Whether a function of that name keeps calls from the hook when it comes before it. */
bool ct_doctor_is_way_in(const char *name);
/* Whether the hook exports functions of that version of libcudart, and what comes of it. */
void ct_doctor_runtime(struct ct_doctor *doctor, const char *file, const char *version);

#endif
