/* Checks everything on the machine that tracing depends on: the hook, the driver, the kernel and shared
 * memory. Called by doctor.c and doctor_process.c. */
#ifndef CT_DOCTOR_MACHINE_H
#define CT_DOCTOR_MACHINE_H

#include "doctor_say.h"

void ct_doctor_machine(struct ct_doctor *doctor);
/* Reports driver functions that the hook does not know. */
void ct_doctor_compare(struct ct_doctor *doctor, const struct ct_elf_names *driver);
bool ct_doctor_is_driver_name(const char *name);
/* Returns whether a library that defines this function can hide calls from the hook if the loader searches
 * that library first. */
bool ct_doctor_is_way_in(const char *name);
/* Reports whether the hook exports this libcudart version's functions, which is needed to trace calls to
 * them. */
void ct_doctor_runtime(struct ct_doctor *doctor, const char *file, const char *version);

#endif
