/* cudatrace doctor: what would be missed on this machine, in a process, or of a command, and why. */
#include "doctor.h"

#include "preloadable.h"
#include "session_names.h"
#include "sessions.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char help[] =
    "Usage: cudatrace doctor [--db FILE] [--session NAME] [--shm-dir DIR]\n"
    "                        [PID | [--] COMMAND [ARGUMENT…]]\n"
    "\n"
    "Says what would keep calls out of a trace: on this machine, in a process that runs, or\n"
    "in a command, which is not run. Nothing is changed. Each line begins with\n"
    "\n"
    "  ok    it is as it should be\n"
    "  note  it is worth knowing\n"
    "  miss  something is not traced, and what to do about it\n"
    "\n"
    "  --db FILE       the database that is to be written (default: ./trace.db, or what the\n"
    "                  session's daemon writes)\n"
    "  --session NAME  which daemon (default: the process's own, $CUDATRACE_SESSION, or\n"
    "                  default)\n" CT_SHM_DIR_HELP "\n"
    "Exit status: 0 when nothing would be missed, 1 when something would or PID or COMMAND\n"
    "cannot be looked at, 2 for wrong usage.\n"
    "\n"
    "  cudatrace doctor\n"
    "  cudatrace doctor 4711\n"
    "  cudatrace doctor -- python train.py\n";

/* ---- output ---- */

enum { SUBJECT_COLUMN = 8, TEXT_COLUMN = 20, COLUMNS_MIN = 60 };

/* Columns that a UTF-8 text takes; what we say is made of letters of one column. */
static int width_of(const char *text, size_t bytes)
{
    int width = 0;
    for (size_t i = 0; i < bytes; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* Paths and command lines are other people's bytes: all that is said goes through ct_printable_format(). */

void ct_doctor_head(const char *format, ...)
{
    static bool more;
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    va_end(arguments);
    printf("%s%s\n", more ? "\n" : "", text ? text : "out of memory");
    free(text);
    more = true;
}

static void print_broken(const char *text, int columns)
{
    int at = TEXT_COLUMN;
    while (*text) {
        const size_t length = strcspn(text, " ");
        const int width = width_of(text, length);
        if (columns && at > TEXT_COLUMN && at + 1 + width > columns) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = TEXT_COLUMN;
        } else if (at > TEXT_COLUMN) {
            putchar(' ');
            at++;
        }
        fwrite(text, 1, length, stdout);
        at += width;
        text += length;
        text += *text == ' ';
    }
    putchar('\n');
}

void ct_doctor_say(struct ct_doctor *doctor, enum ct_verdict verdict, const char *subject, const char *format,
                   ...)
{
    static const char *const words[] = { "ok", "note", "miss" };
    va_list arguments;
    va_start(arguments, format);
    char *text = ct_printable_format(format, arguments);
    va_end(arguments);
    printf("  %-*s%-*s ", SUBJECT_COLUMN - 2, words[verdict], TEXT_COLUMN - SUBJECT_COLUMN - 1, subject);
    print_broken(text ? text : "out of memory", doctor->columns);
    free(text);
    doctor->misses += verdict == CT_VERDICT_MISS;
}

const char *ct_doctor_size(char text[32], uint64_t bytes)
{
    static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    const bool whole = value >= 100 || value - (double)(uint64_t)value < 0.05;
    snprintf(text, 32, "%.*f %s", whole ? 0 : 1, value, units[unit]);
    return text;
}

/* ---- a command ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* What the program asks the loader for: the driver, the runtime. */
static void say_needed(struct ct_doctor *doctor, const char *file)
{
    struct ct_elf elf;
    bool driver = false, runtime = false;
    if (ct_elf_open(&elf, file) != 0 || !elf.native) {
        ct_elf_close(&elf);
        return;
    }
    for (const char **needed = elf.needed; *needed; needed++) {
        if (strcmp(*needed, "libcuda.so.1") == 0)
            driver = true;
        if (strncmp(*needed, "libcudart.so.", strlen("libcudart.so.")) == 0) {
            runtime = true;
            ct_doctor_runtime(doctor, base_of(file), *needed);
        }
    }
    if (driver)
        ct_doctor_say(doctor, doctor->driver_path[0] ? CT_VERDICT_OK : CT_VERDICT_NOTE, "way in",
                      "linked with libcuda.so.1%s",
                      doctor->driver_path[0] ? "" : ", which the loader does not find: it will not start");
    else
        ct_doctor_say(doctor, CT_VERDICT_OK, "way in", "%s",
                      runtime ? "the runtime loads the driver and asks it for its functions"
                              : "loads CUDA when it runs, if at all: dlsym and cuGetProcAddress are seen");
    ct_elf_close(&elf);
}

/* `file` is what ct_program_find() found. */
static void say_command(struct ct_doctor *doctor, char **argv, char *file)
{
    ct_doctor_head("Command %s", argv[0]);
    char named[PATH_MAX];
    memcpy(named, file, sizeof(named));
    const bool script = ct_program_follow(file);
    const enum ct_program program = ct_program_judge(file);
    if (script)
        ct_doctor_say(doctor, CT_VERDICT_OK, "script", "%s is read by %s", named, file);
    struct ct_elf elf;
    const int error = ct_elf_open(&elf, file);
    ct_elf_close(&elf);
    if (program != CT_PROGRAM_UNKNOWN)
        ct_doctor_say(doctor, CT_VERDICT_MISS, "program", "%s %s", file, ct_program_why(program));
    else if (error)
        ct_doctor_say(doctor, CT_VERDICT_NOTE, "program",
                      "%s cannot be read (%s): nothing more is known of it", file,
                      error == -ENOEXEC ? "no ELF file" : strerror(-error));
    else
        ct_doctor_say(doctor, CT_VERDICT_OK, "program",
                      "%s takes LD_PRELOAD, and passes it to what it starts", file);
    if (program == CT_PROGRAM_UNKNOWN && !error)
        say_needed(doctor, file);
    const char *preload = getenv("LD_PRELOAD");
    if (preload && *preload && !strstr(preload, "libcudatrace.so"))
        ct_doctor_say(doctor, CT_VERDICT_OK, "LD_PRELOAD", "%s: run puts the hook before it", preload);
}

/* ---- the command ---- */

static bool is_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static int columns_of_output(void)
{
    struct winsize size;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < COLUMNS_MIN)
        return 0;
    return size.ws_col;
}

