#include "measured_call.h"

#include "clock.h"
#include "kernel_ring.h"

#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>

/* A function that does nothing. Like the functions of libcuda 580, it begins with an instruction that the
 * kernel emulates. */
int measured_call(int value);
__asm__(".pushsection .text\n"
        ".type measured_call, @function\n"
        "measured_call:\n"
        "    push %rbp\n"
        "    mov %rsp, %rbp\n"
        "    mov %edi, %eax\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size measured_call, . - measured_call\n"
        ".popsection");

struct place_in_file {
    uint64_t address, offset;
};

static int find_in_file(struct dl_phdr_info *image, size_t size, void *data)
{
    (void)size;
    struct place_in_file *place = data;
    for (int i = 0; i < image->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &image->dlpi_phdr[i];
        const uint64_t at = image->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && place->address >= at && place->address < at + part->p_filesz) {
            place->offset = place->address - at + part->p_offset;
            return 1;
        }
    }
    return 0;
}

static int compare_ns(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

uint64_t ct_measured_median(uint64_t values[CT_MEASURED_CALLS])
{
    qsort(values, CT_MEASURED_CALLS, sizeof(values[0]), compare_ns);
    return values[CT_MEASURED_CALLS / 2];
}

bool ct_measured_call_find(uint64_t *offset)
{
    struct place_in_file at = { .address = (uintptr_t)measured_call };
    const bool is_found = dl_iterate_phdr(find_in_file, &at) != 0;
    *offset = at.offset;
    return is_found;
}

uint64_t ct_measured_calls_ns(void)
{
    static uint64_t whole[CT_MEASURED_CALLS];
    for (int i = 0; i < CT_MEASURED_CALLS; i++) {
        const uint64_t before_ns = ct_monotonic_ns();
        measured_call(i);
        whole[i] = ct_monotonic_ns() - before_ns;
    }
    return ct_measured_median(whole);
}

int ct_measured_calls_read(int map, uint64_t seen[CT_MEASURED_CALLS])
{
    struct ct_kernel_ring ring;
    const struct ct_probe_record *record;
    size_t count = 0, bytes;
    const int error = ct_kernel_ring_map(&ring, map, CT_PROBE_RING_BYTES);
    if (error)
        return error;
    for (; (record = ct_kernel_ring_next(&ring, ct_kernel_ring_end(&ring), sizeof(*record), &bytes));
         ct_kernel_ring_pass(&ring)) {
        if (record->kind == CT_PROBE_CALL && record->status == (int32_t)count && count < CT_MEASURED_CALLS)
            seen[count++] = record->end - record->start;
    }
    ct_kernel_ring_unmap(&ring);
    return count == CT_MEASURED_CALLS ? 0 : -ENODATA;
}
