#include "rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int ct_rights_try_user(uid_t uid)
{
    return geteuid() == uid || seteuid(uid) == 0 ? 0 : -errno;
}

/* Drops all capabilities that are not in the set, so that not even programs that the process executes can
 * regain them. */
static int keep(uint64_t kept)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, sets) != 0)
        return -errno;
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        sets[i].permitted &= (uint32_t)(kept >> 32 * i);
        sets[i].effective = sets[i].permitted;
        sets[i].inheritable = 0;
    }
    return syscall(SYS_capset, &header, sets) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0
                                                                                                  : -errno;
}

int ct_rights_keep(bool makes_events)
{
    static const int kept[] = { CAP_BPF,
                                CAP_PERFMON,
                                CAP_SYS_PTRACE,
                                CAP_SETUID,
                                CAP_SETGID,
                                CAP_CHECKPOINT_RESTORE,
                                CAP_DAC_READ_SEARCH };
    uint64_t set = makes_events ? UINT64_C(1) << CAP_SYS_ADMIN : 0;
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        set |= UINT64_C(1) << kept[i];
    return keep(set);
}

static void no_capabilities(void)
{
    if (keep(0) == 0)
        return;
    fprintf(stderr, "cudatrace-probe: the rights of root cannot be given up: %s\n", strerror(errno));
    _exit(EXIT_FAILURE);
}

void ct_rights_drop(gid_t gid)
{
    uid_t real, effective, saved;
    getresuid(&real, &effective, &saved);
    if (effective != saved &&
        (seteuid(saved) != 0 || setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 ||
         setresuid(effective, effective, effective) != 0)) {
        fprintf(stderr, "cudatrace-probe: user %u cannot be acted for: %s\n", effective, strerror(errno));
        _exit(EXIT_FAILURE);
    }
    no_capabilities();
}
