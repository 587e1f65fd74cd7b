/* Access to the traced program's memory. The hook runs in the program and reads its memory directly.
 * cudatrace-probe runs outside the program. Its decoders are compiled with CT_DECODE_REMOTE: they read memory
 * through probe/writer/target_memory.c, where every read may fail. */
#ifndef CT_TARGET_ACCESS_H
#define CT_TARGET_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Results of a query for a kernel's name. */
enum ct_name_query {
    CT_NAME_NONE,  /* the driver cannot be queried */
    CT_NAME_LATER, /* the driver cannot be queried in this call, but perhaps in the kernel's next launch */
    CT_NAME_QUERIED,
};

#ifdef CT_DECODE_REMOTE

/* Copies `bytes` bytes from the address to `to`. Returns false if the memory cannot be read. */
bool ct_target_read(uint64_t address, void *to, size_t bytes);
/* Returns the string at the address, or NULL if it cannot be read. The string is valid until the next
 * call. */
const char *ct_target_text(uint64_t address);
/* Returns a copy of the `bytes` bytes at the address, or NULL if they cannot be read. The copy is valid until
 * the next call. */
const void *ct_target_block(uint64_t address, uint64_t bytes);
/* Sets *bytes to the length of the string at the address, or to `most` if it is longer. Returns false if the
 * string cannot be read. */
bool ct_target_text_bytes(uint64_t address, uint64_t most, uint64_t *bytes);
/* Sets *bytes to the size of the file that the program would open at the path. Returns false if there is no
 * such file. */
bool ct_target_file_bytes(uint64_t path, uint64_t *bytes);
/* The probe cannot call the program's driver. */
static inline enum ct_name_query ct_target_kernel_name(uint64_t kernel, const char **name)
{
    (void)kernel;
    (void)name;
    return CT_NAME_NONE;
}

#else

static inline bool ct_target_read(uint64_t address, void *to, size_t bytes)
{
    memcpy(to, (const void *)address, bytes);
    return true;
}

static inline const char *ct_target_text(uint64_t address)
{
    return (const char *)address;
}

static inline const void *ct_target_block(uint64_t address, uint64_t bytes)
{
    (void)bytes;
    return (const void *)address;
}

static inline bool ct_target_text_bytes(uint64_t address, uint64_t most, uint64_t *bytes)
{
    *bytes = strnlen((const char *)address, most);
    return true;
}

/* Sets *bytes to the size of the file. Returns false if there is no such file. Not a cancellation point. */
bool ct_target_file_bytes(uint64_t path, uint64_t *bytes);
/* Queries the driver for the name of a kernel that the calling thread has just launched. Sets *name to a
 * string that is valid as long as the kernel, or to NULL if the driver reports no name. */
enum ct_name_query ct_target_kernel_name(uint64_t kernel, const char **name);

#endif
#endif
