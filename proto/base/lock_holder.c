#include "lock_holder.h"

#include "proc_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The last byte of a lock is a number or "EOF". Locks that a process waits for have an arrow before their
 * kind, and are left out. */
static pid_t holder_in(const char *line, const struct ct_lock_query *query)
{
    int pid;
    char kind[16], mode[16], last[24];
    unsigned long long inode, first;
    if (sscanf(line, "%*d: %15s %*s %15s %d %*x:%*x:%llu %llu %23s", kind, mode, &pid, &inode, &first,
               last) != 6)
        return 0;
    const bool is_kind = strcmp(kind, query->is_flock ? "FLOCK" : "POSIX") == 0 && inode == query->inode &&
                         (!query->is_exclusive || strcmp(mode, "WRITE") == 0);
    if (!is_kind || pid <= 0 || query->is_flock)
        return is_kind && pid > 0 ? pid : 0;
    const uint64_t end = strcmp(last, "EOF") == 0 ? UINT64_MAX : strtoull(last, NULL, 10);
    return pid != getpid() && first <= query->last && end >= query->first ? pid : 0;
}

static pid_t listed_holder(const struct ct_lock_query *query)
{
    FILE *locks = fopen("/proc/locks", "re");
    char line[256];
    pid_t holder = 0;
    while (locks && !holder && fgets(line, sizeof(line), locks))
        holder = holder_in(line, query);
    if (locks)
        fclose(locks);
    return holder;
}

/* The kernel delivers the list of locks one page at a time, and continues by position. If a lock disappears
 * between two pages, another lock can be missed, so a failed search is repeated. */
pid_t ct_lock_holder(const struct ct_lock_query *query)
{
    enum { LOOKS = 4 };
    pid_t holder = 0;
    for (int look = 0; look < LOOKS && !holder; look++)
        holder = listed_holder(query);
    return holder;
}

bool ct_lock_holder_describe(pid_t pid, char text[CT_LOCK_HOLDER_BYTES])
{
    char name[32] = "", user[32] = "";
    struct ct_proc_status status;
    if (ct_proc_read(pid, "comm", name, sizeof(name)) != 0)
        *name = '\0';
    name[strcspn(name, "\n")] = '\0';
    /* The text becomes a part of lines that other programs read. */
    for (char *at = name; *at; at++) {
        if (*at < ' ' || *at > '~' || *at == '\'')
            *at = '?';
    }
    if (ct_proc_status(pid, &status) == 0)
        snprintf(user, sizeof(user), " of user %u", status.effective);
    snprintf(text, CT_LOCK_HOLDER_BYTES, "process %d%s%s%s%s", (int)pid, *name ? " (" : "", name,
             *name ? ")" : "", user);
    return strcmp(name, "cudatraced") == 0;
}
