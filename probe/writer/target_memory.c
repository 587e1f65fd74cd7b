#include "target_memory.h"

#include "proc.h"
#include "record.h"
#include "target_access.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES_MAX = 1 << 26, CHUNK_BYTES = 4096 };

static struct {
    int memory, root, cwd; /* of the process, -1 for none */
    const struct ct_probe_values *values;
    const struct ct_probe_shape *shape;
    ct_target_act *act;
    void *act_data;
    char text[CT_STRING_MAX + 1];
    void *block;
    size_t block_bytes;
} target = { .memory = -1, .root = -1, .cwd = -1 };

static int open_part(pid_t thread, const char *part, int flags)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/%s", thread, part);
    return open(path, flags | O_CLOEXEC);
}

static void close_part(int *part)
{
    if (*part >= 0)
        close(*part);
    *part = -1;
}

/* Returns whether the process still runs the recorded program, and belongs to the user. The kernel makes root
 * the owner of a process that its user may not trace, such as a set-user-ID program. */
static bool is_recorded(pid_t thread, uid_t uid, int pidfd, const uint32_t *end)
{
    char path[32];
    struct stat status;
    struct pollfd process = { .fd = pidfd, .events = POLLIN };
    snprintf(path, sizeof(path), "/proc/%d/mem", thread);
    return stat(path, &status) == 0 && status.st_uid == uid && poll(&process, 1, 0) == 0 &&
           !(__atomic_load_n(end, __ATOMIC_ACQUIRE) & CT_PROBE_EXECUTED);
}

/* Checks the process after opening its parts: until then, it may have executed a program whose memory its
 * user may not read, or have ended, so that another process has its id. */
void ct_target_open(pid_t pid, uid_t uid, int pidfd, const uint32_t *end)
{
    const pid_t thread = ct_proc_thread(pid);
    target.memory = open_part(thread, "mem", O_RDONLY);
    target.root = open_part(thread, "root", O_PATH);
    target.cwd = open_part(thread, "cwd", O_PATH);
    if (is_recorded(thread, uid, pidfd, end))
        return;
    close_part(&target.memory);
    close_part(&target.root);
    close_part(&target.cwd);
}

void ct_target_set_call(const struct ct_probe_values *values, const struct ct_probe_shape *shape)
{
    target.values = values;
    target.shape = shape;
}

void ct_target_rehearse(ct_target_act *act, void *data)
{
    target.act = act;
    target.act_data = data;
}

/* If this is a rehearsal, notes a read whose result does not matter, and returns true. Otherwise, returns
 * false. */
static bool rehearse(enum ct_target_access access, uint64_t address, uint64_t bytes)
{
    return target.act && (target.act(access, address, NULL, bytes, target.act_data), true);
}

/* ---- memory in the record ---- */

/* Returns the first successful read whose number is at least *i, and sets *i to the number after it. Returns
 * NULL if there is none. */
static const struct ct_probe_read *next_read(uint32_t *i)
{
    for (; target.values && *i < target.shape->reads; (*i)++) {
        if (target.values->record.read & 1U << *i)
            return &target.shape->read[(*i)++];
    }
    return NULL;
}

static uint64_t address_of(const struct ct_probe_read *read)
{
    return target.values->argument[read->argument] + read->offset;
}

static const uint8_t *copy_of(const struct ct_probe_read *read)
{
    return target.values->memory + read->at;
}

static bool read_record(uint64_t address, void *to, size_t bytes)
{
    const struct ct_probe_read *read;
    for (uint32_t i = 0; (read = next_read(&i));) {
        const uint64_t offset = address - address_of(read);
        if (!read->is_text && offset <= read->bytes && bytes <= read->bytes - offset) {
            memcpy(to, copy_of(read) + offset, bytes);
            return true;
        }
    }
    return false;
}

/* ---- memory of the process, later ---- */

static size_t read_some(uint64_t address, void *to, size_t bytes)
{
    const ssize_t got = target.memory >= 0 ? pread(target.memory, to, bytes, (off_t)address) : -1;
    return got > 0 ? (size_t)got : 0;
}

