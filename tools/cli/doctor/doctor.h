/* What the files of `cudatrace doctor` share. It looks and changes nothing: no file is made, no lock is
 * taken, no command is run, and what it reads of others (files, shared memory, /proc) is checked before it is
 * believed.
 *
 *   doctor.c          the command, its output, and what can be told of a command that is not run
 *   doctor_machine.c  hook, driver, devices, clock, kernel, shared memory
 *   doctor_session.c  the session's daemon and its database
 *   doctor_process.c  a process: what is loaded into it, and what comes of that
 *   doctor_segment.c  what a process has recorded */
#ifndef CT_DOCTOR_H
#define CT_DOCTOR_H

#include "cudatrace.h"
#include "elf_reader.h"
#include "hook_note.h"
#include "session_names.h"

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
    struct ct_options options;
    struct ct_patient *patient; /* NULL: none */
    int columns;                /* of the terminal; 0: lines are not broken */
    unsigned misses;

    /* Whose sessions, and where: those of the process, when one was asked about. */
    uint32_t uid;
    const char *session;
    char shm_root[CT_DOCTOR_ROOT_BYTES]; /* what precedes /dev/shm: "", or /proc/PID/root */

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

/* ---- doctor.c: output ---- */
void ct_doctor_head(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line: "ok    subject    sentence". The sentence of a note or a miss says what to do. */
void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...) __attribute__((format(printf, 4, 5)));
/* "64 KiB", "1.5 GiB". */
const char *ct_doctor_size(char text[32], uint64_t bytes);

/* ---- doctor_machine.c ---- */
void ct_doctor_machine(struct ct_doctor *doctor);
/* Says which functions of a driver the hook does not know. */
void ct_doctor_compare(struct ct_doctor *doctor, const struct ct_elf_names *driver);
bool ct_doctor_is_driver_name(const char *name);
bool ct_doctor_is_runtime_name(const char *name);
/* Whether a function of that name keeps calls from the hook when it comes before it. */
bool ct_doctor_is_way_in(const char *name);
/* Whether the hook exports functions of that version of libcudart, and what comes of it. */
void ct_doctor_runtime(struct ct_doctor *doctor, const char *file, const char *version);

/* ---- doctor_session.c ---- */
/* Finds the session's daemon, and says how it is. */
void ct_doctor_session(struct ct_doctor *doctor);

/* ---- doctor_process.c ---- */
/* NULL after reporting that there is no such process, or that it may not be looked at. */
struct ct_patient *ct_patient_create(struct ct_doctor *doctor, pid_t pid);
void ct_patient_destroy(struct ct_patient *patient);
void ct_doctor_process(struct ct_doctor *doctor);

/* ---- doctor_segment.c ---- */

/* What is known of a process before its segment is looked for. */
struct ct_traced {
    int32_t pid; /* as the process sees itself: its segment is named so */
    uint32_t uid;
    const char *session; /* its own */
    uint64_t start_ticks;
    bool driver_loaded;
};
/* Says what it has recorded, lost and left out. The name of a function by which it looks others up goes to
 * *way_in, when it has called one. */
void ct_doctor_segment(struct ct_doctor *doctor, const struct ct_traced *traced, const char **way_in);

#endif
