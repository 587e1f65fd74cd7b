/* Finds out which process has locked a file, from /proc/locks. Opens no file: closing a descriptor of a
 * database would drop the locks that SQLite holds on it in this process. */
#ifndef CT_LOCK_HOLDER_H
#define CT_LOCK_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_lock_query {
    ino_t inode;
    bool is_flock;        /* a lock of flock(2); otherwise a POSIX lock of another process (fcntl(2)) */
    bool is_exclusive;    /* leave out shared locks */
    uint64_t first, last; /* the bytes of the file that a POSIX lock covers a part of */
};

/* Returns the process that holds such a lock, or 0 if there is none, or if it is in another PID namespace. */
pid_t ct_lock_holder(const struct ct_lock_query *query);

enum { CT_LOCK_HOLDER_BYTES = 96 };
/* Describes a process by its ID, name and user, as in "process 1234 (sqlite3) of user 1000". Leaves out what
 * is unknown. The process chooses its name. Returns whether it is named cudatraced. */
bool ct_lock_holder_describe(pid_t pid, char text[CT_LOCK_HOLDER_BYTES]);

#endif
