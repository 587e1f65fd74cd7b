/* A small reader for ELF64 files, used by `cudatrace doctor` and for the programs that `cudatrace run`
 * starts. Nothing in a file is trusted. Each offset, size and index is checked against the file. A file that
 * changes while it is being read causes short reads but no signal. Only regular files are opened, so that no
 * device is opened when a process's mappings are examined. */
#ifndef CT_ELF_READER_H
#define CT_ELF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_elf {
    int fd;
    uint64_t bytes;    /* size of the file */
    bool native;       /* a 64-bit file for this processor; if false, the fields below are not set */
    bool program;      /* an executable, including a position-independent one; false for a shared object */
    char *interpreter; /* NULL: none */
    const char *soname;
    const char **needed; /* the NULL-terminated DT_NEEDED entries; NULL if there is no dynamic segment */

    /* Private to the reader. */
    char *strings;
    uint64_t segments_offset, sections_offset;
    uint32_t segments, sections;
};

/* Returns 0, -ENOEXEC for a file that is not ELF (`elf` is then closed), or another -errno. */
int ct_elf_open(struct ct_elf *elf, const char *path);
/* May be called after a failed ct_elf_open(). */
void ct_elf_close(struct ct_elf *elf);

/* A list of names, sorted by strcmp(), without duplicates. */
struct ct_elf_names {
    const char **name;
    size_t count;
    char *text; /* holds the names */
};
/* Collects the exported functions for which `wanted` returns true. Returns 0 or -errno, which is -ENODATA if
 * the file has no symbol table. The caller may free the names even after an error. */
int ct_elf_functions(const struct ct_elf *elf, bool (*wanted)(const char *name), struct ct_elf_names *names);
/* A callback for exported functions. `offset` is the function's file offset, or UINT64_MAX for an indirect
 * function. */
typedef void ct_elf_taker(const char *name, uint64_t offset, void *data);
/* Calls `take` for each function that the file exports. *text holds the names and is freed by the caller.
 * Returns 0 or -errno, which is -ENODATA if the file has no symbol table. */
int ct_elf_each_function(const struct ct_elf *elf, ct_elf_taker *take, void *data, char **text);
/* Reads `bytes` bytes at the offset. Returns false if the file ends too early. */
bool ct_elf_read(const struct ct_elf *elf, void *to, size_t bytes, uint64_t offset);
/* Collects the symbol versions that the file defines, except the base version with the file's own name.
 * Returns 0 or -errno. */
int ct_elf_versions(const struct ct_elf *elf, struct ct_elf_names *names);
bool ct_elf_names_have(const struct ct_elf_names *names, const char *name);
void ct_elf_names_free(struct ct_elf_names *names);

/* Reads a note's description, which must be exactly `bytes` bytes long. Returns 0 or -errno, which is
 * -ENODATA if there is no such note. */
int ct_elf_note(const struct ct_elf *elf, const char *owner, uint32_t type, void *description, size_t bytes);
/* Reads a note that holds NUL-terminated names sorted by strcmp(). The caller may free the names even after
 * an error. */
int ct_elf_note_names(const struct ct_elf *elf, const char *owner, uint32_t type, size_t bytes,
                      struct ct_elf_names *names);

#endif
