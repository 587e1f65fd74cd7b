/* Tests that if a mapped file has been truncated, reading the missing part returns zeros, and marks the
 * file's guard as poisoned, but does not end the process with SIGBUS. */
#include "cut_guard.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 4 * 4096 };

static void fail(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

int main(void)
{
    const int fd = memfd_create("guarded", 0);
    if (fd < 0 || ftruncate(fd, BYTES) != 0)
        fail("memfd_create");
    char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        fail("mmap");
    memset(map, 'x', BYTES);
    static char elsewhere;
    ct_guard_install();
    struct ct_guard *guard = ct_guard_add(map, BYTES), *other = ct_guard_add(&elsewhere, 1);
    if (!guard || !other || ((volatile char *)map)[BYTES - 1] != 'x' || guard->poisoned)
        fail("an intact file");
    if (ftruncate(fd, 4096) != 0)
        fail("ftruncate");
    char copy[BYTES];
    memcpy(copy, map, BYTES);
    if (copy[0] != 'x' || copy[4095] != 'x' || copy[4096] != 0 || copy[BYTES - 1] != 0)
        fail("what is read of a file that was cut");
    if (!guard->poisoned || other->poisoned)
        fail("the mark");
    ct_guard_remove(other);
    ct_guard_remove(guard);
    guard = ct_guard_add(&elsewhere, 1);
    if (!guard || guard->poisoned)
        fail("a guard that is used again");
    return EXIT_SUCCESS;
}