/* Returns whether the memory at the address has probably not changed since the call returned. The record
 * should contain the beginning of the memory that an argument points to. If that beginning is missing from
 * the record, or differs from the present memory, the rest has probably changed, too. */
static bool is_unchanged(uint64_t address)
{
    uint8_t now[CT_PROBE_READ_BYTES];
    for (uint32_t i = 0; target.values && i < target.shape->reads; i++) {
        const struct ct_probe_read *read = &target.shape->read[i];
        if (read->is_text || address - address_of(read) >= BLOCK_BYTES_MAX)
            continue;
        if (!(target.values->record.read & 1U << i) ||
            read_some(address_of(read), now, read->bytes) != read->bytes ||
            memcmp(now, copy_of(read), read->bytes) != 0)
            return false;
    }
    return true;
}

bool ct_target_read(uint64_t address, void *to, size_t bytes)
{
    if (target.act)
        return target.act(CT_TARGET_BYTES, address, to, bytes, target.act_data);
    return read_record(address, to, bytes) ||
           (is_unchanged(address) && read_some(address, to, bytes) == bytes);
}

/* Reads the rest of a string whose beginning is in the record. */
static const char *read_text(uint64_t address, const char *beginning, size_t known)
{
    const size_t got = read_some(address, target.text, CT_STRING_MAX);
    target.text[got] = '\0';
    if (got > known && strncmp(target.text, beginning, known) == 0)
        return target.text;
    if (known == 0)
        return NULL;
    /* The memory has changed, so only the recorded beginning is known. Dots show that it is truncated. */
    snprintf(target.text, sizeof(target.text), "%.*s...", (int)known, beginning);
    return target.text;
}

const char *ct_target_text(uint64_t address)
{
    const struct ct_probe_read *read;
    if (rehearse(CT_TARGET_TEXT, address, CT_PROBE_READ_BYTES))
        return "";
    for (uint32_t i = 0; (read = next_read(&i));) {
        if (!read->is_text || address_of(read) != address)
            continue;
        const char *text = (const char *)copy_of(read);
        const size_t length = strnlen(text, read->bytes);
        return length + 1 < read->bytes ? text : read_text(address, text, length);
    }
    return read_text(address, "", 0);
}

/* Returns whether the record contains the whole string at the address. If so, sets *bytes to the string's
 * length. */
static bool measure_record(uint64_t address, uint64_t *bytes)
{
    const struct ct_probe_read *read;
    for (uint32_t i = 0; (read = next_read(&i));) {
        *bytes = strnlen((const char *)copy_of(read), read->bytes);
        if (address_of(read) == address && *bytes < read->bytes)
            return true;
    }
    return false;
}

bool ct_target_text_bytes(uint64_t address, uint64_t most, uint64_t *bytes)
{
    char chunk[CHUNK_BYTES];
    if (rehearse(CT_TARGET_BULK, address, most))
        return false;
    if (measure_record(address, bytes))
        return true;
    if (!is_unchanged(address))
        return false;
    for (*bytes = 0; *bytes < most;) {
        const size_t got = read_some(address + *bytes, chunk, sizeof(chunk));
        const size_t length = strnlen(chunk, got);
        *bytes += length;
        if (length < got)
            return true;
        if (got == 0)
            return false;
    }
    *bytes = most;
    return true;
}

const void *ct_target_block(uint64_t address, uint64_t bytes)
{
    if (target.block)
        munmap(target.block, target.block_bytes);
    target.block = NULL;
    if (rehearse(CT_TARGET_BULK, address, bytes) || bytes == 0 || bytes > BLOCK_BYTES_MAX ||
        !is_unchanged(address))
        return NULL;
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return NULL;
    target.block = block;
    target.block_bytes = bytes;
    return read_some(address, block, bytes) == bytes ? block : NULL;
}

bool ct_target_file_bytes(uint64_t path, uint64_t *bytes)
{
    struct stat status;
    const char *name = ct_target_text(path);
    if (rehearse(CT_TARGET_BULK, path, 0) || !name || !*name)
        return false;
    const int folder = *name == '/' ? target.root : target.cwd;
    if (folder < 0 || fstatat(folder, name + strspn(name, "/"), &status, 0) != 0)
        return false;
    *bytes = (uint64_t)status.st_size;
    return true;
}
