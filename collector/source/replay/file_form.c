#include "file_form.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD_BYTES = 256 * 1024 }; /* where the format must be recognisable */

/* A byte string and its length. */
#define BEGIN(text) text, sizeof(text) - 1
static const struct {
    const char *begin;
    size_t bytes;
    const char *name;
} others[] = {
    { BEGIN("SQLite format 3"),
      "is an SQLite database: read it with `cudatrace sql --db`, or import the files that it was made from" },
    { BEGIN("\n"), "is a binary file, perhaps a Perfetto trace: import JSON lines (cudatrace export --format "
                   "jsonl) instead" },
    { BEGIN("call_id,"),
      "is a table of `cudatrace export --format csv`: import JSON lines (--format jsonl) instead" },
    { BEGIN("\xff\xfe"), "is text in UTF-16: save it as UTF-8" },
    { BEGIN("\xfe\xff"), "is text in UTF-16: save it as UTF-8" },
    { BEGIN("\x28\xb5\x2f\xfd"), "is compressed by zstd: decompress it first" },
    { BEGIN("\xfd"
            "7zXZ"),
      "is compressed by xz: decompress it first" },
    { BEGIN("BZh"), "is compressed by bzip2: decompress it first" },
    { BEGIN("PK\x03\x04"), "is a zip archive: extract the file first" },
};

static const char events[] = "\"traceEvents\"";

/* In JSON lines, each line is a complete object. A document has a member for its events, on the first or a
 * later line. */
static enum ct_file_form form_of_object(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\n', bytes);
    json_t *line = json_loadb(text, end ? (size_t)(end - text) : bytes, 0, NULL);
    const bool is_document = line ? json_object_get(line, "traceEvents") != NULL
                                  : memmem(text, bytes, events, sizeof(events) - 1) != NULL;
    json_decref(line);
    return is_document ? CT_FORM_CHROME : CT_FORM_LINES;
}

static enum ct_file_form form_of(const char *text, size_t bytes, int64_t *from, const char **name)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t marked = sizeof(mark) - 1;
    *from = bytes >= marked && memcmp(text, mark, marked) == 0 ? (int64_t)marked : 0;
    size_t at = (size_t)*from;
    while (at < bytes && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    if (at < bytes && text[at] == '[')
        return CT_FORM_CHROME;
    if (at < bytes && text[at] == '{')
        return form_of_object(text + at, bytes - at);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        *name = others[i].name;
        if (bytes >= others[i].bytes && memcmp(text, others[i].begin, others[i].bytes) == 0)
            return CT_FORM_OTHERS;
    }
    return CT_FORM_UNKNOWN;
}

enum ct_file_form ct_file_form(int fd, int64_t *from, const char **name)
{
    char *text = malloc(HEAD_BYTES);
    const ssize_t got = text ? pread(fd, text, HEAD_BYTES, 0) : 0;
    const enum ct_file_form form =
        text ? form_of(text, got > 0 ? (size_t)got : 0, from, name) : CT_FORM_NO_MEMORY;
    free(text);
    return form;
}
