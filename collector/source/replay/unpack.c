#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
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

static int fail(char *why, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int fail(char *why, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, bytes, format, arguments);
    va_end(arguments);
    return -1;
}

static int fail_temporary(char *why, size_t bytes)
{
    return fail(why, bytes, "cannot be decompressed: cannot write a temporary file in '%.200s': %s",
                ct_nameless_folder(), strerror(errno));
}

/* Copies the decompressed data. Returns 0, or -1 with the rest of a sentence in `why`. If only the end of the
 * data cannot be read, returns 0, but also writes to `why`. */
static int copy(gzFile from, int to, char *why, size_t bytes)
{
    char *piece = malloc(PIECE_BYTES);
    int error = piece ? 0 : fail(why, bytes, "cannot be decompressed: out of memory"), n = 1;
    long long copied = 0;
    while (!error && (n = gzread(from, piece, PIECE_BYTES)) > 0) {
        if (!write_all(to, piece, (size_t)n))
            error = fail_temporary(why, bytes);
        copied += n;
    }
    free(piece);
    /* For some truncated files, only gzclose() fails. */
    const bool is_whole = gzclose(from) == Z_OK && n == 0;
    if (!is_whole && !error)
        fail(why, bytes, "is damaged or truncated: its decompression stops after %lld bytes", copied);
    return !is_whole && copied == 0 ? -1 : error;
}

const char *ct_nameless_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/var/tmp";
}

int ct_nameless_file(void)
{
    return open(ct_nameless_folder(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

int ct_unpack(int fd, char *why, size_t bytes)
{
    why[0] = '\0';
    const int to = ct_nameless_file();
    const int own = to >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
    gzFile from = own >= 0 && lseek(own, 0, SEEK_SET) == 0 ? gzdopen(own, "rb") : NULL;
    const int error = from ? copy(from, to, why, bytes) : fail_temporary(why, bytes);
    if (!from && own >= 0)
        close(own);
    if (!error)
        return to;
    if (to >= 0)
        close(to);
    return -1;
}
