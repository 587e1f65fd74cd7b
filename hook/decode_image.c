/* An image of code does not come with its length: it says itself how long it is, each kind in its own way. */
#include "hook.h"

#include "decode_image.h"
#include "quiet.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 1 << 28 };

/* What nvcc lays around a fat binary: __fatBinC_Wrapper_t of fatbinary_section.h, CUDA 13.0. */
#define WRAPPER_MAGIC UINT32_C(0x466243b1)
struct wrapper {
    uint32_t magic, version;
    uint64_t image;
    uint64_t file_name;
};

/* The head of a fat binary, as fatbinary of CUDA 13.0 writes it. */
#define FATBIN_MAGIC UINT32_C(0xba55ed50)
struct fatbin {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t payload_bytes;
};
static_assert(sizeof(struct fatbin) == 16, "fat binary");

#define ELF_MAGIC UINT32_C(0x464c457f)
/* A cubin is an ELF file whose last part is one of its two tables of headers. */
static uint64_t elf_bytes(const void *image)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof(head));
    const uint64_t sections_end = head.e_shoff + (uint64_t)head.e_shnum * head.e_shentsize;
    const uint64_t segments_end = head.e_phoff + (uint64_t)head.e_phnum * head.e_phentsize;
    return sections_end > segments_end ? sections_end : segments_end;
}

/* Byte by byte, since text may be shorter than a magic number. */
static bool begins_with(const unsigned char *image, uint32_t magic)
{
    for (int i = 0; i < 4; i++) {
        if (image[i] != (uint8_t)(magic >> 8 * i))
            return false;
    }
    return true;
}

/* PTX and other sources: what begins as text. */
static bool is_text(const unsigned char *image)
{
    return image[0] < 0x7f && (image[0] >= ' ' || image[0] == '\0' || (image[0] >= '\t' && image[0] <= '\r'));
}

bool ct_image_bytes(uint64_t address, uint64_t *bytes)
{
    const unsigned char *image = (const unsigned char *)address;
    if (begins_with(image, WRAPPER_MAGIC)) {
        image = (const unsigned char *)((const struct wrapper *)(const void *)image)->image;
        if (!image)
            return false;
    }
    if (begins_with(image, FATBIN_MAGIC)) {
        struct fatbin head;
        memcpy(&head, image, sizeof(head));
        *bytes = head.head_bytes + head.payload_bytes;
    } else if (begins_with(image, ELF_MAGIC)) {
        *bytes = elf_bytes(image);
    } else if (is_text(image)) {
        *bytes = strnlen((const char *)image, TEXT_BYTES_MAX);
    } else {
        return false;
    }
    return true;
}

/* The system call itself: glibc has had a function for it under this name since 2.33 only. */
bool ct_file_bytes(const char *path, uint64_t *bytes)
{
    struct stat status;
    const struct quiet quiet = quiet_begin();
    const bool found = syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0;
    quiet_end(quiet);
    if (!found)
        return false;
    *bytes = (uint64_t)status.st_size;
    return true;
}
