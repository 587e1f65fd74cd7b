/* A library that interposes functions of the C library. The library shifts the clock by an offset that it
 * reads from the environment at the first call, and makes all system calls through syscall() fail. With
 * -DPROGRAM, this is a program that makes a call to the driver and prints the year. */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef PROGRAM

int cuInit(unsigned flags);

int main(void)
{
    struct timespec now;
    struct tm parts;
    if (cuInit(0) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return 1;
    gmtime_r(&now.tv_sec, &parts);
    printf("%d\n", parts.tm_year + 1900);
    return 0;
}

#else

typedef int clock_function(clockid_t clock, struct timespec *time);

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static clock_function *next;
    static long shift;
    if (!next) {
        const char *setting = getenv("CLOCK_SHIFT");
        shift = setting ? atol(setting) : 0;
        next = (clock_function *)(uintptr_t)dlsym(RTLD_NEXT, "clock_gettime");
    }
    const int result = next(clock, time);
    if (result == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += shift;
    return result;
}

long syscall(long number, ...)
{
    (void)number;
    errno = ENOSYS;
    return -1;
}

#endif
