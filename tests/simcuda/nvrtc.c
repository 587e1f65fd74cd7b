/* nvrtc.c: libnvrtc.so, a simulation of NVIDIA's run-time compiler (NVRTC). The library uses the host's C++
 * compiler to turn a program's kernels into host code (device_code.h), which the simulated device runs
 * (sim_kernel.c). The resulting image takes the place of PTX. Kernels that need features that the simulated
 * device lacks are rejected as if they did not compile, and the log contains the compiler's output.
 *
 * NVRTC_CXX is the compiler's command (default: c++). */
#include "compiled.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_COMPILATION = 6,
} nvrtcResult;

typedef struct program {
    char *source;
    int header_count;
    char **headers, **header_names;
    char *log;
    char *image;
    size_t image_bytes;
} * nvrtcProgram;

#define EXPORT __attribute__((visibility("default")))
#define API(result, name, ...)                                                                               \
    EXPORT result name(__VA_ARGS__);                                                                         \
    EXPORT result name(__VA_ARGS__)

extern char **environ;

API(const char *, nvrtcGetErrorString, nvrtcResult result)
{
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    }
    return "NVRTC_ERROR unknown";
}

API(nvrtcResult, nvrtcVersion, int *major, int *minor)
{
    if (!major || !minor)
        return NVRTC_ERROR_INVALID_INPUT;
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

/* ---- programs */

API(nvrtcResult, nvrtcDestroyProgram, nvrtcProgram *program)
{
    if (!program || !*program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    struct program *p = *program;
    for (int i = 0; p->headers && p->header_names && i < p->header_count; i++) {
        free(p->headers[i]);
        free(p->header_names[i]);
    }
    free(p->headers);
    free(p->header_names);
    free(p->source);
    free(p->log);
    free(p->image);
    free(p);
    *program = NULL;
    return NVRTC_SUCCESS;
}

API(nvrtcResult, nvrtcCreateProgram, nvrtcProgram *program, const char *source, const char *name,
    int header_count, const char **headers, const char **header_names)
{
    (void)name;
    if (!program || !source || header_count < 0 || (header_count > 0 && (!headers || !header_names)))
        return NVRTC_ERROR_INVALID_INPUT;
    for (int i = 0; i < header_count; i++)
        if (strchr(header_names[i], '/'))
            return NVRTC_ERROR_INVALID_INPUT; /* not simulated: headers in folders */
    struct program *p = calloc(1, sizeof *p);
    *program = p;
    if (!p)
        return NVRTC_ERROR_OUT_OF_MEMORY;
    p->header_count = header_count;
    p->source = strdup(source);
    p->log = strdup("");
    p->headers = calloc((size_t)header_count + 1, sizeof *p->headers);
    p->header_names = calloc((size_t)header_count + 1, sizeof *p->header_names);
    bool all = p->source && p->log && p->headers && p->header_names;
    for (int i = 0; all && i < header_count; i++)
        all = (p->headers[i] = strdup(headers[i])) && (p->header_names[i] = strdup(header_names[i]));
    if (all)
        return NVRTC_SUCCESS;
    nvrtcDestroyProgram(program);
    return NVRTC_ERROR_OUT_OF_MEMORY;
}

/* ---- compiling, in a temporary folder */

static char *read_file(const char *folder, const char *name, size_t *bytes)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    char *content = NULL;
    *bytes = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && (content = calloc(1, (size_t)status.st_size + 1)))
        for (ssize_t n; (n = read(fd, content + *bytes, (size_t)status.st_size - *bytes)) > 0;)
            *bytes += (size_t)n;
    if (fd >= 0)
        close(fd);
    return content;
}

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "wxe");
}

static bool write_file(const char *folder, const char *name, const char *text)
{
    FILE *file = create(folder, name);
    const bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written;
}

/* Runs the compiler in `folder`, with its output redirected to the file "log". The compiler's environment has
 * no variables for the loader, such as LD_PRELOAD. */
static bool run(const char *folder, char *const *command)
{
    char log[4096];
    snprintf(log, sizeof log, "%s/log", folder);
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **environment = calloc(count + 1, sizeof *environment);
    if (!environment)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "LD_", 3) != 0)
            environment[kept++] = environ[i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t compiler;
    int status = -1;
    if (posix_spawnp(&compiler, command[0], &actions, NULL, command, environment) == 0)
        while (waitpid(compiler, &status, 0) < 0 && errno == EINTR)
            continue;
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return status == 0;
}

/* Writes the preprocessed program, followed by a description of each kernel. Finds the kernels by looking for
 * `__global__ void NAME(`. */
