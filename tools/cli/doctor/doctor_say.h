/* Holds what `cudatrace doctor` has found out, and prints it. Called by all files of this folder. Doctor
 * changes nothing: it makes no file, takes no lock and runs no command, except in doctor_command.c. It checks
 * what it reads of others (files, shared memory, /proc) before it believes it. */
#ifndef CT_DOCTOR_SAY_H
#define CT_DOCTOR_SAY_H

#include "elf_reader.h"
#include "where.h"

#include "hook_note.h"

#include <limits.h>
#include <sys/types.h>

enum ct_verdict {
    CT_VERDICT_OK,
    CT_VERDICT_NOTE, /* to know */
    CT_VERDICT_MISS, /* something is not traced */
};

enum { CT_DOCTOR_ROOT_BYTES = 32 };

/* The process that was asked about; see doctor_process.c. */
struct ct_patient;

struct ct_doctor {
    struct ct_where where;
    struct ct_patient *patient; /* NULL: none */
    int columns;                /* width of the terminal; 0: lines are not broken */
    unsigned misses;

    /* The user, the session and its place: those of the process, when the user asked about one. */
    uint32_t uid;
    const char *session;
    bool shm_is_its_own; /* the process has a /dev/shm that is not ours */
    /* Ours, or its own below /proc/PID/root; a path of a control segment or a socket there fits, too. */
    char shm_folder[CT_SHM_DIR_BYTES + CT_DOCTOR_ROOT_BYTES];

    /* The hook that `cudatrace run` would preload; an empty path when there is none. */
    char hook_path[PATH_MAX];
    struct ct_hook_note hook; /* zero when the file has none */
    struct ct_elf_names driver_functions, runtime_functions, runtime_versions;

    /* The library that the loader finds as libcuda.so.1; an empty path when it finds none. */
    char driver_path[PATH_MAX];

    /* The session's daemon; 0 when none serves it. */
    pid_t daemon_pid;
    uint32_t daemon_uid; /* the session's user, or root where the system's daemon serves it */
    bool daemon_system;
    uint64_t ring_bytes;   /* the daemon's, or what one would have */
    uint32_t daemon_clock; /* enum ct_clock_kind, with a daemon */
    uint32_t selections;   /* ct_control.selections, with a daemon */
};

void ct_doctor_head(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line: "ok    subject    sentence". The sentence of a note or a miss says what to do. */
void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* As they stand where a struct ct_doctor *doctor is. */
#define FINE(...) ct_doctor_say(doctor, CT_VERDICT_OK, __VA_ARGS__)
#define NOTE(...) ct_doctor_say(doctor, CT_VERDICT_NOTE, __VA_ARGS__)
#define MISS(...) ct_doctor_say(doctor, CT_VERDICT_MISS, __VA_ARGS__)

#endif
