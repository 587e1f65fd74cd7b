#include "setting.h"

#include "compiler.h"
#include "selection.h"
#include "visit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct ct_visit taken;
static bool is_taken;

static const struct {
    const char *variable, *value;
} settings[] = {
    { CT_SESSION_ENV, taken.session }, { CT_SHM_DIR_ENV, taken.shm_dir }, { CT_LAYERS_ENV, taken.layers },
    { CT_CALLS_ENV, taken.calls },     { CT_SAMPLE_ENV, taken.sample },
};

const char *ct_setting(const char *variable)
{
    for (size_t i = 0; is_taken && i < CT_ARRAY_LENGTH(settings); i++) {
        if (strcmp(settings[i].variable, variable) == 0)
            return *settings[i].value ? settings[i].value : NULL;
    }
    return getenv(variable);
}

const char *ct_setting_gpu_library(void)
{
    return *taken.gpu_library ? taken.gpu_library : NULL;
}

void ct_setting_take(const struct ct_visit *visit)
{
    taken = *visit;
    taken.session[sizeof(taken.session) - 1] = taken.shm_dir[sizeof(taken.shm_dir) - 1] = '\0';
    taken.layers[sizeof(taken.layers) - 1] = taken.calls[sizeof(taken.calls) - 1] = '\0';
    taken.sample[sizeof(taken.sample) - 1] = taken.gpu_library[sizeof(taken.gpu_library) - 1] = '\0';
    is_taken = true;
}
