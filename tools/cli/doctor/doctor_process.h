/* Checks whether a running process has loaded the hook, and what it records. */
#ifndef CT_DOCTOR_PROCESS_H
#define CT_DOCTOR_PROCESS_H

#include "doctor_say.h"

/* Opens a process for examination. Returns NULL after reporting that the process does not exist or may not be
 * examined. */
struct ct_patient *ct_patient_create(struct ct_doctor *doctor, pid_t pid);
void ct_patient_destroy(struct ct_patient *patient);
void ct_doctor_process(struct ct_doctor *doctor);

#endif
