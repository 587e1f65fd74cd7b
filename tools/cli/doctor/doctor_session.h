/* Checks a session's daemon, selection of calls, database, clock and shared memory. */
#ifndef CT_DOCTOR_SESSION_H
#define CT_DOCTOR_SESSION_H

#include "doctor_say.h"

/* Finds the session's daemon and reports its state. */
void ct_doctor_session(struct ct_doctor *doctor);

#endif
