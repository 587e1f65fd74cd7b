/* Holds the findings of `cudatrace doctor`, and prints them. Called by all files of this folder. Doctor
 * changes nothing. It makes no file, takes no lock and runs no command, except in doctor_command.c. It
 * validates all input from others (files, shared memory, /proc) before using it. */
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

/* The process that the user named; see doctor_process.c. */
struct ct_patient;

struct ct_doctor {
    struct ct_session_choice choice;
    struct ct_patient *patient; /* NULL: none */
    int columns;                /* width of the terminal; 0: lines are not broken */
    unsigned misses;

    /* The user, the session and its folder. If a process was named, they are the process's own. */
    uint32_t uid;
    const char *session;
    bool shm_is_its_own; /* the process's /dev/shm is not ours */
    /* Our folder, or the process's folder below /proc/PID/root. The path of a control segment or a socket in
     * it fits into CT_NAME_BYTES. */
    char shm_folder[CT_SHM_DIR_BYTES + CT_DOCTOR_ROOT_BYTES];

    /* The hook that `cudatrace run` would preload; an empty path if there is none. */
    char hook_path[PATH_MAX];
    struct ct_hook_note hook; /* zero if the file has none */
    struct ct_elf_names driver_functions, runtime_functions, runtime_versions;

    /* The library that the loader finds as libcuda.so.1; an empty path if it finds none. */
    char driver_path[PATH_MAX];

    /* The session's daemon, or 0 if no daemon serves it. */
    pid_t daemon_pid;
    uint32_t daemon_uid; /* the session's user, or root if the system's daemon serves it */
    bool daemon_system;
    uint64_t ring_bytes;   /* the daemon's setting, or the default */
    uint32_t daemon_clock; /* enum ct_clock_kind; set if there is a daemon */
    uint32_t selections;   /* ct_control.selections; set if there is a daemon */
};

void ct_doctor_head(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints a line: "ok    subject    sentence". The sentence of a note or a miss includes advice. */
void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* These expect a variable `doctor` of type struct ct_doctor *. */
#define FINE(...) ct_doctor_say(doctor, CT_VERDICT_OK, __VA_ARGS__)
#define NOTE(...) ct_doctor_say(doctor, CT_VERDICT_NOTE, __VA_ARGS__)
#define MISS(...) ct_doctor_say(doctor, CT_VERDICT_MISS, __VA_ARGS__)

#endif
