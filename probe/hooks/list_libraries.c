/* Lists functions that libraries and programs export. */
#include "elf_reader.h"
#include "hook_find.h"
#include "list_lines.h"
#include "mapped_drivers.h"
#include "room.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
    char *path; /* as a line of a table names it */
    char *name; /* the process's path, which patterns match; the same without a process */
    bool is_mapped;
};

struct files {
    struct file *file;
    size_t count, room;
    pid_t pid; /* the process whose mappings are read */
    dev_t last_device;
    ino_t last_inode;
};

struct found_function {
    const char *name;
    size_t number;      /* in the file's order */
    uint64_t offset;    /* UINT64_MAX: an indirect function */
    const char *before; /* a function that comes earlier in the list and has the same code, or NULL */
};

/* The functions in one file that match the patterns. */
struct found {
    struct ct_list *list;
    const struct file *file;
    struct found_function *function;
    size_t count, room;
};

/* ---- files ---- */

static void add_file(struct files *files, const char *path, const char *name, bool is_mapped)
{
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->file[i].path, path) == 0)
            return;
    }
    struct file file = { .path = strdup(path), .name = strdup(name), .is_mapped = is_mapped };
    if (file.path && file.name &&
        ct_make_room(&files->file, files->count, &files->room, sizeof(struct file))) {
        files->file[files->count++] = file;
        return;
    }
    free(file.path);
    free(file.name);
}

static bool is_file(const char *path, ino_t inode)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_ino == inode;
}

/* Adds the mapped file. If the process is in another mount namespace, the path may name another file here, so
 * the file is looked up in /proc/PID/root. A deleted file is left out. Device numbers are not compared,
 * because the mappings of files in overlays show different numbers. */
static void note(const struct ct_mapped_range *range, void *data)
{
    struct files *files = data;
    char path[PATH_MAX + 64];
    if (!*range->path || (range->device == files->last_device && range->inode == files->last_inode))
        return;
    files->last_device = range->device;
    files->last_inode = range->inode;
    snprintf(path, sizeof(path), "%s", range->path);
    if (!is_file(path, range->inode))
        snprintf(path, sizeof(path), "/proc/%d/root%s", (int)files->pid, range->path);
    if (is_file(path, range->inode))
        add_file(files, path, range->path, true);
}

static void add_mapped(struct files *files, pid_t pid)
{
    files->pid = pid;
    files->last_inode = 0;
    const int error = ct_mapped_ranges_each(pid, note, files);
    if (error)
        fprintf(stderr, "cudatrace-probe: the libraries of process %d cannot be listed: %s%s\n", (int)pid,
                strerror(-error), geteuid() == 0 ? "" : ": run as root");
}

/* Splits a pattern of the form "LIBRARY:FUNCTION". Returns false if the pattern does not name a library. */
static bool split(const char *pattern, char library[PATH_MAX], const char **function)
{
    const char *rest, *colon;
    if (!ct_list_is_of_kind(pattern, CT_HOOK_UPROBE, &rest) || rest == pattern)
        return false;
    colon = strrchr(rest, ':');
    snprintf(library, PATH_MAX, "%.*s", (int)(colon - rest), rest);
    *function = colon + 1;
    return true;
}

static void add_matching(struct files *files, const char *pattern)
{
    char library[PATH_MAX];
    const char *function;
    glob_t found;
    if (!split(pattern, library, &function) || *library != '/')
        return;
    const int error = glob(library, 0, NULL, &found);
    for (size_t i = 0; error == 0 && i < found.gl_pathc; i++) {
        struct stat status;
        if (stat(found.gl_pathv[i], &status) == 0 && S_ISREG(status.st_mode))
            add_file(files, found.gl_pathv[i], found.gl_pathv[i], false);
    }
    if (error == 0)
        globfree(&found);
}

/* ---- functions ---- */

static bool matches_file(const char *library, const struct file *file)
{
    const char *slash = strrchr(file->name, '/');
    if (*library == '/')
        return fnmatch(library, file->name, 0) == 0;
    return file->is_mapped && fnmatch(library, slash ? slash + 1 : file->name, 0) == 0;
}

static bool takes(const struct found *found, const char *name)
{
    bool takes = false;
    for (size_t i = 0; i < found->list->options->patterns; i++) {
        char library[PATH_MAX];
        const char *pattern = found->list->options->pattern[i], *function, *rest;
        const bool has_library = split(pattern, library, &function);
        if (has_library ? !matches_file(library, found->file) || fnmatch(function, name, 0) != 0
                        : !found->file->is_mapped || !ct_list_is_of_kind(pattern, CT_HOOK_UPROBE, &rest) ||
                              fnmatch(pattern, name, 0) != 0)
            continue;
        found->list->is_matched[i] = true;
        takes = true;
    }
    return takes;
}

/* Returns whether a table of hooks can contain the string: it must not contain blanks or control
 * characters. */
static bool is_word(const char *text)
{
    while (isgraph((unsigned char)*text))
        text++;
    return *text == '\0';
}

