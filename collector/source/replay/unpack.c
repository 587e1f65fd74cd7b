#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE_BYTES = 256 * 1024 };

bool ct_is_packed(int fd)
{
    unsigned char begin[3] = { 0 };
    return pread(fd, begin, sizeof(begin), 0) == sizeof(begin) && begin[0] == 0x1f && begin[1] == 0x8b &&
           begin[2] == 8;
}

static bool write_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(fd, from, bytes);
        if (n < 0 && errno != EINTR)
            return false;
        from += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Returns NULL, or why the copy is incomplete. */
static const char *copy(gzFile from, int to)
{
    char *piece = malloc(PIECE_BYTES);
    const char *why = piece ? NULL : "cannot be unpacked: out of memory";
    for (int n = 1; !why && n > 0;) {
        n = gzread(from, piece, PIECE_BYTES);
        if (n > 0 && !write_all(to, piece, (size_t)n))
            why = "cannot be unpacked: the file system of $TMPDIR, or of /var/tmp, is full";
        else if (n < 0)
            why = "is damaged or cut short, so that gzip cannot unpack it";
    }
    free(piece);
    /* For some truncated files, only this fails. */
    if (gzclose(from) != Z_OK && !why)
        why = "is damaged or cut short, so that gzip cannot unpack it";
    return why;
}

int ct_nameless_file(void)
{
    const char *folder = getenv("TMPDIR");
    return open(folder && *folder ? folder : "/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

int ct_unpack(int fd, const char **why)
{
    const int to = ct_nameless_file();
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    gzFile from = to >= 0 && own >= 0 && lseek(own, 0, SEEK_SET) == 0 ? gzdopen(own, "rb") : NULL;
    *why = from ? copy(from, to) : "cannot be unpacked: no file can be made in $TMPDIR, or /var/tmp";
    if (!from && own >= 0)
        close(own);
    if (!*why)
        return to;
    if (to >= 0)
        close(to);
    return -1;
}