static bool write_kernels(const char *folder, const char *text)
{
    FILE *file = create(folder, "kernels.cc");
    if (!file)
        return false;
    fputs(text, file);
    for (const char *at = text; (at = strstr(at, "__global__"));) {
        at += strlen("__global__");
        at += strspn(at, " \n\t");
        if (strncmp(at, "void", 4) != 0)
            continue;
        at += 4 + strspn(at + 4, " \n\t");
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
        fprintf(file, "\nSIMCUDA_KERNEL(%.*s)", (int)length, at);
    }
    fputs("\n", file);
    return fclose(file) == 0;
}

static bool compile(struct program *p, const char *folder)
{
    char out[4096], in[4096], kernels[4096], object[4096], include[4096];
    snprintf(in, sizeof in, "%s/program.cu", folder);
    snprintf(out, sizeof out, "%s/program.cc", folder);
    snprintf(kernels, sizeof kernels, "%s/kernels.cc", folder);
    snprintf(object, sizeof object, "%s/object", folder);
    snprintf(include, sizeof include, "-I%s", folder);
    const char *named = getenv("NVRTC_CXX");
    char *compiler = (char *)(uintptr_t)(named ? named : "c++");
    bool done = write_file(folder, "program.cu", p->source);
    for (int i = 0; done && i < p->header_count; i++)
        done = write_file(folder, p->header_names[i], p->headers[i]);
    char *preprocess[] = { compiler, "-E", "-P", "-x", "c++", "-D__CUDACC__", "-D__CUDA_ARCH__=900",
                           include,  in,   "-o", out,  NULL };
    /* The linker drops functions that no kernel calls, together with their references to features that the
     * device lacks. */
    char *make[] = { compiler,
                     "-std=c++14",
                     "-O1",
                     "-w",
                     "-fPIC",
                     "-shared",
                     "-fvisibility=hidden",
                     "-ffunction-sections",
                     "-nostdlib",
                     "-Wl,--gc-sections",
                     "-Wl,-z,defs",
                     "-include",
                     DEVICE_CODE,
                     kernels,
                     "-o",
                     object,
                     "-lc",
                     "-lm",
                     NULL };
    size_t bytes;
    done = done && run(folder, preprocess);
    char *text = done ? read_file(folder, "program.cc", &bytes) : NULL;
    done = text && write_kernels(folder, text) && run(folder, make);
    free(text);
    char *built = done ? read_file(folder, "object", &bytes) : NULL;
    char *image = built ? malloc(sizeof(struct compiled_image) + bytes) : NULL;
    if (image) {
        const struct compiled_image head = { .magic = COMPILED_MAGIC, .object_bytes = bytes };
        memcpy(image, &head, sizeof head);
        memcpy(image + sizeof head, built, bytes);
        free(p->image);
        p->image = image;
        p->image_bytes = sizeof head + bytes;
    }
    free(built);
    char *said = read_file(folder, "log", &bytes);
    if (said) {
        free(p->log);
        p->log = said;
    }
    return image;
}

static void remove_folder(const struct program *p, const char *folder)
{
    static const char *const made[] = { "program.cu", "program.cc", "kernels.cc", "object", "log" };
    char path[4096];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        unlink(path);
    }
    for (int i = 0; i < p->header_count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, p->header_names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* The options are ignored, because they are meant for a real device. */
API(nvrtcResult, nvrtcCompileProgram, nvrtcProgram program, int option_count, const char *const *options)
{
    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (option_count < 0 || (option_count > 0 && !options))
        return NVRTC_ERROR_INVALID_INPUT;
    const char *scratch = getenv("TMPDIR");
    char folder[2048];
    snprintf(folder, sizeof folder, "%s/simcuda-nvrtc-XXXXXX", scratch && *scratch ? scratch : "/tmp");
    if (!mkdtemp(folder))
        return NVRTC_ERROR_OUT_OF_MEMORY;
    const bool compiled = compile(program, folder);
    remove_folder(program, folder);
    return compiled ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

/* ---- the results */

API(nvrtcResult, nvrtcGetProgramLogSize, nvrtcProgram program, size_t *bytes)
{
    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!bytes)
        return NVRTC_ERROR_INVALID_INPUT;
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

API(nvrtcResult, nvrtcGetProgramLog, nvrtcProgram program, char *log)
{
    if (!program)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!log)
        return NVRTC_ERROR_INVALID_INPUT;
    strcpy(log, program->log);
    return NVRTC_SUCCESS;
}

API(nvrtcResult, nvrtcGetPTXSize, nvrtcProgram program, size_t *bytes)
{
    if (!program || !program->image)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!bytes)
        return NVRTC_ERROR_INVALID_INPUT;
    *bytes = program->image_bytes;
    return NVRTC_SUCCESS;
}

API(nvrtcResult, nvrtcGetPTX, nvrtcProgram program, char *ptx)
{
    if (!program || !program->image)
        return NVRTC_ERROR_INVALID_PROGRAM;
    if (!ptx)
        return NVRTC_ERROR_INVALID_INPUT;
    memcpy(ptx, program->image, program->image_bytes);
    return NVRTC_SUCCESS;
}
