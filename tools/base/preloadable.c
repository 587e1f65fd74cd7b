#include "preloadable.h"

#include "elf_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* The maximum depth of scripts that are interpreted by scripts, the same as in Linux (fs/exec.c). */
enum { SCRIPTS_MAX = 5, SCRIPT_LINE_BYTES = 256 };

static bool is_runnable(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 && S_ISREG(status.st_mode) && access(file, X_OK) == 0;
}

bool ct_program_find(const char *command, char *file)
{
    if (strchr(command, '/')) {
        const int n = snprintf(file, PATH_MAX, "%s", command);
        return n < PATH_MAX && is_runnable(file);
    }
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/bin:/usr/bin"; *command; at++) {
        const size_t length = strcspn(at, ":");
        const int n =
            snprintf(file, PATH_MAX, "%.*s/%s", length ? (int)length : 1, length ? at : ".", command);
        if (n > 0 && n < PATH_MAX && is_runnable(file))
            return true;
        at += length;
        if (!*at)
            break;
    }
    return false;
}

/* Reads a script's first line, without its "#!". For a script without "#!", returns "/bin/sh", which execvp()
 * would use. Returns false for an ELF program. */
static bool read_script(const char *file, char line[SCRIPT_LINE_BYTES])
{
    struct ct_elf elf;
    const int error = ct_elf_open(&elf, file);
    ct_elf_close(&elf);
    const int fd = error == -ENOEXEC ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    const ssize_t n = read(fd, line, SCRIPT_LINE_BYTES - 1);
    close(fd);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) == 0)
        memmove(line, line + 2, strlen(line + 2) + 1);
    else
        strcpy(line, "/bin/sh");
    return true;
}

/* Finds the program that env starts, as in "env -S python3 -u". The program is env's first argument that is
 * neither an option nor a variable. */
static bool follow_env(char **rest, char *file)
{
    for (char *word; (word = strsep(rest, " \t")) != NULL;) {
        if (*word && *word != '-' && !strchr(word, '='))
            return ct_program_find(word, file);
    }
    return false;
}

bool ct_program_follow(char *file)
{
    char line[SCRIPT_LINE_BYTES];
    bool followed = false;
    for (int i = 0; i < SCRIPTS_MAX && read_script(file, line); i++) {
        char *rest = line + strspn(line, " \t");
        const char *reader = strsep(&rest, " \t");
        const char *slash = strrchr(reader, '/');
        snprintf(file, PATH_MAX, "%s", reader);
        followed = true;
        if (rest && strcmp(slash ? slash + 1 : reader, "env") == 0)
            follow_env(&rest, file);
    }
    return followed;
}

/* Returns whether executing the file raises the user's privileges. The loader ignores LD_PRELOAD for such a
 * file (AT_SECURE). */
static bool raises_rights(const char *file)
{
    struct stat status;
    struct statvfs system;
    if (stat(file, &status) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
        (statvfs(file, &system) == 0 && system.f_flag & ST_NOSUID))
        return false;
    const bool of_other_user = status.st_mode & S_ISUID && status.st_uid != getuid();
    /* Without the group's execute bit, the set-group-ID bit means mandatory locking. */
    const bool of_other_group =
        status.st_mode & S_ISGID && status.st_mode & S_IXGRP && status.st_gid != getgid();
    const bool capable = getuid() != 0 && getxattr(file, "security.capability", NULL, 0) > 0;
    return of_other_user || of_other_group || capable;
}

enum ct_program ct_program_judge(const char *file)
{
    struct ct_elf elf;
    if (raises_rights(file))
        return CT_PROGRAM_SET_ID;
    if (ct_elf_open(&elf, file) != 0)
        return CT_PROGRAM_UNKNOWN;
    enum ct_program program = CT_PROGRAM_UNKNOWN;
    if (!elf.native)
        program = CT_PROGRAM_FOREIGN;
    else if (elf.interpreter && strstr(elf.interpreter, "/ld-musl-"))
        program = CT_PROGRAM_MUSL;
    else if (!elf.interpreter && elf.program) /* excludes the loader, which is a shared object */
        program = CT_PROGRAM_STATIC;
    ct_elf_close(&elf);
    return program;
}

enum ct_program ct_program_inspect(const char *command)
{
    char file[PATH_MAX];
    if (!ct_program_find(command, file))
        return CT_PROGRAM_UNKNOWN;
    ct_program_follow(file);
    return ct_program_judge(file);
}

const char *ct_program_why(enum ct_program program)
{
    switch (program) {
    case CT_PROGRAM_STATIC:
        return "is statically linked: it runs untraced, and only the processes that it starts are traced";
    case CT_PROGRAM_MUSL:
        return "uses musl, where the hook does nothing: it runs untraced, and only the processes that it "
               "starts are traced";
    case CT_PROGRAM_SET_ID:
        return "is set-user-ID, set-group-ID or has capabilities, and therefore ignores LD_PRELOAD: it runs "
               "untraced";
    case CT_PROGRAM_FOREIGN:
        return "is a 32-bit program or for another processor, unlike the hook: it runs untraced";
    case CT_PROGRAM_UNKNOWN:
        break;
    }
    return NULL;
}
