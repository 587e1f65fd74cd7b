#include "log.h"

#include "clock.h"
#include "own_file.h"
#include "own_path.h"
#include "utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TEXT_BYTES = 6000, MINUTE_S = 60, LAST_WORDS_BYTES = 4096 + 512 };
#define MINUTE_NS (UINT64_C(1000000000) * MINUTE_S)

static const struct {
    const char *name;
    char journal; /* see sd-daemon(3) */
} levels[CT_LOG_LEVELS] = {
    [CT_LOG_ERROR] = { "error", '3' },   [CT_LOG_WARNING] = { "warning", '4' },
    [CT_LOG_NOTICE] = { "notice", '5' }, [CT_LOG_INFO] = { "info", '6' },
    [CT_LOG_DEBUG] = { "debug", '7' },
};

static const struct {
    const char *name;
    enum ct_log_level level;
    uint32_t burst;
} kinds[CT_LOG_KINDS] = {
#define KIND(name, level, burst) { #name, CT_LOG_##level, burst },
#include "log.def"
#undef KIND
};

static struct {
    pthread_mutex_t lock;
    const char *path;
    _Atomic enum ct_log_level level; /* read without the lock */
    char stamp[CT_LOG_STAMP_BYTES];  /* set by ct_log_catch_up() */
    struct {
        uint64_t since_ns; /* time of the first line in the current minute */
        uint32_t said, suppressed;
    } minute[CT_LOG_KINDS];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .level = CT_LOG_NOTICE };

void ct_log_to(const char *path)
{
    pthread_mutex_lock(&state.lock);
    state.path = path;
    pthread_mutex_unlock(&state.lock);
}

void ct_log_stamp(char stamp[CT_LOG_STAMP_BYTES])
{
    const time_t now = time(NULL);
    struct tm local;
    strftime(stamp, CT_LOG_STAMP_BYTES, "%Y-%m-%d %H:%M:%S", localtime_r(&now, &local));
}

void ct_log_set_level(enum ct_log_level level)
{
    state.level = level;
}

bool ct_log_parse_level(const char *name, enum ct_log_level *level)
{
    for (size_t i = 0; i < CT_LOG_LEVELS; i++) {
        if (strcmp(levels[i].name, name) == 0) {
            *level = (enum ct_log_level)i;
            return true;
        }
    }
    return false;
}

const char *ct_log_quote(char quoted[CT_LOG_NAME_BYTES], const char *name)
{
    size_t n = 0;
    quoted[n++] = '"';
    for (; *name && n + 4 < CT_LOG_NAME_BYTES; name++) {
        if (*name == '"' || *name == '\\')
            quoted[n++] = '\\';
        quoted[n++] = *name;
    }
    quoted[n++] = '"';
    quoted[n] = '\0';
    return quoted;
}

void ct_log_printable(const char *text, char *out, size_t bytes)
{
    size_t n = 0;
    for (size_t left = strlen(text); left > 0 && n + 5 < bytes;) {
        uint32_t point;
        const size_t letter = ct_utf8_next(text, left, &point);
        const bool plain = letter > 0 && !ct_utf8_steers(point);
        const size_t taken = plain ? letter : 1;
        if (plain)
            memcpy(out + n, text, letter);
        n += plain ? letter : (size_t)snprintf(out + n, bytes - n, "\\x%02x", (unsigned char)*text);
        text += taken;
        left -= taken;
    }
    out[n] = '\0';
}

/* systemd sets JOURNAL_STREAM to the device and inode of its stream. If standard error was redirected, its
 * device and inode differ from those in JOURNAL_STREAM. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat status;
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

static void write_line(enum ct_log_level level, const char *text)
{
    char line[TEXT_BYTES + 100], stamp[CT_LOG_STAMP_BYTES];
    int length;
    if (!state.path && is_journal()) {
        length = snprintf(line, sizeof(line), "<%c>%s\n", levels[level].journal, text);
    } else {
        ct_log_stamp(stamp);
        length = snprintf(line, sizeof(line), "%s cudatraced[%d]: %s: %s\n", stamp, (int)getpid(),
                          levels[level].name, text);
    }
    int fd = STDERR_FILENO;
    if (state.path)
        fd = ct_own_path_open(
            state.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    char problem[TEXT_BYTES];
    if (state.path && fd >= 0 &&
        (ct_own_file_check(fd, state.path, problem, sizeof(problem)) != 0 || fchmod(fd, 0600) != 0)) {
        close(fd);
        fd = -1;
    }
    /* If the write fails, the line is lost. */
    if (fd < 0 || write(fd, line, (size_t)length) < 0)
        length = 0;
    if (state.path && fd >= 0)
        close(fd);
}

static void end_minute(size_t kind)
{
    if (state.minute[kind].suppressed) {
        char text[128];
        snprintf(text, sizeof(text), "%u similar messages suppressed (%s)", state.minute[kind].suppressed,
                 kinds[kind].name);
        write_line(kinds[kind].level, text);
    }
    state.minute[kind].said = state.minute[kind].suppressed = 0;
}

static size_t append(char *line, size_t used, const char *text)
{
    while (*text && used + 1 < LAST_WORDS_BYTES)
        line[used++] = *text++;
    line[used] = '\0';
    return used;
}

static size_t append_number(char *line, size_t used, unsigned number)
{
    char digits[16], *at = digits + sizeof(digits) - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    return append(line, used, at);
}

void ct_log_last_words(const char *text)
{
    char line[LAST_WORDS_BYTES];
    struct stat status;
    size_t used = append(line, 0, state.stamp);
    used = append(line, used, " cudatraced[");
    used = append_number(line, used, (unsigned)getpid());
    used = append(line, used, "]: error: ");
    used = append(line, used, text);
    used = append(line, used, "\n");
    const int fd =
        state.path
            ? ct_own_path_open(state.path,
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                               0600)
            : STDERR_FILENO;
    /* Make the same checks as ct_own_file_check(), which formats a message and therefore must not be called
     * here. */
    const bool is_own = !state.path || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                                        status.st_uid == geteuid() && status.st_nlink == 1);
    if (is_own && write(fd, line, used) < 0)
        return;
}

void ct_log_catch_up(uint64_t now_ns)
{
    char stamp[CT_LOG_STAMP_BYTES];
    ct_log_stamp(stamp);
    pthread_mutex_lock(&state.lock);
    memcpy(state.stamp, stamp, sizeof(stamp));
    for (size_t kind = 0; kind < CT_LOG_KINDS; kind++) {
        if (now_ns - state.minute[kind].since_ns >= MINUTE_NS)
            end_minute(kind);
    }
    pthread_mutex_unlock(&state.lock);
}

void ct_log(enum ct_log_kind kind, const char *format, ...)
{
    char text[TEXT_BYTES], line[TEXT_BYTES];
    const int error = errno; /* preserve errno for the caller's error handling */
    if (kinds[kind].level > state.level)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    ct_log_printable(text, line, sizeof(line));
    pthread_mutex_lock(&state.lock);
    const uint64_t now_ns = ct_monotonic_ns();
    if (now_ns - state.minute[kind].since_ns >= MINUTE_NS)
        end_minute(kind);
    if (state.minute[kind].said == 0)
        state.minute[kind].since_ns = now_ns;
    if (state.minute[kind].said < kinds[kind].burst) {
        state.minute[kind].said++;
        write_line(kinds[kind].level, line);
    } else {
        state.minute[kind].suppressed++;
    }
    pthread_mutex_unlock(&state.lock);
    errno = error;
}
