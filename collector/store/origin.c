#include "origin.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int ct_origin_here(struct ct_origin *origin, const char *session)
{
    *origin = (struct ct_origin){ 0 };
    snprintf(origin->session, sizeof(origin->session), "%s", session);
    gethostname(origin->host, sizeof(origin->host) - 1);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return errno == ENOENT ? 0 : -errno;
    const bool got = fgets(origin->boot_id, sizeof(origin->boot_id), file) != NULL;
    fclose(file);
    origin->boot_id[strcspn(origin->boot_id, "\n")] = '\0';
    return got ? 0 : -EIO;
}
