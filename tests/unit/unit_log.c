/* Tests that if lines of one kind are logged too often, that kind is suppressed for a minute. Then the number
 * of suppressed lines is logged once, and lines of that kind are logged again. */
#include "clock.h"
#include "log.h"

#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURST = 50, LINES = 65 };

static char path[] = "/tmp/unit-log-XXXXXX";

/* Returns the number of log lines that contain `text`. */
static int count(const char *text)
{
    char line[1024];
    int found = 0;
    FILE *log = fopen(path, "r");
    assert(log);
    while (fgets(line, sizeof(line), log))
        found += strstr(line, text) != NULL;
    fclose(log);
    return found;
}

int main(void)
{
    const int fd = mkstemp(path);
    assert(fd >= 0);
    close(fd);
    ct_log_to(path);
    for (int i = 0; i < LINES; i++)
        ct_log(CT_LOG_segment_refused, "segment %d", i);
    assert(count("warning: segment") == BURST && count("suppressed") == 0);
    ct_log_catch_up(ct_monotonic_ns()); /* this kind's minute has not yet passed */
    assert(count("suppressed") == 0);
    errno = ENOSPC;
    ct_log(CT_LOG_database_failed, "another kind");
    assert(errno == ENOSPC);
    assert(count("error: another kind") == 1);

    /* A message must remain on one line, and must not contain anything that a terminal would interpret. */
    ct_log(CT_LOG_database_failed, "%s", "gr\xc3\xbc\xc3\x9f \x1b[2J\n \xd8\x9c \xe2\x80\xae \xe4\xb8");
    assert(count("error: gr\xc3\xbc\xc3\x9f \\x1b[2J\\x0a \\xd8\\x9c \\xe2\\x80\\xae \\xe4\\xb8\n") == 1);

    const uint64_t later_ns = ct_monotonic_ns() + UINT64_C(61000000000);
    ct_log_catch_up(later_ns);
    ct_log_catch_up(later_ns);
    assert(count("suppressed") == 1 &&
           count("warning: 15 similar messages suppressed (segment_refused)") == 1);
    ct_log(CT_LOG_segment_refused, "segment again");
    assert(count("segment again") == 1);

    ct_log(CT_LOG_serving, "unwanted");
    ct_log_set_level(CT_LOG_ERROR);
    ct_log(CT_LOG_database_back, "unwanted");
    assert(count("unwanted") == 0);

    char quoted[CT_LOG_NAME_BYTES], name[2000];
    assert(strcmp(ct_log_quote(quoted, "a\"b\\c"), "\"a\\\"b\\\\c\"") == 0);
    memset(name, '"', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    ct_log_quote(quoted, name);
    assert(strlen(quoted) < sizeof(quoted) && quoted[strlen(quoted) - 1] == '"');
    /* A long string must not be truncated in the middle of an escape. */
    assert(strlen(quoted) % 2 == 0);
    unlink(path);
    return 0;
}
