/* Reads a library's ELF image from the memory of another process. The file itself is not read, because it may
 * be deleted, or may have a different path in another mount namespace. */
#ifndef CT_ATTACH_IMAGE_H
#define CT_ATTACH_IMAGE_H

#include "process_memory.h"

#include <elf.h>

struct ct_image {
    const struct ct_memory *memory;
    uint64_t begin; /* address of its first mapping */
    uint64_t bias;  /* offset to add to addresses in the image */
    Elf64_Phdr *segments;
    size_t segment_count;
    Elf64_Sym *symbols;
    size_t symbol_count;
    uint16_t *versions; /* the symbols' versions; NULL if there are none */
    char *strings;      /* followed by a NUL */
    size_t strings_bytes;
};

/* Reads the segments, but not the symbols, of the image whose first mapping is `first`. Returns 0 or -errno,
 * which is -ENOEXEC if the image is not an x86-64 library. */
int ct_image_open(struct ct_image *image, const struct ct_memory *memory, const struct ct_mapping *first);
/* May be called after a failed ct_image_open(). */
void ct_image_close(struct ct_image *image);
/* Finds the first image with the given soname and reads its symbols. Examines files with a matching name
 * first, and then all other files. Returns 0 or -errno, which is -ENOENT if no such image is mapped. */
int ct_image_find(struct ct_image *image, const struct ct_memory *memory, const char *soname);

/* If a symbol is a function defined in the image, sets its address and returns its name. Returns NULL for
 * other symbols. */
const char *ct_image_function(const struct ct_image *image, size_t index, uint64_t *address);
/* Returns a function's address, or 0 if the image does not define it. If there are several versions, the
 * default version is used. */
uint64_t ct_image_symbol(const struct ct_image *image, const char *name);

/* Returns an object's address, and sets its size, or returns 0 if the image does not define it. */
uint64_t ct_image_object(const struct ct_image *image, const char *name, size_t *bytes);

/* Returns the address of a function as the image itself calls it, after the loader has bound the call.
 * Another image may define the function. Returns 0 if the image does not call it. */
uint64_t ct_image_binding(const struct ct_image *image, const char *name);

enum ct_image_use { CT_IMAGE_NONE, CT_IMAGE_TEXT, CT_IMAGE_DATA };
/* Returns how the image's headers declare these bytes: as code, as data that stays writable, or as
 * neither. */
enum ct_image_use ct_image_use(const struct ct_image *image, uint64_t address, size_t bytes);

#endif
