/* The mappings of another process, and its bytes, which are read and written through /proc/PID/mem while its
 * threads run. The process controls all of them. */
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
    pid_t thread; /* a running thread, whose files in /proc/TID show the memory */
    int fd;       /* /proc/PID/mem; it stays with this memory if the process executes another program */
    struct ct_mapping *mappings; /* sorted by address */
    size_t count;
    char *text; /* holds the paths */
};

/* A buffer for many small reads in the order of their addresses. It holds the bytes from the last address
 * that was read from the process. */
struct ct_memory_window {
    const struct ct_memory *memory;
    uint64_t begin;
    size_t count; /* 0 at first */
    uint8_t bytes[64 << 10];
};

/* Returns 0 or -errno, which is -ENOENT if the process has no memory. */
int ct_memory_open(struct ct_memory *memory, pid_t pid);
/* May be called after a failed ct_memory_open(). */
void ct_memory_close(struct ct_memory *memory);
/* Reads the list of mappings again. Returns 0 or -errno. */
int ct_memory_look(struct ct_memory *memory);

/* Return false unless all bytes could be read, or written. */
bool ct_memory_read(const struct ct_memory *memory, uint64_t address, void *to, size_t bytes);
bool ct_memory_write(const struct ct_memory *memory, uint64_t address, const void *from, size_t bytes);
/* Reads from the window if possible. Its bytes are as old as the read that filled it. */
bool ct_memory_read_near(struct ct_memory_window *window, uint64_t address, void *to, size_t bytes);
/* Returns false once the process has ended, or executes another program. */
bool ct_memory_is_there(const struct ct_memory *memory);
/* Returns the mapping that holds the address, or NULL if there is none. */
const struct ct_mapping *ct_memory_at(const struct ct_memory *memory, uint64_t address);

#endif
