/* The hook's own versions of C library functions. Meson passes this header to every file in hook/ (-include).
 *
 * The hook is initialised before every other library (-z initfirst). Other preloaded libraries interpose C
 * library functions for the clock, files and memory. If the hook called such a function by its symbol, the
 * interposed function would run before its library had been initialised. It might read its settings before
 * the program has an environment, or refuse a system call that it does not know. So the hook makes system
 * calls itself (kernel.c), and finds the other functions in the C library's own symbol table (libc.c).
 *
 * The hook's system calls are not cancellation points. The look-up names no symbol version, so that one file
 * works on every distribution since 2013. The test `hook-symbols` reports a function that is missing here. */
#if !defined(CT_HOOK_LIBC_H) && !defined(__ASSEMBLER__)
#define CT_HOOK_LIBC_H

#include <sys/types.h>

/* These four are declared without their headers. The header of the first two may define them inline
 * (_FORTIFY_SOURCE). The headers of the last two declare functions with floating-point numbers, which are
 * disabled for the hot path. */
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

/* Gives a declared function a symbol of the hook's own. */
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
CT_OWN(pthread_setspecific);
CT_OWN(sysconf);

#endif