static int examine(struct ct_doctor *doctor, char **argv, char *file)
{
    ct_doctor_machine(doctor);
    ct_doctor_session(doctor);
    if (doctor->patient)
        ct_doctor_process(doctor);
    else if (argv[0])
        say_command(doctor, argv, file);
    if (doctor->patient || argv[0])
        ct_doctor_say(doctor, CT_VERDICT_NOTE, "not seen",
                      "never traced, and not to be told from outside: libraries loaded with RTLD_DEEPBIND or "
                      "dlmopen, functions looked up with dlvsym");
    if (doctor->misses)
        ct_doctor_head("%u %s of something that is not traced.", doctor->misses,
                       doctor->misses == 1 ? "line tells" : "lines tell");
    else
        ct_doctor_head("Nothing would be missed.");
    return doctor->misses ? EXIT_FAILURE : EXIT_SUCCESS;
}

int ct_doctor(int argc, char **argv)
{
    struct ct_doctor doctor = { .uid = ct_session_uid() };
    char file[PATH_MAX] = "";
    bool done;
    int status;
    const int first = ct_options_parse(argc, argv, NULL, help, &doctor.options, NULL, NULL, &done, &status);
    if (done)
        return status;
    ct_session_choose(&doctor.options, argv[0], CT_GUESS_NEAR);
    doctor.session = doctor.options.session;
    doctor.columns = columns_of_output();
    const bool named = first > 1 && strcmp(argv[first - 1], "--") == 0;
    if (first < argc && !named && is_number(argv[first])) {
        if (argc > first + 1)
            return ct_fail(EXIT_USAGE, "doctor: one process at a time (see cudatrace doctor --help)");
        errno = 0;
        const long pid = strtol(argv[first], NULL, 10);
        if (errno || pid < 1 || pid > INT_MAX)
            return ct_fail(EXIT_USAGE, "doctor: %s is no process number", argv[first]);
        doctor.patient = ct_patient_create(&doctor, (pid_t)pid);
        if (!doctor.patient)
            return EXIT_FAILURE;
    } else if (first < argc && !ct_program_find(argv[first], file)) {
        return ct_fail(EXIT_FAILURE, "doctor: %s: there is no such program, or it may not be run",
                       argv[first]);
    } else if (named && first == argc) {
        return ct_fail(EXIT_USAGE, "doctor: no command behind -- (see cudatrace doctor --help)");
    }
    status = examine(&doctor, argv + first, file);
    ct_patient_destroy(doctor.patient);
    ct_elf_names_free(&doctor.driver_functions);
    ct_elf_names_free(&doctor.runtime_functions);
    ct_elf_names_free(&doctor.runtime_versions);
    return status;
}
