/* The program that a command starts, and whether a library can be preloaded into it at all, as far as its
 * file tells. Called by run.c, which warns, and by doctor.c, which explains. */
#ifndef CT_PRELOADABLE_H
#define CT_PRELOADABLE_H

#include <stdbool.h>

enum ct_program {
    CT_PROGRAM_UNKNOWN, /* nothing speaks against tracing it */
    CT_PROGRAM_STATIC,
    CT_PROGRAM_MUSL,
    CT_PROGRAM_SET_ID, /* gets rights that whoever starts it has not */
    CT_PROGRAM_FOREIGN /* built for 32 bits or for another processor */
};

/* The file that execvp() would run, into `file` of PATH_MAX bytes; false when there is none. */
bool ct_program_find(const char *command, char *file);
/* If `file` is a script, puts the program that reads it in its place, behind env too; false when it is none.
 */
bool ct_program_follow(char *file);
/* Judges this very file: it does not follow scripts. */
enum ct_program ct_program_judge(const char *file);
/* Does all three for a command: finds its file, follows scripts, and judges the program. */
enum ct_program ct_program_inspect(const char *command);
/* "is …": a predicate for a sentence, and what comes of it; NULL for CT_PROGRAM_UNKNOWN. */
const char *ct_program_why(enum ct_program program);

#endif
