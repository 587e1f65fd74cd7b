/* Tests the names of a trace's files: converting a name to a file number, and a file number to a name. */
#include "trace_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures;

static void equal_number(const char *what, uint32_t seen, uint32_t wanted)
{
    if (seen == wanted)
        return;
    printf("%s is %u and should be %u\n", what, seen, wanted);
    failures++;
}

static void names(void)
{
    static const struct {
        const char *trace, *second;
    } cases[] = {
        { "/a/trace.db", "/a/trace.2.db" }, { "trace.db", "trace.2.db" },
        { "/a.b/trace", "/a.b/trace.2" },   { "/a/.trace", "/a/.trace.2" },
        { "/a/x.y.db", "/a/x.y.2.db" },     { "/a/run.2.db", "/a/run.2.2.db" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[64];
        ct_trace_file(name, sizeof(name), cases[i].trace, 1);
        equal_number(name, (uint32_t)strcmp(name, cases[i].trace), 0);
        ct_trace_file(name, sizeof(name), cases[i].trace, 2);
        equal_number(name, (uint32_t)strcmp(name, cases[i].second), 0);
        const char *slash = strrchr(name, '/');
        equal_number(name, ct_trace_file_number(cases[i].trace, slash ? slash + 1 : name), 2);
        char first[64];
        uint32_t number = 0;
        equal_number("a number in it", ct_trace_split(name, first, sizeof(first), &number), true);
        equal_number("that number", number, 2);
        equal_number(first, (uint32_t)strcmp(first, cases[i].trace), 0);
    }
    char small[8];
    const size_t volatile bytes = sizeof(small); /* keeps the compiler from noticing that the buffer is too
                                                  * small */
    equal_number("room for a long name", ct_trace_file(small, bytes, "trace.db", 2), false);
}

static void numbers(void)
{
    static const struct {
        const char *name;
        uint32_t number;
    } cases[] = {
        { "trace.db", 1 },
        { "trace.7.db", 7 },
        { "trace.12345.db", 12345 },
        { "trace.1.db", 0 },
        { "trace.07.db", 0 },
        { "trace.0.db", 0 },
        { "trace.2.db-wal", 0 },
        { "trace.db-wal", 0 },
        { "trace.db.log", 0 },
        { "trace.2x.db", 0 },
        { "trace.2.3.db", 0 },
        { "trace..db", 0 },
        { "trace.-2.db", 0 },
        { "trace. 2.db", 0 },
        { "other.2.db", 0 },
        { "tracer.2.db", 0 },
        { "trace.2", 0 },
        { "", 0 },
        { "trace.4294967295.db", 0 },
        { "trace.99999999999999999999.db", 0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        equal_number(cases[i].name, ct_trace_file_number("/a/trace.db", cases[i].name), cases[i].number);
    char first[64];
    uint32_t number;
    static const char *const whole[] = { "/a/trace.db", "/a/2.db",       "/a/.2.db",
                                         "2.db",        "/a.2/trace.db", "/a/v2.db" };
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        equal_number(whole[i], ct_trace_split(whole[i], first, sizeof(first), &number), false);
}

static void folder(void)
{
    char folder[] = "/tmp/unit-trace-files-XXXXXX", path[64];
    if (!mkdtemp(folder))
        return;
    static const char *const made[] = { "trace.2.db", "trace.9.db", "trace.10.db", "trace.10.db-wal",
                                        "trace.x.db" };
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    snprintf(path, sizeof(path), "%s/trace.db", folder);
    const uint32_t own = ct_real_euid(), other = own + 1;
    const uint32_t *const owners[] = { NULL, &own };
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        equal_number("the newest", ct_trace_file_before(path, UINT32_MAX, owners[i]), 10);
        equal_number("before it", ct_trace_file_before(path, 10, owners[i]), 9);
        equal_number("before that", ct_trace_file_before(path, 9, owners[i]), 2);
        equal_number("before the oldest", ct_trace_file_before(path, 2, owners[i]), 0);
    }
    equal_number("of another user", ct_trace_file_before(path, UINT32_MAX, &other), 0);
    equal_number("foreign", ct_trace_file_is_foreign(path, 9, other), true);
    equal_number("foreign and absent", ct_trace_file_is_foreign(path, 3, other), false);
    equal_number("foreign to its owner", ct_trace_file_is_foreign(path, 9, own), false);
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
        unlink(path);
    }
    rmdir(folder);
    equal_number("in no folder", ct_trace_file_before(path, UINT32_MAX, NULL), 0);
}

/* All names of the same trace must compare as equal, whether or not the trace exists yet. No name of another
 * trace may compare as equal to a name of this trace. */
static void identity(void)
{
    char root[] = "/tmp/unit-trace-files-XXXXXX", before[PATH_MAX];
    if (!mkdtemp(root) || !getcwd(before, sizeof(before)) || chdir(root) != 0 || mkdir("sub", 0700) != 0 ||
        symlink(root, "round") != 0 || symlink("sub/other.db", "link.db") != 0) {
        failures++;
        return;
    }
    static const struct {
        const char *name, *of;
        bool is_same;
    } cases[] = {
        { "./a.db", "a.db", true },          { "round/a.db", "a.db", true },
        { "sub/../a.db", "a.db", true },     { "round/round/sub/../a.db", "a.db", true },
        { "sub/a.db", "a.db", false },       { "b.db", "a.db", false },
        { "link.db", "sub/other.db", true },
    };
    for (int there = 0; there < 2; there++) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            const bool is_link = strcmp(cases[i].name, "link.db") == 0;
            equal_number(cases[i].name, ct_trace_identity(cases[i].name) == ct_trace_identity(cases[i].of),
                         is_link ? (uint32_t)there : cases[i].is_same);
            equal_number(cases[i].name, ct_trace_identity(cases[i].name) != 0, true);
        }
        close(open("a.db", O_CREAT | O_WRONLY, 0600));
        close(open("sub/other.db", O_CREAT | O_WRONLY, 0600));
    }
    equal_number("in no folder", ct_trace_identity("nowhere/a.db") == 0, true);
    static const char *const made[] = { "a.db", "sub/other.db", "link.db", "round" };
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
        unlink(made[i]);
    rmdir("sub");
    failures += chdir(before) != 0;
    rmdir(root);
}

int main(void)
{
    names();
    numbers();
    folder();
    identity();
    return failures > 0;
}
