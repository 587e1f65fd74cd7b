/* The hook's own versions of C library functions. Meson passes this header to every file in hook/ (-include).
 *
 * The hook is initialised before every other library (-z initfirst). Other preloaded libraries may interpose
 * C library functions for the clock, files and memory. If the hook called such a function by its symbol, the
 * interposer would run before its library had been initialised. It might then read its settings before the
 * program has an environment, or reject a system call that it does not know. The hook therefore makes system
 * calls itself (kernel.c), and finds all other functions in the C library's own symbol table (libc.c).
 *
 * The hook's system calls are not cancellation points. Symbols are looked up without a version, so that one
 * binary works on every distribution released since 2013. The test `hook-symbols` reports any C library
 * function that is missing here. */
#if !defined(CT_HOOK_LIBC_H) && !defined(__ASSEMBLER__)
#define CT_HOOK_LIBC_H

#include <sys/types.h>

/* These four functions are declared without including their headers. The header <unistd.h> may define read()
 * and readlink() inline (_FORTIFY_SOURCE). The headers <stdlib.h> and <stdio.h> declare functions that take
 * floating-point numbers, which the hot path's compiler options disable. */
extern ssize_t read(int fd, void *bytes, size_t count) __asm__("ct_own_read");
extern ssize_t readlink(const char *path, char *text, size_t bytes) __asm__("ct_own_readlink");
extern char *getenv(const char *name) __asm__("ct_own_getenv");
extern int snprintf(char *text, size_t bytes, const char *format, ...) __asm__("ct_own_snprintf");

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

/* Gives an already declared function the hook's own symbol name. */
#define CT_OWN(name) extern __typeof__(name) name __asm__("ct_own_" #name)

CT_OWN(clock_nanosleep);
CT_OWN(close);
CT_OWN(fchmod);
CT_OWN(fcntl);
CT_OWN(fstatfs);
CT_OWN(getrlimit);
CT_OWN(linkat);
CT_OWN(madvise);
CT_OWN(mmap);
CT_OWN(mprotect);
CT_OWN(mremap);
CT_OWN(munmap);
CT_OWN(open);
CT_OWN(sendto);
CT_OWN(sigaltstack);
CT_OWN(socket);
CT_OWN(syscall);
CT_OWN(unlink);
CT_OWN(utimensat);

CT_OWN(clock_gettime);
CT_OWN(dladdr);
CT_OWN(dlinfo);
CT_OWN(dlmopen);
CT_OWN(dlopen);
CT_OWN(posix_fallocate);
CT_OWN(pthread_key_create);
CT_OWN(pthread_mutex_lock);
CT_OWN(pthread_mutex_unlock);
CT_OWN(pthread_setcancelstate);
CT_OWN(pthread_setcanceltype);
CT_OWN(pthread_setspecific);
CT_OWN(sysconf);

#endif
