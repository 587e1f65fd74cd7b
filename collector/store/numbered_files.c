#include "numbered_files.h"

#include "real_user.h"
#include "side_files.h"
#include "trace_files.h"

#include <sqlite3.h>

uint32_t ct_numbered_before(const char *trace, uint32_t number)
{
    const uint32_t user = ct_real_euid();
    return ct_trace_file_before(trace, number, &user);
}

static bool is_taken(const char *trace, uint32_t number)
{
    uint32_t owner;
    char path[PATH_MAX], part[PATH_MAX + 16];
    bool is_others = false;
    if (!ct_trace_file(path, sizeof(path), trace, number))
        return false;
    for (size_t i = 0; i < CT_DATABASE_PARTS && !is_others; i++) {
        snprintf(part, sizeof(part), "%s%s", path, ct_database_parts[i]);
        is_others = ct_trace_file_owner(part, &owner) && owner != ct_real_euid();
    }
    return is_others;
}

uint32_t ct_numbered_after(const char *trace, uint32_t number)
{
    enum { NEAREST = 16, FARTHEST = 1 << 24 };
    uint32_t next = number + 1, distance = 0;
    for (uint32_t i = 0; distance < FARTHEST && is_taken(trace, next); i++) {
        uint32_t random = 0;
        distance = i < NEAREST ? 0 : distance ? 2 * distance : NEAREST;
        if (distance)
            sqlite3_randomness(sizeof(random), &random);
        next += 1 + (distance ? random % distance : 0);
    }
    return next;
}

uint64_t ct_numbered_bytes(const char *path)
{
    uint64_t bytes = 0;
    /* Leave out -shm, which is a cache. */
    for (size_t i = 0; i < CT_DATABASE_PARTS - 1; i++) {
        char part[PATH_MAX + 16];
        struct stat status;
        snprintf(part, sizeof(part), "%s%s", path, ct_database_parts[i]);
        if (stat(part, &status) == 0)
            bytes += (uint64_t)status.st_blocks * 512;
    }
    return bytes;
}
