/* The mappings of another process, and its bytes, read and written by /proc/PID/mem while its threads run.
 * The process may have chosen any of them. */
#ifndef CT_ATTACH_PROCESS_MEMORY_H
#define CT_ATTACH_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_mapping {
    uint64_t begin, end, offset;
    bool is_readable, is_writable, is_executable;
    const char *path; /* "" for no path; may end in " (deleted)" */
};

struct ct_memory {
    pid_t pid;
    pid_t thread; /* a running thread, by whose number /proc has the memory */
    int fd;       /* /proc/PID/mem; it stays with this memory if the process executes another program */
    struct ct_mapping *mappings; /* by address */
    size_t count;
    char *text; /* holds the paths */
};

/* The bytes from the last address on, for many small reads in the order of their addresses. */
struct ct_memory_window {
    const struct ct_memory *memory;
    uint64_t begin;
    size_t count; /* 0 at first */
    uint8_t bytes[64 << 10];
};

/* 0 or -errno; -ENOENT where the process has no memory. */
int ct_memory_open(struct ct_memory *memory, pid_t pid);
/* A memory that could not be opened is allowed. */
void ct_memory_close(struct ct_memory *memory);
/* Reads once more what is mapped. 0 or -errno. */
int ct_memory_look(struct ct_memory *memory);

/* False unless all bytes could be read, or written. */
bool ct_memory_read(const struct ct_memory *memory, uint64_t address, void *to, size_t bytes);
bool ct_memory_write(const struct ct_memory *memory, uint64_t address, const void *from, size_t bytes);
/* The same, from the window where possible, whose bytes are as old as the read that filled it. */
bool ct_memory_read_near(struct ct_memory_window *window, uint64_t address, void *to, size_t bytes);
/* False once the process has ended, or executes another program. */
bool ct_memory_is_there(const struct ct_memory *memory);
/* The mapping that holds the address; NULL where none does. */
const struct ct_mapping *ct_memory_at(const struct ct_memory *memory, uint64_t address);

#endif
