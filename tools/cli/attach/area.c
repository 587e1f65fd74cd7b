#include "area.h"

#include "proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(offsetof(struct ct_area_pair, function) == CT_PAIR_FUNCTION &&
                  offsetof(struct ct_area_pair, thunk) == CT_PAIR_THUNK &&
                  sizeof(struct ct_area_pair) == CT_PAIR_BYTES,
              "ct_area_pair");
#define AT(field, offset)                                                                                    \
    static_assert(offsetof(struct ct_area_data, field) == CT_DATA_##offset, "ct_area_data");
AT(state, STATE)
AT(answer, ANSWER)
AT(pid, PID)
AT(file, FILE)
AT(pair_count, PAIR_COUNT)
AT(left, LEFT)
AT(file_inode, FILE_INODE)
AT(file_device, FILE_DEVICE)
AT(hook, HOOK)
AT(hook_offset, HOOK_OFFSET)
AT(find_dlopen, DLOPEN)
AT(find_dlerror, DLERROR)
AT(find_cancel, CANCEL)
AT(find_errno, ERRNO)
AT(find_cancel_type, CANCEL_TYPE)
AT(find_atfork, ATFORK)
AT(kept_out, KEPT_OUT)
AT(signals, SIGNALS)
AT(cancel_before, CANCEL_BEFORE)
AT(ran, RAN)
AT(grant, GRANT)
AT(forks_wait, FORKS_WAIT)
AT(asked_stack, ASKED_STACK)
AT(asked_thread, ASKED_THREAD)
AT(path, PATH)
AT(why, WHY)
AT(visit, VISIT)
AT(visit.request, REQUEST)
AT(visit.producer, PRODUCER)
#undef AT
static_assert(CT_AREA_ANSWER_DONE == CT_VISIT_DONE && CT_AREA_ANSWER_SILENCED == CT_VISIT_SILENCED &&
                  CT_AREA_REQUEST_RECORD == CT_VISIT_RECORD,
              "ct_visit");
static_assert(CT_ASKED_RBP == CT_ASKED_VECTORS + 8 * CT_ASKED_REGISTERS &&
                  CT_ASKED_RETURN == CT_ASKED_RBP + 8 && CT_ASKED_BYTES == CT_ASKED_RETURN + 8 &&
                  CT_ASKED_RBX == CT_ASKED_VECTORS + 2 * 8,
              "SAVE_REGISTERS");
static_assert(sizeof(struct ct_area_data) <= CT_AREA_PAIRS - CT_AREA_DATA, "data");
static_assert(CT_AREA_PAIRS_MOST * CT_PAIR_BYTES <= CT_AREA_GUARD - CT_AREA_PAIRS, "pairs");
static_assert(CT_AREA_PAIRS_MOST * CT_AREA_THUNK_BYTES <= CT_AREA_DATA - CT_AREA_THUNKS, "thunks");

/* ---- the copied code ---- */

extern const uint8_t ct_area_code_begin[], ct_area_code_end[], ct_area_code_common[], ct_area_code_arm[],
    ct_area_code_disarm[], ct_area_code_leave[];

static uint64_t code_at(const struct ct_area *area, const uint8_t *label)
{
    return area->address + CT_AREA_CODE + (uint64_t)(label - ct_area_code_begin);
}

static void put_distance(uint8_t *to, uint64_t target, uint64_t behind)
{
    const int32_t distance = (int32_t)(int64_t)(target - behind);
    memcpy(to, &distance, sizeof(distance));
}

/* Writes the code and all thunks at their offsets from the start of the area. All of this code is
 * position-independent. */
static void write_code(uint8_t code[CT_AREA_DATA])
{
    enum { LEAQ_BYTES = 7, JMP_BYTES = 5 };
    static const uint8_t leaq_r11[] = { 0x4c, 0x8d, 0x1d };
    memset(code, 0xcc, CT_AREA_DATA);
    memcpy(code, ct_area_code_begin, (size_t)(ct_area_code_end - ct_area_code_begin));
    for (uint64_t i = 0; i < CT_AREA_PAIRS_MOST; i++) {
        const uint64_t at = CT_AREA_THUNKS + i * CT_AREA_THUNK_BYTES;
        memcpy(code + at, leaq_r11, sizeof(leaq_r11));
        put_distance(code + at + sizeof(leaq_r11), CT_AREA_PAIRS + i * CT_PAIR_BYTES + CT_PAIR_FUNCTION,
                     at + LEAQ_BYTES);
        code[at + LEAQ_BYTES] = 0xe9;
        put_distance(code + at + LEAQ_BYTES + 1, (uint64_t)(ct_area_code_common - ct_area_code_begin),
                     at + LEAQ_BYTES + JMP_BYTES);
    }
}

/* ---- an area ---- */

static bool has_code(const struct ct_memory *memory, uint64_t address)
{
    static uint8_t wanted[CT_AREA_DATA], seen[CT_AREA_DATA];
    if (wanted[0] == 0)
        write_code(wanted);
    return ct_memory_read(memory, address, seen, sizeof(seen)) && memcmp(seen, wanted, sizeof(seen)) == 0;
}

void ct_area_find(struct ct_area *area, const struct ct_memory *memory)
{
    static const char name[] = "/memfd:" CT_AREA_NAME;
    *area = (struct ct_area){ .memory = memory };
    for (size_t i = 0; i < memory->count; i++) {
        const struct ct_mapping *mapping = &memory->mappings[i];
        if (strncmp(mapping->path, name, strlen(name)) != 0 || mapping->offset != 0 ||
            !mapping->is_executable || !has_code(memory, mapping->begin))
            continue;
        area->address = mapping->begin;
        if (ct_area_read(area) && area->data.magic == CT_AREA_MAGIC)
            return;
    }
    *area = (struct ct_area){ .memory = memory };
}

/* Makes the thread create an empty file. Returns its descriptor or -errno. */
static int64_t create_file(struct ct_stop *stop, uint64_t name_at)
{
    enum { NO_EXEC_SEAL = 0x8 };
    const int64_t fd = ct_stop_call(stop, SYS_memfd_create, name_at, MFD_CLOEXEC | NO_EXEC_SEAL, 0, 0, 0, 0);
    if (fd != -EINVAL)
        return fd;
    return ct_stop_call(stop, SYS_memfd_create, name_at, MFD_CLOEXEC, 0, 0, 0, 0); /* before Linux 6.3 */
}

/* Returns the size of the kernel's table of the thread's descriptors. */
static int64_t table_size(const struct ct_stop *stop)
{
    enum { SMALLEST = 64 };
    char file[32], text[4096];
    int64_t size = 0;
    snprintf(file, sizeof(file), "task/%d/status", (int)stop->thread);
    const char *at =
        ct_proc_read(stop->memory->pid, file, text, sizeof(text)) == 0 ? strstr(text, "\nFDSize:") : NULL;
    return at && sscanf(at, "\nFDSize: %" SCNd64, &size) == 1 && size > SMALLEST ? size : SMALLEST;
}

/* Duplicates the descriptor to a high number, because the program's next open() must return the same number
 * as without attach. This is the last number of the kernel's table, because enlarging the table of a process
 * with threads takes milliseconds. The table is enlarged only if it is almost full. If the program's limit of
 * open files is lower, uses a lower number. Returns the new descriptor or -errno. */
static int64_t duplicate_high(struct ct_stop *stop, int64_t low)
{
    enum { NUMBERS_LEFT = 32 };
    const int64_t size = table_size(stop), lowest = (low > STDERR_FILENO ? low : STDERR_FILENO) + 1;
    int64_t number = size - low > NUMBERS_LEFT ? size - 1 : 2 * size - 1;
    for (;;) {
        number = number > lowest ? number : lowest;
        const int64_t fd =
            ct_stop_call(stop, SYS_fcntl, (uint64_t)low, F_DUPFD_CLOEXEC, (uint64_t)number, 0, 0, 0);
        if ((fd != -EMFILE && fd != -EINVAL) || number == lowest)
            return fd;
        number /= 2;
    }
}

static bool is_same_file(const struct stat *left, const struct stat *right)
{
    return left->st_ino == right->st_ino && left->st_dev == right->st_dev;
}

/* Moves the new file to a high descriptor. Another thread of the program may meanwhile replace either
 * descriptor with a file of its own, which must not be closed. Returns the file's descriptor or -errno. */
static int move_file(struct ct_stop *stop, int low, uint64_t at, const struct stat *status)
{
    struct stat low_status, high_status;
    const int high = (int)duplicate_high(stop, low);
    if (high < 0 && low > STDERR_FILENO)
        return low;
    const bool is_low = ct_area_stat(stop, low, at, &low_status) == 0;
    if (is_low && is_same_file(&low_status, status))
        ct_stop_call(stop, SYS_close, (uint64_t)low, 0, 0, 0, 0, 0);
    if (high < 0)
        return high;
    if (ct_area_stat(stop, high, at, &high_status) != 0)
        return -EBADF;
    if (is_same_file(&high_status, status))
        return high;
    if (is_low && is_same_file(&high_status, &low_status)) /* replaced before it was duplicated */
        ct_stop_call(stop, SYS_close, (uint64_t)high, 0, 0, 0, 0, 0);
    return -EBADF;
}

/* Returns whether the thread may write a file of this size. A larger file would raise SIGXFSZ. */
static bool may_write(struct ct_stop *stop, uint64_t at, size_t bytes)
{
    struct rlimit limit;
    return ct_stop_call(stop, SYS_prlimit64, 0, RLIMIT_FSIZE, 0, at, 0, 0) != 0 ||
           !ct_memory_read(stop->memory, at, &limit, sizeof(limit)) || limit.rlim_cur >= bytes;
}

static int write_file(struct ct_stop *stop, int fd, const uint8_t *bytes, size_t count, uint64_t at,
                      size_t room)
{
    for (size_t n = 0, part; n < count; n += part) {
        part = count - n < room ? count - n : room;
        if (!ct_memory_write(stop->memory, at, bytes + n, part))
            return -ESRCH;
        const int64_t put = ct_stop_call(stop, SYS_pwrite64, (uint64_t)fd, at, part, n, 0, 0);
        if (put != (int64_t)part)
            return put < 0 ? (int)put : -ENOSPC;
    }
    return 0;
}

int ct_area_stat(struct ct_stop *stop, int fd, uint64_t at, struct stat *status)
{
    const int64_t error = ct_stop_call(stop, SYS_fstat, (uint64_t)fd, at, 0, 0, 0, 0);
    if (error)
        return (int)error;
    return ct_memory_read(stop->memory, at, status, sizeof(*status)) ? 0 : -ESRCH;
}

int ct_area_file(struct ct_stop *stop, const char *name, const uint8_t *bytes, size_t count, uint64_t at,
                 size_t room, struct stat *status)
{
    if (!may_write(stop, at, count))
        return -EFBIG;
    if (!ct_memory_write(stop->memory, at, name, strlen(name) + 1))
        return -ESRCH;
    const int low = (int)create_file(stop, at);
    if (low < 0)
        return low;
    /* Another thread of the program may have put a different file into the descriptor. */
    if (ct_area_stat(stop, low, at, status) != 0 || !S_ISREG(status->st_mode) || status->st_nlink > 0 ||
        status->st_size > 0)
        return -EBADF;
    const int fd = move_file(stop, low, at, status);
    if (fd < 0)
        return fd;
    const int error = write_file(stop, fd, bytes, count, at, room);
    if (error)
        ct_stop_call(stop, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
    return error ? error : fd;
}

static int map_file(struct ct_stop *stop, uint64_t address, int fd)
{
    const uint64_t how = MAP_PRIVATE | MAP_FIXED;
    int64_t got = ct_stop_call(stop, SYS_mmap, address, CT_AREA_DATA, PROT_READ | PROT_EXEC, how,
                               (uint64_t)fd, CT_AREA_CODE);
    if (got == (int64_t)address)
        got = ct_stop_call(stop, SYS_mmap, address + CT_AREA_DATA, CT_AREA_GUARD - CT_AREA_DATA,
                           PROT_READ | PROT_WRITE, how, (uint64_t)fd, CT_AREA_DATA);
    if (got == (int64_t)address + CT_AREA_DATA)
        got = ct_stop_call(stop, SYS_mprotect, address + CT_AREA_GUARD, CT_AREA_STACK - CT_AREA_GUARD,
                           PROT_NONE, 0, 0, 0);
    return got < 0 ? (int)got : 0;
}

/* Maps memory for the area, without using any. If the program locks all its memory, the stack is exempt,
 * because locking it would fill it. Returns the address or -errno. */
static int64_t reserve(struct ct_stop *stop)
{
    const int64_t address =
        ct_stop_call(stop, SYS_mmap, 0, CT_AREA_BYTES, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, ~UINT64_C(0), 0);
    if (address < 0)
        return address;
    ct_stop_call(stop, SYS_munlock, (uint64_t)address, CT_AREA_BYTES, 0, 0, 0, 0);
    const int64_t error =
        ct_stop_call(stop, SYS_mprotect, (uint64_t)address, CT_AREA_BYTES, PROT_READ | PROT_WRITE, 0, 0, 0);
    if (error)
        ct_stop_call(stop, SYS_munmap, (uint64_t)address, CT_AREA_BYTES, 0, 0, 0, 0);
    return error ? error : address;
}

int ct_area_make(struct ct_area *area, struct ct_stop *stop)
{
    static uint8_t contents[CT_AREA_GUARD];
    const struct ct_area_data data = { .magic = CT_AREA_MAGIC, .file = -1 };
    struct stat status;
    const int64_t address = reserve(stop);
    if (address < 0)
        return (int)address;
    write_code(contents);
    memcpy(contents + CT_AREA_DATA, &data, sizeof(data));
    const int fd = ct_area_file(stop, CT_AREA_NAME, contents, sizeof(contents), (uint64_t)address,
                                CT_AREA_BYTES, &status);
    int error = fd;
    if (fd >= 0) {
        error = map_file(stop, (uint64_t)address, fd);
        ct_stop_call(stop, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
        if (!error && !has_code(stop->memory, (uint64_t)address))
            error = -EBADF; /* another thread has replaced the descriptor */
    }
    if (error < 0) {
        ct_stop_call(stop, SYS_munmap, (uint64_t)address, CT_AREA_BYTES, 0, 0, 0, 0);
        return error;
    }
    area->address = (uint64_t)address;
    return ct_area_read(area) ? 0 : -ESRCH;
}

/* ---- its data ---- */

bool ct_area_write(const struct ct_area *area)
{
    return ct_memory_write(area->memory, area->address + CT_AREA_DATA, &area->data, sizeof(area->data));
}

bool ct_area_read(struct ct_area *area)
{
    return ct_memory_read(area->memory, area->address + CT_AREA_DATA, &area->data, sizeof(area->data));
}

bool ct_area_set(const struct ct_area *area, size_t offset, uint32_t value)
{
    return ct_memory_write(area->memory, area->address + CT_AREA_DATA + offset, &value, sizeof(value));
}

int ct_area_write_pairs(struct ct_area *area, struct ct_area_pair *pairs, size_t count)
{
    static struct ct_area_pair before[CT_AREA_PAIRS_MOST];
    const uint64_t at = area->address + CT_AREA_PAIRS;
    if (count > CT_AREA_PAIRS_MOST)
        return -E2BIG;
    for (size_t i = 0; i < count; i++)
        pairs[i].thunk = area->address + CT_AREA_THUNKS + i * CT_AREA_THUNK_BYTES;
    const size_t bytes = count * sizeof(*pairs), bytes_before = area->data.pair_count * sizeof(*pairs);
    if (bytes_before > sizeof(before) || !ct_memory_read(area->memory, at, before, bytes_before))
        return -ESRCH;
    if (bytes_before > bytes || memcmp(before, pairs, bytes_before) != 0)
        return -EBUSY;
    area->data.pair_count = (uint32_t)count;
    return ct_memory_write(area->memory, at, pairs, bytes) ? 0 : -ESRCH;
}

/* ---- routines that a stopped thread runs ---- */

static int run(const struct ct_area *area, struct ct_stop *stop, const uint8_t *label, uint64_t stack)
{
    return ct_stop_run(stop, code_at(area, label), area->address + CT_AREA_DATA + CT_DATA_RAN, stack);
}

int ct_area_arm(const struct ct_area *area, struct ct_stop *stop)
{
    return run(area, stop, ct_area_code_arm, 0);
}

int ct_area_disarm(const struct ct_area *area, struct ct_stop *stop)
{
    return run(area, stop, ct_area_code_disarm, 0);
}

int ct_area_leave(const struct ct_area *area, struct ct_stop *stop)
{
    return run(area, stop, ct_area_code_leave, area->address + CT_AREA_BYTES);
}
