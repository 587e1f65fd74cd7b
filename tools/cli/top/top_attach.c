#include "top_attach.h"

#include "printable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_text(struct ct_top_attach *attach, const char *text)
{
    static const char name[] = "cudatrace: ";
    char *printable = ct_printable(text, strlen(text));
    const char *message = printable ? printable : "";
    if (strncmp(message, name, strlen(name)) == 0)
        message += strlen(name);
    snprintf(attach->text, sizeof(attach->text), "%s", message);
    free(printable);
}

static void become_attach(const struct ct_top *top, pid_t pid, int output)
{
    char number[16];
    const bool is_named = top->choice.session_option != NULL;
    snprintf(number, sizeof(number), "%d", (int)pid);
    /* Pass --session for a named session, because users may not know which trace the system daemon writes. */
    const char *argv[] = { "cudatrace",
                           "attach",
                           "--stay",
                           "--shm-dir",
                           top->choice.shm_dir,
                           is_named ? "--session" : "--db",
                           is_named ? top->choice.session : top->series.path[0],
                           number,
                           NULL };
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    dprintf(STDERR_FILENO, "cannot start `cudatrace attach`: %s\n", strerror(errno));
    _exit(EXIT_FAILURE);
}

void ct_top_attach_start(struct ct_top_attach *attach, const struct ct_top *top, pid_t pid)
{
    char text[96];
    if (attach->child)
        return;
    attach->output = memfd_create("cudatrace-top", MFD_CLOEXEC);
    attach->child = attach->output < 0 ? -1 : fork();
    if (attach->child == 0)
        become_attach(top, pid, attach->output);
    snprintf(text, sizeof(text), "attach: process %d …", (int)pid);
    if (attach->child < 0) {
        snprintf(text, sizeof(text), "cannot start `cudatrace attach`: %s", strerror(errno));
        attach->child = 0;
        if (attach->output >= 0)
            close(attach->output);
    }
    set_text(attach, text);
}

/* Reads the last line of the command's output, to be shown on the screen. */
static void read_output(struct ct_top_attach *attach)
{
    char said[4096];
    struct stat file = { 0 };
    const off_t most = (off_t)sizeof(said) - 1;
    fstat(attach->output, &file);
    ssize_t n = pread(attach->output, said, (size_t)most, file.st_size > most ? file.st_size - most : 0);
    while (n > 0 && said[n - 1] == '\n')
        n--;
    if (n <= 0)
        return;
    said[n] = '\0';
    const char *line = strrchr(said, '\n');
    set_text(attach, line ? line + 1 : said);
}

bool ct_top_attach_look(struct ct_top_attach *attach)
{
    int status;
    if (!attach->child)
        return false;
    const pid_t ended = waitpid(attach->child, &status, WNOHANG);
    read_output(attach);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return false;
    close(attach->output);
    attach->child = 0;
    return true;
}
