#include "user_daemon.h"

#include "rights.h"

#include <unistd.h>

struct ct_control *ct_user_daemon_find(uid_t uid, struct ct_session *session, struct ct_requested *requested)
{
    const uid_t own = geteuid();
    for (int i = 0; i < 2; i++) {
        if (ct_rights_try_user(i == 0 ? uid : own) != 0)
            continue;
        struct ct_control *control = ct_daemon_session(session) ? ct_daemon_find(session, requested) : NULL;
        if (control)
            return control;
        ct_rights_try_user(own);
        if (uid == own)
            break;
    }
    return NULL;
}
