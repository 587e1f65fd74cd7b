#include "cut_guard.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The signal handler walks the list of guards while other threads add and remove guards. Entries are inserted
 * only at the head, and are reused but never freed, so every pointer in the list stays valid. */
static struct ct_guard *_Atomic guards;
static struct ct_guard *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while `unused` or `guards` is changed */

static bool put_zeros(uintptr_t from, size_t bytes)
{
    return mmap((void *)from, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* ---- last words, async-signal-safe ---- */

enum { WORDS_BYTES = PATH_MAX + 256 };

static const char *hexadecimal(const char *at, uintptr_t *value)
{
    for (*value = 0; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
        *value = *value << 4 | (uintptr_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return at;
}

/* Returns the path in a line of /proc/self/maps, "BEGIN-END MODE OFFSET DEVICE INODE PATH", if its range
 * contains the address. Otherwise returns NULL. */
static const char *path_of(const char *line, uintptr_t address)
{
    uintptr_t begin, end;
    const char *at = hexadecimal(line, &begin);
    hexadecimal(at + (*at == '-'), &end);
    return address >= begin && address < end ? strchr(line, '/') : NULL;
}

/* Reads a line without its newline, and truncates it if it does not fit. Returns false at the end of the
 * file. */
static bool next_line(int fd, char line[PATH_MAX])
{
    size_t used = 0;
    char letter;
    while (read(fd, &letter, 1) == 1 && letter != '\n') {
        if (used + 1 < PATH_MAX)
            line[used++] = letter;
    }
    line[used] = '\0';
    return used > 0;
}

static void add(char words[WORDS_BYTES], const char *text)
{
    strncat(words, text, WORDS_BYTES - 1 - strlen(words));
}

static void say_last_words(uintptr_t address)
{
    char line[PATH_MAX], words[WORDS_BYTES] = "";
    const char *path = NULL;
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !path && next_line(fd, line))
        path = path_of(line, address);
    add(words, "killed by SIGBUS: ");
    add(words, path ? path : "a page of memory");
    add(words, path ? " was truncated or cannot be read; start the daemon again to continue the trace"
                    : " cannot be read");
    ct_log_last_words(words);
}

/* ---- guards ---- */

/* Maps zeros over the missing page and all pages after it, which are missing as well. Covers all of these
 * pages with a single mapping. With one mapping per page, a few truncated files could exhaust the limit on
 * mappings per process. If the process cannot have another mapping, replaces the whole guarded range with
 * zeros. */
static void handle(int number, siginfo_t *info, void *context)
{
    (void)context;
    const int error = errno;
    const uintptr_t fault = (uintptr_t)info->si_addr;
    for (struct ct_guard *guard = atomic_load(&guards); guard; guard = guard->next) {
        const uintptr_t begin = atomic_load(&guard->begin);
        const size_t bytes = atomic_load(&guard->bytes);
        /* Re-read `begin`: if another thread has just reused the guard, `begin` and `bytes` may belong to
         * different ranges. */
        if (begin == 0 || fault < begin || fault - begin >= bytes || atomic_load(&guard->begin) != begin)
            continue;
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = fault & ~(page - 1);
        if (put_zeros(from, begin + bytes - from) || put_zeros(begin, bytes)) {
            atomic_store(&guard->poisoned, true);
            errno = error;
            return;
        }
    }
    /* The faulting address is outside all guarded ranges, so let the signal take its default action, as if
     * there were no handler. If another process sent the signal, there is no faulting address to report. */
    if (info->si_code > 0)
        say_last_words(fault);
    signal(number, SIG_DFL);
    raise(number);
}

void ct_guard_install(void)
{
    ct_log_catch_up(0); /* sets the timestamp for ct_log_last_words() */
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

struct ct_guard *ct_guard_add(void *map, size_t bytes)
{
    pthread_mutex_lock(&lock);
    struct ct_guard *guard = unused;
    if (guard) {
        unused = guard->next_free;
    } else if ((guard = calloc(1, sizeof(*guard))) != NULL) {
        guard->next = atomic_load(&guards);
        atomic_store(&guards, guard);
    }
    if (guard) {
        atomic_store(&guard->poisoned, false);
        atomic_store(&guard->bytes, bytes);
        atomic_store(&guard->begin, (uintptr_t)map);
    }
    pthread_mutex_unlock(&lock);
    return guard;
}

void ct_guard_remove(struct ct_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&guard->begin, 0);
    guard->next_free = unused;
    unused = guard;
    pthread_mutex_unlock(&lock);
}
