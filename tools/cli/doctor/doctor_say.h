/* Prints the findings of `cudatrace doctor`, and declares everything that the files in this folder share.
 * Called by all of these files. Except in doctor_command.c, `cudatrace doctor` changes nothing: it creates no
 * files, takes no locks and runs no commands. All input from files, shared memory and /proc is validated
 * before it is used. */
#ifndef CT_DOCTOR_SAY_H
#define CT_DOCTOR_SAY_H

#include "elf_reader.h"
#include "session_choice.h"

#include "hook_note.h"

#include <limits.h>
#include <sys/types.h>

enum ct_verdict {
    CT_VERDICT_OK,
    CT_VERDICT_NOTE, /* worth knowing */
    CT_VERDICT_MISS, /* something is not traced */
};

enum { CT_DOCTOR_ROOT_BYTES = 32 };

/* The process that the user named, defined in doctor_process.c. */
struct ct_patient;

struct ct_doctor {
    struct ct_session_choice choice;
    struct ct_patient *patient; /* NULL: none */
    int columns;                /* width of the terminal; 0 if lines are not wrapped */
    unsigned misses;

    /* The user, the session and the session's folder. If a process was named, these are taken from the
     * process. */
    uint32_t uid;
    const char *session;
    bool is_derived;     /* the session is the one that `run --db` derives from the database */
    bool shm_is_its_own; /* the process has a different /dev/shm from ours */
    /* The session's folder, which is below /proc/PID/root if a process was named. The path of a control
     * segment or a socket in this folder fits into CT_NAME_BYTES. */
    char shm_folder[CT_SHM_DIR_BYTES + CT_DOCTOR_ROOT_BYTES];

    /* The hook that `cudatrace run` would preload, or an empty path if there is none. */
    char hook_path[PATH_MAX];
    struct ct_hook_note hook; /* all zero if the file has no such note */
    struct ct_elf_names driver_functions, runtime_functions, runtime_versions;

    /* The library that the loader finds as libcuda.so.1, or an empty path if it finds none. */
    char driver_path[PATH_MAX];

    /* The session's daemon, or 0 if no daemon serves the session. */
    pid_t daemon_pid;
    uint32_t daemon_uid; /* the session's user, or root if the system daemon serves the session */
    bool daemon_system;
    uint64_t ring_bytes;   /* the daemon's setting, or the default if there is no daemon */
    uint32_t daemon_clock; /* enum ct_clock_kind; set only if there is a daemon */
    uint32_t selections;   /* ct_control.selections; set only if there is a daemon */
};

void ct_doctor_head(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line: "ok    subject    sentence". If the verdict is a note or a miss, the sentence includes
 * advice. */
void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* These macros expect a variable `doctor` of type struct ct_doctor *. */
#define FINE(...) ct_doctor_say(doctor, CT_VERDICT_OK, __VA_ARGS__)
#define NOTE(...) ct_doctor_say(doctor, CT_VERDICT_NOTE, __VA_ARGS__)
#define MISS(...) ct_doctor_say(doctor, CT_VERDICT_MISS, __VA_ARGS__)

#endif
