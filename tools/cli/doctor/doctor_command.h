/* Examines a command: its file, and its behaviour when it is started. Called by doctor.c. */
#ifndef CT_DOCTOR_COMMAND_H
#define CT_DOCTOR_COMMAND_H

#include "doctor_say.h"

/* `file` is the result of ct_program_find(); this function changes it. */
void ct_doctor_command(struct ct_doctor *doctor, char **argv, char *file);
/* Starts the command under the hook, in a session with its own trace, and reports the outcome. Waits until a
 * process has joined, all have ended, or `patience_ns` have passed. */
void ct_doctor_probe(struct ct_doctor *doctor, char **argv, uint64_t patience_ns);

#endif
