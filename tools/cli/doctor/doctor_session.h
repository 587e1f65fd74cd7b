/* The session: its daemon, what that is asked to record, its database, its clock and its shared memory. */
#ifndef CT_DOCTOR_SESSION_H
#define CT_DOCTOR_SESSION_H

#include "doctor_say.h"

/* Finds the session's daemon, and says how it is. */
void ct_doctor_session(struct ct_doctor *doctor);

#endif
