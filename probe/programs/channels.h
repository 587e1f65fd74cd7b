/* The channels through which the calls of processes leave the kernel. */
#ifndef CT_PROBE_CHANNELS_H
#define CT_PROBE_CHANNELS_H

#include "calls.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ct_programs;

/* The maps through which the calls of one process leave the kernel. */
struct ct_channel {
    uint32_t number;
    int ring, threads, lost; /* descriptors of maps */
    bool is_held;            /* counted for the user `holder` */
    uid_t holder;
};
/* Creates `count` channels, at most CT_CHANNELS_AT_ONCE, that no process uses yet. Returns 0, -ENOSPC if
 * there would be more than CT_PROBE_PROCESSES channels, or another -errno. After an error, no channel has
 * been created. */
enum { CT_CHANNELS_AT_ONCE = 64 };
int ct_channels_make(struct ct_programs *programs, struct ct_channel *channels, uint32_t count);
/* Frees a channel, which may be made again at once. Its memory stays in use until then, or until
 * ct_channels_release(). */
void ct_channel_free(struct ct_programs *programs, struct ct_channel *channel);
/* Releases the memory of up to CT_CHANNELS_AT_ONCE freed channels. The kernel waits for running BPF programs
 * once for all of them; it would otherwise wait for each. */
void ct_channels_release(struct ct_programs *programs);

/* Shares: a user's processes may hold at most CT_PROBE_SHARE times as many channels as are left. Therefore,
 * some channels are always left for other users. The BPF programs apply this to the channels that they
 * assign, and the probe to others. */
bool ct_channels_allow(const struct ct_programs *programs, uid_t uid);
/* Counts the channel as one of the user's, until it is freed. */
void ct_channel_hold(struct ct_programs *programs, struct ct_channel *channel, uid_t uid);
/* Returns how many processes have no channel and no notice, since the last call. */
uint32_t ct_channels_take_unnoticed(struct ct_programs *programs);

/* Returns the address where the BPF programs store how the channel's process has ended (CT_PROBE_ENDED). */
const uint32_t *ct_channel_end(const struct ct_programs *programs, const struct ct_channel *channel);
/* Assigns the channel to the process. Returns 0, -EEXIST if the process already has a channel, or another
 * -errno. If `channel` is NULL, the process's calls will not be recorded, even if it already has a
 * channel. */
int ct_channel_give(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel);
/* Ends that assignment. */
void ct_channel_take_back(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel);
/* Sets the channel for events of the whole machine. It belongs to no process. */
void ct_programs_set_machine(struct ct_programs *programs, const struct ct_channel *channel);
/* Assigns the channel to the companion of a process's hook. The process itself must be skipped. `producer`
 * comes from the segment of the hook (struct ct_segment). Returns 0 or -errno. */
int ct_companion_give(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel,
                      int32_t producer);
/* Ends the assignment of the channel to the process's companion. Does nothing if there is no such
 * assignment. */
void ct_companion_take_back(struct ct_programs *programs, pid_t pid, const struct ct_channel *channel);
/* Makes the channel available to the BPF programs, which assign it to the next process that makes a call and
 * has no channel. */
int ct_channel_offer(struct ct_programs *programs, const struct ct_channel *channel);
/* Returns how many of these channels are not assigned yet. */
uint32_t ct_channels_spare(const struct ct_programs *programs);
/* Gives each user another share of these channels, because more are about to be offered. `is_short`: no more
 * channels than now can be made, because memory or descriptors are short. */
void ct_channels_begin_offer(struct ct_programs *programs, bool is_short);

#endif