static void take(const char *name, uint64_t offset, void *data)
{
    struct found *found = data;
    if (!is_word(name) || !takes(found, name) ||
        !ct_make_room(&found->function, found->count, &found->room, sizeof(*found->function)))
        return;
    found->function[found->count] =
        (struct found_function){ .name = name, .number = found->count, .offset = offset };
    found->count++;
}

/* Compares by name, and then by the order in the file. */
static int compare(const void *a, const void *b)
{
    const struct found_function *left = a, *right = b;
    const int order = strcmp(left->name, right->name);
    return order != 0 ? order : left->number < right->number ? -1 : 1;
}

/* If a function has several versions, keeps only the last one, which a hook would use. */
static void leave_last(struct found *found)
{
    size_t left = 0;
    for (size_t i = 0; i < found->count; i++) {
        if (i + 1 == found->count || strcmp(found->function[i].name, found->function[i + 1].name) != 0)
            found->function[left++] = found->function[i];
    }
    found->count = left;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct found_function *left = *(struct found_function *const *)a,
                                *right = *(struct found_function *const *)b;
    if (left->offset != right->offset)
        return left->offset < right->offset ? -1 : 1;
    return left < right ? -1 : 1;
}

static void find_same_code(struct found *found)
{
    struct found_function **sorted = calloc(found->count + 1, sizeof(*sorted));
    if (!sorted)
        return;
    for (size_t i = 0; i < found->count; i++)
        sorted[i] = &found->function[i];
    qsort(sorted, found->count, sizeof(*sorted), compare_offsets);
    for (size_t i = 1; i < found->count; i++) {
        const struct found_function *before = sorted[i - 1];
        if (sorted[i]->offset == before->offset && before->offset != UINT64_MAX)
            sorted[i]->before = before->before ? before->before : before->name;
    }
    free(sorted);
}

static void print_function(const struct found *found, const struct ct_elf *elf,
                           const struct found_function *function)
{
    static const struct ct_list_fields at_entry = { .text = " at entry" };
    const char *name = function->name;
    const size_t length = strlen("uprobe:") + strlen(found->file->path) + 1 + strlen(name) + 1;
    char *target = malloc(length);
    if (!target)
        return;
    snprintf(target, length, "uprobe:%s:%s", found->file->path, name);
    const bool is_kept = ct_hook_keeps_return_address(name), is_left = ct_hook_may_throw(elf, name),
               is_examined = ct_hook_examines_caller(name);
    char *remark = NULL;
    if (function->before && asprintf(&remark, "has the same code as %s", function->before) < 0)
        remark = NULL;
    const char *barred = function->offset == UINT64_MAX ? "an indirect function, which has no code of its own"
                         : ct_hook_is_driver_function(found->file->path, name)
                             ? "the probe records it itself, unless --calls excludes it"
                         /* A table can have only one hook on the same code. */
                         : found->list->options->verbose ? remark
                                                         : NULL;
    ct_list_print(found->list, target, name, is_kept || is_examined || is_left ? &at_entry : NULL,
                  barred        ? NULL
                  : remark      ? remark
                  : is_kept     ? "only 'at entry': it saves its return address"
                  : is_examined ? "only 'at entry': it examines the address of its caller"
                  : is_left     ? "only 'at entry', or with 'nothrow' if no C++ exception leaves it"
                                : NULL,
                  barred);
    free(remark);
    free(target);
}

static void list_file(struct ct_list *list, const struct file *file)
{
    struct found found = { .list = list, .file = file };
    struct ct_elf elf;
    char *text = NULL;
    int error = is_word(file->path) ? ct_elf_open(&elf, file->path) : -EILSEQ;
    if (!error) {
        error = elf.native ? ct_elf_each_function(&elf, take, &found, &text) : -ENOEXEC;
        if (found.count > 0)
            qsort(found.function, found.count, sizeof(*found.function), compare);
        leave_last(&found);
        find_same_code(&found);
        for (size_t i = 0; i < found.count; i++)
            print_function(&found, &elf, &found.function[i]);
        ct_elf_close(&elf);
    }
    /* Mapped files, and files whose paths match a pattern, may be something other than libraries. */
    if (error && error != -ENOEXEC && error != -ENODATA)
        fprintf(stderr, "cudatrace-probe: %s is left out: %s\n",
                is_word(file->path) ? file->path : "a library",
                error == -EILSEQ ? "its path has blanks or control characters" : strerror(-error));
    free(found.function);
    free(text);
}

void ct_list_libraries(struct ct_list *list)
{
    struct files files = { 0 };
    if (!ct_list_wants(list, CT_HOOK_UPROBE))
        return;
    for (size_t i = 0; i < list->options->pids; i++)
        add_mapped(&files, list->options->pid[i]);
    for (size_t i = 0; i < list->options->patterns; i++)
        add_matching(&files, list->options->pattern[i]);
    for (size_t i = 0; i < files.count; i++) {
        list_file(list, &files.file[i]);
        free(files.file[i].path);
        free(files.file[i].name);
    }
    free(files.file);
}
