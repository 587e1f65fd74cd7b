/* sim_error.c: the names and descriptions of results, from errors.def. */
#include "simcuda.h"

static const struct error {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
#define ERROR(name, code, text) { name, #name, text },
#include "errors.def"
#undef ERROR
};

static const struct error *find(CUresult code)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == code)
            return &errors[i];
    return NULL;
}

CUresult sim_cuGetErrorName(CUresult code, const char **name)
{
    const struct error *error = find(code);
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = error ? error->name : NULL;
    return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGetErrorString(CUresult code, const char **text)
{
    const struct error *error = find(code);
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = error ? error->text : NULL;
    return error ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
