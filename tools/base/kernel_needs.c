#include "kernel_needs.h"

#include "proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* Returns whether the kernel's type information contains the name. BTF ends with a table of all names, each
 * NUL-terminated. */
static bool has_name(FILE *btf, const char *name)
{
    char *text = NULL;
    size_t room = 0;
    bool has = false;
    while (!has && getdelim(&text, &room, '\0', btf) > 0)
        has = strcmp(text, name) == 0;
    free(text);
    return has;
}

/* Returns whether kernel lockdown is in confidentiality mode. The file is readable only if securityfs is
 * mounted. */
static bool is_confidential(void)
{
    char text[128] = "";
    FILE *lockdown = fopen("/sys/kernel/security/lockdown", "re");
    if (!lockdown)
        return false;
    const bool locked = fgets(text, sizeof(text), lockdown) && strstr(text, "[confidentiality]");
    fclose(lockdown);
    return locked;
}

bool ct_kernel_lacks(char lack[CT_LACK_BYTES])
{
    FILE *btf = fopen("/sys/kernel/btf/vmlinux", "re");
    if (!btf) {
        snprintf(
            lack, CT_LACK_BYTES,
            "the kernel has no BTF: /sys/kernel/btf/vmlinux cannot be read. The probe needs Linux 5.15 or "
            "later with CONFIG_DEBUG_INFO_BTF");
        return true;
    }
    /* The version number is not reliable, because distributions backport functions from later kernels. */
    const bool is_new = has_name(btf, "BPF_FUNC_get_attach_cookie");
    fclose(btf);
    struct utsname system = { .release = "" };
    uname(&system);
    if (!is_new)
        snprintf(lack, CT_LACK_BYTES, "Linux %s is too old: the probe needs Linux 5.15 or later",
                 system.release);
    else if (is_confidential())
        snprintf(
            lack, CT_LACK_BYTES,
            "the kernel is in lockdown (confidentiality), and lets no BPF program read its memory: boot it "
            "with lockdown=integrity");
    else if (ct_proc_namespace() != 0 && !ct_proc_is_in_first_namespace())
        snprintf(lack, CT_LACK_BYTES,
                 "BPF programs see other process IDs than this PID namespace. Run the probe outside the "
                 "container, or start the container with the host's process IDs (docker run --pid=host, "
                 "hostPID: true)");
    else
        return false;
    return true;
}
