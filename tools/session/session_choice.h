/* Parses the options that select the session and the trace: --db, --session and --shm-dir. A command's option
 * table includes the options that apply to the command. Called by all commands that read a trace or send
 * requests to a daemon. */
#ifndef CT_SESSION_CHOICE_H
#define CT_SESSION_CHOICE_H

#include "options.h"

#include "session_names.h"

struct ct_session_choice {
    const char *database;                   /* NULL: not given */
    const char *session;                    /* a valid name */
    const char *session_option;             /* NULL: not given by --session */
    const char *shm_dir_option;             /* NULL: not given by --shm-dir */
    bool session_named;                     /* the session was named with --session or $CUDATRACE_SESSION */
    char session_found[CT_SESSION_MAX + 1]; /* buffer for a name found by the functions of sessions.h */
    char shm_dir[CT_SHM_DIR_BYTES];         /* absolute path of the folder with the session's files */
};

#define CT_OPTION_DB(choice_, help_)                                                                         \
    {                                                                                                        \
        "db", "FILE", help_, &(choice_)->database, ct_take_name, "expected a file name"                      \
    }
#define CT_OPTION_SESSION(choice_, help_)                                                                    \
    {                                                                                                        \
        "session", "NAME", help_, &(choice_)->session_option                                                 \
    }
#define CT_OPTION_SHM_DIR(choice_)                                                                           \
    {                                                                                                        \
        "shm-dir", "DIR",                                                                                    \
            "the directory of the session's shared memory (default: $CUDATRACE_SHM_DIR, or\n/dev/shm)",      \
            &(choice_)->shm_dir_option, ct_take_name, "expected a directory"                                 \
    }
/* The options of commands that read a trace. */
#define CT_OPTIONS_OF_TRACE(choice_)                                                                         \
    CT_OPTION_DB(choice_, "the trace (default: ./trace.db)"),                                                \
        CT_OPTION_SESSION(choice_, "the trace of that session's daemon"), CT_OPTION_SHM_DIR(choice_)

/* Runs ct_options_parse() on a table that includes these options, and then sets and checks the fields of
 * `choice`. */
int ct_session_choice_parse(int argc, char **argv, const struct ct_usage *usage,
                            struct ct_session_choice *choice, int *first);

#endif
