/*
 * selftest.c: runs the tests of the simulated driver, or those named, each in a process of its own.
 *
 *     simcuda-selftest SOURCE_FOLDER [NAME...]
 */
#include "selftest.h"

#include <dirent.h>
#include <limits.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct selftest *const files[] = { entry_tests, memory_tests, stream_tests, graph_tests };

static const char *sources;

const char *source_folder(void)
{
    return sources;
}

const char *temporary(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", getenv("SELFTEST_TMP"), name);
    return path;
}

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

CUcontext start(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    return context;
}

CUfunction get_function(const char *name)
{
    static CUmodule module;
    CUfunction function;
    if (!module)
        OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static const struct selftest *find(const char *name)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (const struct selftest *test = files[i]; test->name; test++)
            if (!strcmp(test->name, name))
                return test;
    return NULL;
}

static void set_environment(const char *environment, const char *folder)
{
    char *list = strdup(environment), *rest = list;
    for (char *item; (item = strsep(&rest, " "));) {
        char *value = strchr(item, '='), expanded[PATH_MAX];
        *value++ = '\0';
        if (!strncmp(value, "$TMP", 4)) {
            snprintf(expanded, sizeof expanded, "%s%s", folder, value + 4);
            value = expanded;
        }
        setenv(item, value, 1);
    }
    free(list);
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static int run(const struct selftest *test, const char *self)
{
    char folder[] = "/tmp/simcuda-selftest.XXXXXX";
    if (!mkdtemp(folder))
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        setenv("SELFTEST_TMP", folder, 1);
        if (test->environment)
            set_environment(test->environment, folder);
        execl(self, self, sources, "--inside", test->name, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    waitpid(child, &status, 0);
    remove_folder(folder);
    const int failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    printf("%s %s\n", failed ? "FAILED" : "ok    ", test->name);
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SOURCE_FOLDER [TEST...]\n", argv[0]);
        return 2;
    }
    sources = argv[1];
    if (argc == 4 && !strcmp(argv[2], "--inside")) {
        find(argv[3])->run();
        return 0;
    }
    int failures = 0;
    for (int i = 2; i < argc; i++) {
        const struct selftest *test = find(argv[i]);
        if (!test)
            fprintf(stderr, "%s: no such test\n", argv[i]);
        failures += test ? run(test, argv[0]) : 1;
    }
    for (size_t i = 0; argc == 2 && i < sizeof files / sizeof *files; i++)
        for (const struct selftest *test = files[i]; test->name; test++)
            failures += run(test, argv[0]);
    return failures > 0;
}
