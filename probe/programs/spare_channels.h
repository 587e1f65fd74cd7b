/* The spare channels, which the BPF programs assign to processes that the probe does not know yet.
 *
 * A thread replaces those that are assigned. The probe's first thread may be busy for long: reading the
 * mappings of a process waits until the process has changed them, and the process may wait for a processor.
 */
#ifndef CT_PROBE_SPARE_CHANNELS_H
#define CT_PROBE_SPARE_CHANNELS_H

#include "channels.h"

#include <pthread.h>

/* The caller sets `programs`. */
struct ct_spare_channels {
    struct ct_programs *programs;
    struct ct_channel
        channel[CT_PROBE_PROCESSES]; /* by number, those that the kernel may assign or has assigned */
    pthread_t thread;
    int end; /* eventfd that ends the thread */
    bool is_running;
};

/* Makes spare channels. If there is no room for all of them, a few are enough until recorded processes end.
 */
void ct_spare_channels_offer(struct ct_spare_channels *spare);
/* Starts the thread, which has the rights of its caller. Without a thread, only the caller offers channels.
 */
void ct_spare_channels_start(struct ct_spare_channels *spare);
void ct_spare_channels_stop(struct ct_spare_channels *spare);
/* Returns the channel with this number, which the BPF programs have assigned to a process of the user. */
struct ct_channel ct_spare_channels_take(struct ct_spare_channels *spare, uint32_t number, uid_t uid);

#endif
