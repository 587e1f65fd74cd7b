/* A process that runs: whether the hook is in it, and what comes of that. */
#ifndef CT_DOCTOR_PROCESS_H
#define CT_DOCTOR_PROCESS_H

#include "doctor_say.h"

/* NULL after reporting that there is no such process, or that it may not be looked at. */
struct ct_patient *ct_patient_create(struct ct_doctor *doctor, pid_t pid);
void ct_patient_destroy(struct ct_patient *patient);
void ct_doctor_process(struct ct_doctor *doctor);

#endif
