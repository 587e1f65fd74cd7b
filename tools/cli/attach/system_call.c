#include "system_call.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static bool is_among(int64_t number, const int *numbers, size_t count)
{
    while (count > 0 && numbers[count - 1] != number)
        count--;
    return count > 0;
}
#define IS_AMONG(number, numbers) is_among(number, numbers, sizeof(numbers) / sizeof((numbers)[0]))

bool ct_system_call_read(struct ct_system_call *call, const char *text)
{
    uint64_t *at = call->arguments;
    return sscanf(text, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
                  &call->number, &at[0], &at[1], &at[2], &at[3], &at[4], &at[5]) == 7;
}

bool ct_system_call_restarts(const struct ct_system_call *call)
{
    static const int restarted[] = { SYS_futex, SYS_nanosleep,    SYS_clock_nanosleep, SYS_poll,
                                     SYS_ppoll, SYS_select,       SYS_pselect6,        SYS_read,
                                     SYS_wait4, SYS_waitid,       SYS_accept,          SYS_accept4,
                                     SYS_pause, SYS_rt_sigsuspend };
    return IS_AMONG(call->number, restarted);
}

/* A thread that sleeps in read() or recv() has received nothing yet, except with MSG_WAITALL. */
bool ct_system_call_transfers(const struct ct_system_call *call)
{
    static const int writers[] = { SYS_write,    SYS_pwrite64, SYS_writev,   SYS_pwritev,
                                   SYS_pwritev2, SYS_sendto,   SYS_sendmsg,  SYS_sendmmsg,
                                   SYS_sendfile, SYS_splice,   SYS_vmsplice, SYS_copy_file_range,
                                   SYS_tee };
    return IS_AMONG(call->number, writers) ||
           (call->number == SYS_recvmmsg && !(call->arguments[3] & MSG_WAITFORONE)) ||
           (call->number == SYS_recvfrom && call->arguments[3] & MSG_WAITALL) ||
           (call->number == SYS_recvmsg && call->arguments[2] & MSG_WAITALL);
}

/* restart() in stop.c repeats these calls. Calls on a socket are included because the socket may have a
 * timeout. Calls with a time limit are included because the limit may be in read-only memory. */
bool ct_system_call_fails(int64_t number)
{
    static const int ended[] = { SYS_epoll_wait,     SYS_epoll_pwait, 441 /* epoll_pwait2 */,
                                 SYS_semop,          SYS_semtimedop,  SYS_rt_sigtimedwait,
                                 SYS_msgrcv,         SYS_msgsnd,      SYS_io_getevents,
                                 SYS_io_uring_enter, SYS_select,      SYS_pselect6,
                                 SYS_ppoll,          SYS_read,        SYS_readv,
                                 SYS_recvfrom,       SYS_recvmsg,     SYS_recvmmsg,
                                 SYS_write,          SYS_writev,      SYS_sendto,
                                 SYS_sendmsg,        SYS_sendmmsg,    SYS_accept,
                                 SYS_accept4,        SYS_connect };
    return IS_AMONG(number, ended);
}
