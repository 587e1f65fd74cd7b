/* A program that uses musl instead of glibc, and therefore loads the hook but is not traced. The program
 * tests the functions that the hook interposes. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int status_of(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
    char name[17] = "";
    int bytes = -1, pipes[2];
    printf("dlsym: %d %d\n", dlsym(RTLD_DEFAULT, "printf") != NULL, dlsym(RTLD_DEFAULT, "cuNoSuch") == NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(5);
    printf("fork: %d\n", status_of(child));
    child = vfork();
    if (child == 0)
        _exit(6);
    printf("vfork: %d\n", status_of(child));
    errno = 0;
    const int failed = ioctl(-1, 0x4600, NULL);
    printf("ioctl: %d %d", failed, errno == EBADF);
    printf(" %d\n",
           pipe(pipes) == 0 && write(pipes[1], "12", 2) == 2 && ioctl(pipes[0], FIONREAD, &bytes) == 0 ? bytes
                                                                                                       : -1);
    errno = 0;
    const long refused = syscall(SYS_close, -1);
    printf("syscall: %d %ld %d\n", syscall(SYS_getpid) == getpid(), refused, errno == EBADF);
    prctl(PR_SET_NAME, "musl", 0, 0, 0);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    printf("prctl: %s\n", name);
    fflush(stdout);
    _exit(7);
}
