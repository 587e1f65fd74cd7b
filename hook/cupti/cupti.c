/* Finds CUPTI. The program's own libcupti comes first, because a process should have only one. Otherwise, the
 * libcupti that was installed together with the program's libcudart fits it best. */
#include "cupti.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The names of the library, by major version of CUDA. Version 11 has a name for each release. */
static const struct {
    int major;
    const char *name;
} sonames[] = {
    { 13, "libcupti.so.13" },   { 12, "libcupti.so.12" },   { 11, "libcupti.so.11.8" },
    { 11, "libcupti.so.11.7" }, { 11, "libcupti.so.11.6" }, { 11, "libcupti.so.11.5" },
    { 11, "libcupti.so.11.4" }, { 11, "libcupti.so.11.3" }, { 11, "libcupti.so.11.2" },
    { 11, "libcupti.so.11.1" }, { 11, "libcupti.so.11.0" },
};
enum { SONAMES = sizeof(sonames) / sizeof(*sonames) };

/* The folders of libcupti, relative to the folder of libcudart. Toolkits, nvidia/cu13/lib and Conda have both
 * in one folder. Older toolkits, and the wheels for CUDA 11 and 12, have libcupti in a separate folder. */
static const char *const beside_runtime[] = {
    "",
    "../extras/CUPTI/lib64/",
    "../../cuda_cupti/lib/",
};
/* The folders of libcupti if there is no libcudart. "" means the loader's search path. */
static const char *const elsewhere[] = {
    "",
    "/usr/local/cuda/lib64/",
    "/usr/local/cuda/extras/CUPTI/lib64/",
};

enum { MAPPED_MAX = 4 };
struct loaded {
    char runtime[PATH_MAX]; /* of libcudart; "" if there is none */
    int major;              /* of libcudart; 0 if unknown */
    char cupti[MAPPED_MAX][PATH_MAX];
    int cuptis;
};

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Returns the number after ".so.", or 0. */
static int major_of(const char *name)
{
    const char *suffix = strstr(name, ".so.");
    int major = 0;
    for (const char *digit = suffix ? suffix + 4 : ""; *digit >= '0' && *digit <= '9' && major < 1000;
         digit++)
        major = 10 * major + (*digit - '0');
    return major;
}

static bool begins(const char *name, const char *beginning)
{
    return strncmp(name, beginning, strlen(beginning)) == 0;
}

static bool note_object(const char *path, const char *soname, void *data)
{
    struct loaded *loaded = data;
    const char *name = file_name(path);
    if (strlen(path) >= PATH_MAX)
        return false;
    if (begins(name, "libcupti.so") && loaded->cuptis < MAPPED_MAX)
        strcpy(loaded->cupti[loaded->cuptis++], path);
    if (begins(name, "libcudart") && !loaded->runtime[0]) {
        strcpy(loaded->runtime, path);
        loaded->major = major_of(soname ? soname : name);
    }
    return false;
}

static bool bind(const struct ct_gpu_host *host, void *library, struct ct_cupti *cupti)
{
#define FUNCTION(name_, necessary, parameters)                                                               \
    cupti->name_ = (__typeof__(cupti->name_))(uintptr_t)host->symbol(library, "cupti" #name_);               \
    if ((necessary) && !cupti->name_)                                                                        \
        return false;
    CT_CUPTI_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return true;
}

struct search {
    const struct ct_gpu_host *host;
    bool (*use)(const struct ct_cupti *cupti, void *data);
    void *data;
    struct loaded loaded;
};

static bool use_file(struct search *search, const char *path)
{
    void *library = search->host->open(path);
    struct ct_cupti cupti;
    return library && bind(search->host, library, &cupti) && search->use(&cupti, search->data);
}

static bool use_in(struct search *search, const char *folder, int folder_bytes, const char *below,
                   const char *name)
{
    char path[PATH_MAX];
    const int bytes = snprintf(path, sizeof(path), "%.*s%s%s", folder_bytes, folder, below, name);
    return bytes < (int)sizeof(path) && use_file(search, path);
}

/* Tries the libraries of one major version, or of all other versions. */
static bool use_version(struct search *search, int major, bool others)
{
    const struct loaded *loaded = &search->loaded;
    const int runtime_folder = (int)(file_name(loaded->runtime) - loaded->runtime);
    for (int i = 0; i < loaded->cuptis; i++) {
        if ((major_of(file_name(loaded->cupti[i])) == major) != others && use_file(search, loaded->cupti[i]))
            return true;
    }
    for (size_t i = 0; i < SONAMES; i++) {
        if ((sonames[i].major == major) == others)
            continue;
        for (size_t j = 0; runtime_folder > 0 && j < sizeof(beside_runtime) / sizeof(*beside_runtime); j++) {
            if (use_in(search, loaded->runtime, runtime_folder, beside_runtime[j], sonames[i].name))
                return true;
        }
        for (size_t j = 0; j < sizeof(elsewhere) / sizeof(*elsewhere); j++) {
            if (use_in(search, "", 0, elsewhere[j], sonames[i].name))
                return true;
        }
    }
    return false;
}

bool ct_cupti_each(const struct ct_gpu_host *host, bool (*use)(const struct ct_cupti *cupti, void *data),
                   void *data)
{
    static struct search search; /* too large for the stack of a thread; there is only one */
    search = (struct search){ .host = host, .use = use, .data = data };
    host->objects(note_object, &search.loaded);
    return use_version(&search, search.loaded.major, false) ||
           use_version(&search, search.loaded.major, true);
}
