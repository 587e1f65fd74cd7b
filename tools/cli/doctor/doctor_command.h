/* Examines a command's program file, and checks what happens when the command is started. Called by
 * doctor.c. */
#ifndef CT_DOCTOR_COMMAND_H
#define CT_DOCTOR_COMMAND_H

#include "doctor_say.h"

/* Examines the program file of a command. `file` is the result of ct_program_find(), and is modified. */
void ct_doctor_command(struct ct_doctor *doctor, char **argv, char *file);
/* Starts the command under the hook, in a session with its own trace, and reports the outcome. Waits until
 * one of the command's processes has joined the session, all have exited, or `patience_ns` have passed. */
void ct_doctor_probe(struct ct_doctor *doctor, char **argv, uint64_t patience_ns);

#endif
