/* Implements `cudatrace doctor`, which reports which calls on this machine, in a process or in a command
 * would not be traced, and why. */
#include "doctor_command.h"
#include "doctor_machine.h"
#include "doctor_process.h"
#include "doctor_session.h"
#include "duration.h"
#include "number.h"
#include "preloadable.h"
#include "printable.h"
#include "sessions.h"
#include "subcommand.h"

#include <errno.h>
#include <string.h>

struct doctor_options {
    bool is_dry; /* COMMAND is not started */
    uint64_t patience_ns;
};

static int examine(struct ct_doctor *doctor, const struct doctor_options *options, char **argv, char *file)
{
    ct_doctor_machine(doctor);
    ct_doctor_session(doctor);
    if (doctor->patient)
        ct_doctor_process(doctor);
    else if (argv[0])
        ct_doctor_command(doctor, argv, file);
    fflush(stdout);
    if (!doctor->patient && argv[0] && !options->is_dry)
        ct_doctor_probe(doctor, argv, options->patience_ns);
    if (doctor->patient || argv[0])
        NOTE("not seen", "calls from the constructor of a library linked with the driver, made while "
                         "dlopen() loads it, are never traced and cannot be detected");
    if (doctor->misses)
        ct_doctor_head("%u %s found: some calls would not be traced.", doctor->misses,
                       doctor->misses == 1 ? "problem" : "problems");
    else
        ct_doctor_head("No problems found.");
    return doctor->misses ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Parses the arguments after the options. Returns CT_GO_ON, or the exit status after reporting an error. */
static int take_arguments(struct ct_doctor *doctor, char **argument, bool is_command, char *file)
{
    int64_t pid;
    if (!is_command && argument[0] && ct_is_digits(argument[0])) {
        if (argument[1])
            return ct_fail(EXIT_USAGE, "doctor: specify only one process ID (see cudatrace doctor --help)");
        if (!ct_number_parse(argument[0], 1, INT_MAX, &pid))
            return ct_fail(EXIT_USAGE, "doctor: invalid process ID '%s'", argument[0]);
        doctor->patient = ct_patient_create(doctor, (pid_t)pid);
        return doctor->patient ? CT_GO_ON : EXIT_FAILURE;
    }
    if (argument[0] && !ct_program_find(argument[0], file))
        return ct_fail(EXIT_FAILURE, "doctor: %s: command not found or not executable", argument[0]);
    if (is_command && !argument[0])
        return ct_fail(EXIT_USAGE, "doctor: no command after -- (see cudatrace doctor --help)");
    return CT_GO_ON;
}

/* Parses the options. A command may have options of its own, but options after a process ID are doctor's.
 * Sets *is_command to whether the arguments follow a `--`. Returns CT_GO_ON, or the exit status. */
static int parse(int argc, char **argv, struct ct_usage usage, struct ct_session_choice *choice, int *first,
                 bool *is_command)
{
    const int status = ct_session_choice_parse(argc, argv, &usage, choice, first);
    if (status != CT_GO_ON)
        return status;
    *is_command = *first > 1 && strcmp(argv[*first - 1], "--") == 0;
    if (*is_command || !argv[*first] || !ct_is_digits(argv[*first]))
        return CT_GO_ON;
    usage.runs_command = false;
    return ct_session_choice_parse(argc, argv, &usage, choice, first);
}

static int doctor(int argc, char **argv)
{
    enum { COLUMNS_MIN = 60 };
    struct ct_doctor doctor = { .uid = ct_session_uid() };
    struct doctor_options own = { .patience_ns = UINT64_C(30000000000) };
    const struct ct_option options[] = {
        CT_OPTION_DB(&doctor.choice, "the database to be written (default: ./trace.db, or the one that the\n"
                                     "session's daemon writes)"),
        CT_OPTION_SESSION(&doctor.choice,
                          "the session (default: the session of the process, $CUDATRACE_SESSION, or\n"
                          "default)"),
        CT_OPTION_SHM_DIR(&doctor.choice),
        { .name = "wait",
          .value = "DURATION",
          .help = "how long to wait for the first CUDA call of COMMAND (default: 30s)",
          .to = &own.patience_ns,
          .take = ct_take_duration,
          .wrong = CT_DURATION_WRONG },
        { "dry-run", NULL, "inspect COMMAND's file, and do not start it", &own.is_dry },
        { 0 }
    };
    const struct ct_usage usage = {
        .options = options,
        .arguments = "[PID | [--] COMMAND [ARGUMENT…]]",
        .runs_command = true,
        .about =
            "Reports what prevents calls from being traced: on this machine, in a running process, or\n"
            "in a command. COMMAND is started with its input and output on /dev/null. Once a call is\n"
            "recorded, COMMAND and all processes that it started are terminated. Nothing else is changed.\n"
            "Each line begins with\n"
            "\n"
            "  ok    no problem\n"
            "  note  for information\n"
            "  miss  something is not traced, and what to do about it\n",
        .more = "Exit status: 0 if nothing would be missed, 1 if something would, or if PID or COMMAND\n"
                "cannot be inspected, 2 for wrong usage.\n"
                "\n"
                "  cudatrace doctor\n"
                "  cudatrace doctor 4711\n"
                "  cudatrace doctor -- python train.py\n",
    };
    char file[PATH_MAX] = "";
    int first;
    bool is_command;
    int status = parse(argc, argv, usage, &doctor.choice, &first, &is_command);
    if (status != CT_GO_ON)
        return status;
    /* Like `run`, derive the session from the database if no daemon writes it. */
    if (!ct_session_choose(&doctor.choice, argv[0], CT_GUESS_NEAR) && doctor.choice.database &&
        !doctor.choice.session_named) {
        ct_session_derive(&doctor.choice, doctor.choice.database);
        doctor.is_derived = true;
    }
    doctor.session = doctor.choice.session;
    strcpy(doctor.shm_folder, doctor.choice.shm_dir);
    doctor.columns = ct_terminal_width() < COLUMNS_MIN ? 0 : ct_terminal_width();
    status = take_arguments(&doctor, argv + first, is_command, file);
    if (status != CT_GO_ON)
        return status;
    status = examine(&doctor, &own, argv + first, file);
    ct_patient_destroy(doctor.patient);
    ct_elf_names_free(&doctor.driver_functions);
    ct_elf_names_free(&doctor.runtime_functions);
    ct_elf_names_free(&doctor.runtime_versions);
    return status;
}

const struct ct_subcommand ct_subcommand_doctor = {
    "doctor", "report what would not be traced here, in a process or by a command, and why", doctor
};
