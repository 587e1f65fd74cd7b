/* Fuzzes the conversion of JSON lines to a trace's frames. For any input, the replay must accept the
 * resulting frames. The frames must describe the process, thread and function of each event before the event
 * itself. */
#include "dump_file.h"
#include "known.h"
#include "test_point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void ct_test_point(const char *name)
{
    (void)name;
}

static void fail(const char *what, long long number)
{
    fprintf(stderr, "lines: %s: %lld\n", what, number);
    abort();
}

static void check_frame(struct ct_known *known, const struct ct_dump_file *file)
{
    size_t at = 0;
    struct ct_dump_view view;
    if (file->head.bytes == 0 || file->head.bytes > CT_DUMP_FRAME_MAX)
        fail("a frame of so many bytes", (long long)file->head.bytes);
    while (ct_dump_view(file, &at, &view)) {
        if (!ct_known_learn(known, &view))
            fail("an event that is refused, of type", view.type);
    }
    if (at != file->head.bytes)
        fail("no event at byte", (long long)at);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    const int fd = memfd_create("lines", MFD_CLOEXEC);
    if (fd < 0 || write(fd, input, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
        fail("a file in memory cannot be written", (long long)size);
    struct ct_dump_file file = { 0 };
    file.lines = ct_json_lines_open(fd, 0, false, &file.dropped);
    struct ct_known known;
    char problem[192] = "";
    const struct ct_dump_frame *frame;
    ct_known_init(&known);
    while ((frame = ct_json_lines_next(file.lines, problem, sizeof(problem)))) {
        file.head = *frame;
        file.events = (const uint8_t *)(frame + 1);
        check_frame(&known, &file);
    }
    ct_known_finish(&known);
    ct_json_lines_close(file.lines);
    return 0;
}
