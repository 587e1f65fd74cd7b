/* Tells how a process has ended, as far as the kernel says so to a process that is not its parent. */
#ifndef CT_EXIT_STATUS_H
#define CT_EXIT_STATUS_H

#include <stdint.h>

enum ct_ending { CT_ENDING_UNKNOWN, CT_ENDING_EXITED, CT_ENDING_KILLED };

/* Tells how a process has ended. It asks the zombie `pid`, 0 for none, that started at `start_ticks`, 0 for
 * unknown; then the descriptor, -1 for none, which tells since Linux 6.15 once the parent has asked. */
enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks);

#endif
