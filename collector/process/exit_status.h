/* How a process has ended, as far as the kernel tells somebody who is not its parent. */
#ifndef CT_EXIT_STATUS_H
#define CT_EXIT_STATUS_H

#include <stdint.h>

enum ct_ending { CT_ENDING_UNKNOWN, CT_ENDING_EXITED, CT_ENDING_KILLED };

/* Of a process that has ended: as the zombie `pid`, 0 for none, that started at `start_ticks`, 0 for unknown;
 * or by its descriptor, -1 for none, of which Linux 6.15 tells once its parent has asked. */
enum ct_ending ct_exit_status(int pidfd, int32_t pid, uint64_t start_ticks);

#endif
