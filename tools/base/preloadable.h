/* Finds the program that a command starts, and judges from its file whether a library can be preloaded into
 * it. Called by run.c, which warns, and by doctor.c, which explains. */
#ifndef CT_PRELOADABLE_H
#define CT_PRELOADABLE_H

#include <stdbool.h>

enum ct_program {
    CT_PROGRAM_UNKNOWN, /* nothing is known to prevent tracing */
    CT_PROGRAM_STATIC,
    CT_PROGRAM_MUSL,
    CT_PROGRAM_SET_ID, /* gains rights that its user lacks */
    CT_PROGRAM_FOREIGN /* built for 32 bits or for another processor */
};

/* Finds the file that execvp() would run. `file` has PATH_MAX bytes. Returns false if there is none. */
bool ct_program_find(const char *command, char *file);
/* If `file` is a script, replaces it by its interpreter, or by the program that env starts. Returns false if
 * it is not a script. */
bool ct_program_follow(char *file);
/* Judges this file itself and does not follow scripts. */
enum ct_program ct_program_judge(const char *file);
/* Finds the file of a command, follows scripts, and judges the program. */
enum ct_program ct_program_inspect(const char *command);
/* Returns "is …" or "uses …", a predicate for a sentence, with the consequence. Returns NULL for
 * CT_PROGRAM_UNKNOWN. */
const char *ct_program_why(enum ct_program program);

#endif
