#include "mounts.h"

#include "proc.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mount {
    const char *device, *root, *point, *kind; /* all strings are parts of the list's text */
};

/* Replaces \040 and the like by the characters that they stand for. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        unsigned code;
        const bool is_escape = *from == '\\' && sscanf(from + 1, "%3o", &code) == 1;
        *to = is_escape ? (char)code : *from;
        from += is_escape ? 4 : 1;
    }
    *to = '\0';
}

/* Parses a line such as "36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda rw". */
static bool parse(char *line, struct mount *mount)
{
    enum { DEVICE = 2, ROOT, POINT, FIELDS };
    char *fields[FIELDS] = { 0 }, *rest = NULL;
    char *end = strstr(line, " - ");
    if (!end)
        return false;
    *end = '\0';
    size_t n = 0;
    for (char *field = strtok_r(line, " ", &rest); field && n < FIELDS; field = strtok_r(NULL, " ", &rest))
        fields[n++] = field;
    if (n < FIELDS)
        return false;
    char *kind = end + 3;
    kind[strcspn(kind, " ")] = '\0';
    unescape(fields[ROOT]);
    unescape(fields[POINT]);
    *mount = (struct mount){ fields[DEVICE], fields[ROOT], fields[POINT], kind };
    return true;
}

/* Returns the length of a mount point that contains the path, or 0. The mount at "/" has length 1. */
static size_t covers(const struct mount *mount, const char *path)
{
    const size_t length = strlen(mount->point);
    const bool is_root = length == 1;
    return strncmp(path, mount->point, length) == 0 && (is_root || path[length] == '/' || !path[length])
               ? length
               : 0;
}

/* Finds the mount that contains the path. Of several mounts at the same point, the last one hides the others.
 * Returns the list's text, which the caller frees, or NULL. */
static char *find(pid_t pid, pid_t thread, const char *path, struct mount *found)
{
    char file[32];
    size_t longest = 0;
    snprintf(file, sizeof(file), "task/%d/mountinfo", (int)thread);
    char *text = ct_proc_file(pid, file, NULL);
    for (char *line = text, *end; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        struct mount mount;
        *end = '\0';
        const size_t length = parse(line, &mount) ? covers(&mount, path) : 0;
        if (length > 0 && length >= longest) {
            longest = length;
            *found = mount;
        }
    }
    if (longest > 0)
        return text;
    free(text);
    return NULL;
}

/* Writes the path from the root of the mount's file system. */
static void within(const struct mount *mount, const char *path, char to[2 * PATH_MAX])
{
    const size_t length = strlen(mount->point);
    snprintf(to, 2 * PATH_MAX, "%s/%s", strcmp(mount->root, "/") == 0 ? "" : mount->root,
             path + length + (length > 1 && path[length] == '/'));
}

bool ct_mounts_share(pid_t pid, pid_t thread, const char *path)
{
    char real[PATH_MAX], our_path[2 * PATH_MAX], their_path[2 * PATH_MAX];
    struct mount ours, theirs;
    char *our_text = realpath(path, real) ? find(getpid(), getpid(), real, &ours) : NULL;
    char *their_text = our_text ? find(pid, thread, real, &theirs) : NULL;
    bool is_same = false;
    if (their_text) {
        within(&ours, real, our_path);
        within(&theirs, real, their_path);
        is_same = strcmp(ours.device, theirs.device) == 0 && strcmp(our_path, their_path) == 0;
    }
    free(our_text);
    free(their_text);
    return is_same;
}

bool ct_mounts_have_proc(pid_t pid, pid_t thread)
{
    struct mount mount;
    char *text = find(pid, thread, "/proc", &mount);
    const bool has = text && strcmp(mount.point, "/proc") == 0 && strcmp(mount.kind, "proc") == 0;
    free(text);
    return has;
}
