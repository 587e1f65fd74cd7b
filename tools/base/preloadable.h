/* Finds the program that a command starts, and determines from its file whether a library can be preloaded
 * into it. Called by run.c, which warns, and by doctor.c, which explains. */
#ifndef CT_PRELOADABLE_H
#define CT_PRELOADABLE_H

#include <stdbool.h>

enum ct_program {
    CT_PROGRAM_UNKNOWN, /* nothing that prevents tracing was found */
    CT_PROGRAM_STATIC,
    CT_PROGRAM_MUSL,
    CT_PROGRAM_SET_ID, /* runs with more privileges than its user has */
    CT_PROGRAM_FOREIGN /* built for 32 bits or for another processor */
};

/* Finds the file that execvp() would run, and stores its path in `file`, which has PATH_MAX bytes. Returns
 * false if there is no such file. */
bool ct_program_find(const char *command, char *file);
/* If `file` is a script, replaces it with its interpreter, or with the program that env starts. Returns false
 * if the file is not a script. */
bool ct_program_follow(char *file);
/* Checks the file itself, without following scripts. */
enum ct_program ct_program_judge(const char *file);
/* Finds a command's file, follows scripts, and checks the resulting program. */
enum ct_program ct_program_inspect(const char *command);
/* Returns a predicate for a message, beginning with "is" or "uses", that explains the consequence. Returns
 * NULL for CT_PROGRAM_UNKNOWN. */
const char *ct_program_why(enum ct_program program);

#endif
