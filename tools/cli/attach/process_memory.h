/* Lists the mappings of another process, and accesses its memory through /proc/PID/mem while its threads run.
 * The process controls the mappings and the memory, so neither can be trusted.
 *
 * The memory belongs to one program. When the process executes another program, the memory usually
 * disappears, but a child made with CLONE_VM keeps it. Then only the identity of the program shows that the
 * process's threads use other memory. The identity consists of the auxiliary vector, which the kernel keeps,
 * and of the random bytes that execve() has put into the memory. */
#ifndef CT_ATTACH_PROCESS_MEMORY_H
#define CT_ATTACH_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_mapping {
    uint64_t begin, end, offset;
    bool is_readable, is_writable, is_executable;
    const char *path; /* "" if there is no path; may end in " (deleted)" */
};

enum { CT_PROGRAM_WORDS = 128 };

struct ct_memory {
    pid_t pid;
    pid_t thread;         /* a live thread, through whose /proc/PID/task/TID the memory is accessed */
    int process;          /* a pidfd, which keeps the pid from being mistaken for another process's; -1 before
                           * Linux 5.3 */
    uint64_t start_ticks; /* when the process started */
    uint64_t program[CT_PROGRAM_WORDS]; /* the auxiliary vector */
    int fd;                      /* /proc/PID/mem; still refers to this memory after the process calls exec */
    struct ct_mapping *mappings; /* sorted by address */
    size_t count;
    char *text; /* holds the paths */
};

/* A read-ahead buffer for many small reads in ascending address order. */
struct ct_memory_window {
    const struct ct_memory *memory;
    uint64_t begin;
    size_t count; /* 0 at first */
    uint8_t bytes[64 << 10];
};

/* Opens a process's memory. Returns 0 or -errno, which is -ENOENT if the process has no memory. */
int ct_memory_open(struct ct_memory *memory, pid_t pid);
/* May be called after a failed ct_memory_open(). */
void ct_memory_close(struct ct_memory *memory);
/* Re-reads the list of mappings. Returns 0 or -errno. */
int ct_memory_look(struct ct_memory *memory);

/* Read and write the process's memory. Return false unless all bytes were read or written. */
bool ct_memory_read(const struct ct_memory *memory, uint64_t address, void *to, size_t bytes);
bool ct_memory_write(const struct ct_memory *memory, uint64_t address, const void *from, size_t bytes);
/* Reads through the window. Bytes already in the window may be out of date. */
bool ct_memory_read_near(struct ct_memory_window *window, uint64_t address, void *to, size_t bytes);
/* Returns false once the process has exited or has executed another program. */
bool ct_memory_is_there(const struct ct_memory *memory);
/* Returns whether a thread, which must be stopped, belongs to the process and uses this memory. If so,
 * further accesses use the thread's own memory, so that they cannot reach any other. */
bool ct_memory_take_from(const struct ct_memory *memory, pid_t thread);
/* Returns another process that uses the memory (clone() with CLONE_VM, or vfork()), or 0. */
pid_t ct_memory_sharer(const struct ct_memory *memory);
/* Returns whether a thread executes the program's code. A first thread that has exited stays listed until all
 * other threads have exited. Threads that the kernel runs for the process (io_uring, vhost) never execute it.
 */
bool ct_thread_runs_code(pid_t pid, pid_t thread);
/* Returns the thread's seccomp mode, or 0 if it has none or has exited. */
int ct_thread_filter_mode(pid_t pid, pid_t thread);
/* Returns the mapping that contains the address, or NULL if there is none. */
const struct ct_mapping *ct_memory_at(const struct ct_memory *memory, uint64_t address);

#endif
