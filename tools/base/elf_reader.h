/* A small reader of ELF64 files, for `cudatrace doctor` and for what `cudatrace run` is to start. Nothing in
 * a file is trusted: each offset, size and index is checked against the file, and a file that changes under
 * the reader gives short reads and no signal. Only regular files are opened, so that looking at a process's
 * mappings opens no device. */
#ifndef CT_ELF_READER_H
#define CT_ELF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ct_elf {
    int fd;
    uint64_t bytes;    /* size of the file */
    bool native;       /* 64 bits, of this processor: without it nothing below is known */
    bool program;      /* an executable, also a position-independent one; false for a shared object */
    char *interpreter; /* NULL: none */
    const char *soname;
    const char **needed; /* DT_NEEDED, ended by NULL; NULL: no dynamic segment */

    /* The reader's own. */
    char *strings;
    uint64_t segments_offset, sections_offset;
    uint32_t segments, sections;
};

/* 0, -ENOEXEC for what is no ELF file (then `elf` is closed), or another -errno. */
int ct_elf_open(struct ct_elf *elf, const char *path);
/* Also for one that could not be opened. */
void ct_elf_close(struct ct_elf *elf);

/* Names, sorted as strcmp sorts, each once. */
struct ct_elf_names {
    const char **name;
    size_t count;
    char *text; /* holds the names */
};
/* The functions that the file exports and `wanted` wants. 0, or -errno; -ENODATA without a symbol table. The
 * names may be freed either way. */
int ct_elf_functions(const struct ct_elf *elf, bool (*wanted)(const char *name), struct ct_elf_names *names);
/* `offset`: of the function in the file; UINT64_MAX if it is an indirect function. */
typedef void ct_elf_taker(const char *name, uint64_t offset, void *data);
/* Calls `take` for each function that the file exports. *text holds the names, and the caller frees it.
 * Returns 0 or -errno; -ENODATA without a symbol table. */
int ct_elf_each_function(const struct ct_elf *elf, ct_elf_taker *take, void *data, char **text);
/* Reads `bytes` bytes at the offset. Returns false if the file ends before. */
bool ct_elf_read(const struct ct_elf *elf, void *to, size_t bytes, uint64_t offset);
/* The versions that its symbols have, without the file's own name. 0 or -errno. */
int ct_elf_versions(const struct ct_elf *elf, struct ct_elf_names *names);
bool ct_elf_names_have(const struct ct_elf_names *names, const char *name);
void ct_elf_names_free(struct ct_elf_names *names);

/* The description of a note, all of whose `bytes` it must have. 0, or -errno; -ENODATA when there is none. */
int ct_elf_note(const struct ct_elf *elf, const char *owner, uint32_t type, void *description, size_t bytes);
/* The same for one that holds names, each with its NUL, in the order of strcmp. The names may be freed either
 * way. */
int ct_elf_note_names(const struct ct_elf *elf, const char *owner, uint32_t type, size_t bytes,
                      struct ct_elf_names *names);

#endif
