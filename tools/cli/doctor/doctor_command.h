/* Looks at a command: at its file, and at what happens when it is started. Called by doctor.c. */
#ifndef CT_DOCTOR_COMMAND_H
#define CT_DOCTOR_COMMAND_H

#include "doctor_say.h"

/* `file` is what ct_program_find() found, and is changed. */
void ct_doctor_command(struct ct_doctor *doctor, char **argv, char *file);
/* Starts the command under the hook, in a session with a trace of their own, until it has joined or ended, or
 * for so long, and says what came of it. */
void ct_doctor_probe(struct ct_doctor *doctor, char **argv, uint64_t patience_ns);

#endif
