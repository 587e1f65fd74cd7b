/* A library in the memory of another process. The file is not read: it may be deleted, or have another name
 * in another mount namespace. */
#ifndef CT_ATTACH_IMAGE_H
#define CT_ATTACH_IMAGE_H

#include "process_memory.h"

#include <elf.h>

struct ct_image {
    const struct ct_memory *memory;
    uint64_t begin; /* of its first mapping */
    uint64_t bias;  /* to be added to the image's own addresses */
    Elf64_Phdr *segments;
    size_t segment_count;
    Elf64_Sym *symbols;
    size_t symbol_count;
    uint16_t *versions; /* of the symbols; NULL: none */
    char *strings;      /* a NUL stands behind them */
    size_t strings_bytes;
};

/* Reads the segments, and no symbols, of the image whose file begins at that mapping. 0 or -errno; -ENOEXEC
 * unless it is a library of x86-64. */
int ct_image_open(struct ct_image *image, const struct ct_memory *memory, const struct ct_mapping *first);
/* An image that could not be opened is allowed. */
void ct_image_close(struct ct_image *image);
/* The first image with that soname, of those whose file is named so, else of all, with its symbols. 0 or
 * -errno; -ENOENT where none is mapped. */
int ct_image_find(struct ct_image *image, const struct ct_memory *memory, const char *soname);

/* Name and address of a symbol that is a function and defined here; NULL for another one. */
const char *ct_image_function(const struct ct_image *image, size_t index, uint64_t *address);
/* The address of a function, of its default version where it has several; 0 where there is none. */
uint64_t ct_image_symbol(const struct ct_image *image, const char *name);

enum ct_image_use { CT_IMAGE_NONE, CT_IMAGE_TEXT, CT_IMAGE_DATA };
/* How the image's headers declare that many bytes: as code, as data that stays writable, or neither. */
enum ct_image_use ct_image_use(const struct ct_image *image, uint64_t address, size_t bytes);

#endif
