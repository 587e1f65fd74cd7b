/* The files of a trace. After another boot, and with --max-db, a trace continues in further files: trace.db,
 * trace.2.db, trace.3.db, … Files that are read as one trace have the same meta.series. This code is shared
 * by the daemon, which writes the files, and the tools, which read them. */
#ifndef CT_TRACE_FILES_H
#define CT_TRACE_FILES_H

#include "real_user.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    /* The maximum number of files in a series, including the newest. SQLite attaches at most ten
     * databases. */
    CT_SERIES_FILES_MAX = 10,
    CT_SERIES_BYTES = 40, /* size of the text meta.series, with its NUL */
};

/* Returns the offset at which a file's number is inserted: before the name's last dot, or at the end if there
 * is no dot. */
static inline size_t ct_trace_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    return dot && (slash ? dot > slash + 1 : dot > path) ? (size_t)(dot - path) : strlen(path);
}

/* Writes the name of file `number`, counted from 1, of the trace at `path`. Returns false if the name does
 * not fit.
 */
static inline bool ct_trace_file(char *out, size_t bytes, const char *path, uint32_t number)
{
    const size_t stem = ct_trace_stem(path), length = strlen(path);
    if (number == 1 && length < bytes)
        memcpy(out, path, length + 1);
    if (number == 1)
        return length < bytes;
    const int n = snprintf(out, bytes, "%.*s.%u%s", (int)stem, path, number, path + stem);
    return n > 0 && (size_t)n < bytes;
}

/* Returns the number that file `name` has in the trace at `path`, or 0 if the trace has no such file. `name`
 * must be without a folder. */
static inline uint32_t ct_trace_file_number(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    const size_t stem = ct_trace_stem(path) - (size_t)(own - path);
    if (strcmp(name, own) == 0)
        return 1;
    if (strncmp(name, own, stem) != 0 || name[stem] != '.' || name[stem + 1] < '1' || name[stem + 1] > '9')
        return 0;
    char *end;
    const unsigned long number = strtoul(name + stem + 1, &end, 10);
    return number > 1 && number < UINT32_MAX && strcmp(end, own + stem) == 0 ? (uint32_t)number : 0;
}

/* Writes the folder that contains the file at `path`. */
static inline void ct_trace_folder(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash > path ? (int)(slash - path) : 1, slash ? path : ".");
}

/* Gets the user to whom a file or link belongs. Returns false if it does not exist. */
static inline bool ct_trace_file_owner(const char *path, uint32_t *owner)
{
    struct stat status;
    const bool exists = ct_real_lstat(path, &status) == 0;
    *owner = exists ? status.st_uid : 0;
    return exists;
}

/* Returns whether a numbered file belongs to another user. If so, it is left out of the trace, because anyone
 * may put a file into a folder such as /tmp. */
static inline bool ct_trace_file_is_foreign(const char *path, uint32_t number, uint32_t owner)
{
    uint32_t user;
    char file[PATH_MAX];
    return number > 1 && ct_trace_file(file, sizeof(file), path, number) &&
           ct_trace_file_owner(file, &user) && user != owner;
}

/* Returns the highest number below `below` of any file in the trace, or 0 if there is none. Leaves out files
 * that are foreign to `owner`, unless that is NULL. */
static inline uint32_t ct_trace_file_before(const char *path, uint32_t below, const uint32_t *owner)
{
    char folder[PATH_MAX];
    ct_trace_folder(path, folder);
    DIR *directory = opendir(folder);
    uint32_t highest = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;) {
        const uint32_t number = ct_trace_file_number(path, entry->d_name);
        if (number > highest && number < below && !(owner && ct_trace_file_is_foreign(path, number, *owner)))
            highest = number;
    }
    if (directory)
        closedir(directory);
    return highest;
}

static inline uint64_t ct_trace_hash(uint64_t hash, const void *from, size_t bytes)
{
    for (const uint8_t *at = from; bytes > 0; bytes--)
        hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns a hash that is the same for all paths that lead to a trace. The hash combines the device and inode
 * of the trace's folder with the trace's name in that folder. If the path is a symbolic link, it is resolved
 * first. The trace need not exist, but if its folder does not exist, returns 0. */
static inline uint64_t ct_trace_identity(const char *path)
{
    char target[PATH_MAX], folder[PATH_MAX];
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && realpath(path, target))
        path = target;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const int n =
        snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (n < 0 || (size_t)n >= sizeof(folder) || stat(folder, &status) != 0)
        return 0;
    const uint64_t place[2] = { status.st_dev, status.st_ino };
    const uint64_t hash = ct_trace_hash(UINT64_C(0xcbf29ce484222325), place, sizeof(place));
    return ct_trace_hash(hash, name, strlen(name)) | 1;
}

/* Splits the name of a numbered file. For example, "trace.3.db" is number 3 of "trace.db". Returns false if
 * the name has no number. */
static inline bool ct_trace_split(const char *path, char *first, size_t bytes, uint32_t *number)
{
    size_t stem = ct_trace_stem(path);
    if (path[stem] && strspn(path + stem + 1, "0123456789") == strlen(path + stem + 1))
        stem = strlen(path); /* the trace's name has no dot */
    size_t dot = stem;
    while (dot > 0 && path[dot - 1] >= '0' && path[dot - 1] <= '9')
        dot--;
    if (dot < 2 || dot == stem || path[dot - 1] != '.' || path[dot - 2] == '/')
        return false;
    const int n = snprintf(first, bytes, "%.*s%s", (int)(dot - 1), path, path + stem);
    const char *slash = strrchr(path, '/');
    *number = n > 0 && (size_t)n < bytes ? ct_trace_file_number(first, slash ? slash + 1 : path) : 0;
    return *number > 1;
}

#endif
