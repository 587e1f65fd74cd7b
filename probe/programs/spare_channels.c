#include "spare_channels.h"

#include "programs.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    SPARE = CT_CHANNELS_AT_ONCE,
    FEW = SPARE * 3 / 4, /* fewer are replaced at once, as far as others are not */
    IDLE_MS = 250,       /* without a notice, all are replaced, and memory is released */
};

void ct_spare_channels_offer(struct ct_spare_channels *spare)
{
    struct ct_channel channels[SPARE];
    const uint32_t left = ct_channels_spare(spare->programs);
    uint32_t count = left < SPARE ? SPARE - left : 0;
    bool is_short = false;
    for (int error; count > 0 && (error = ct_channels_make(spare->programs, channels, count)) != 0;
         count /= 2)
        is_short |= error != -ENOSPC;
    ct_channels_begin_offer(spare->programs, is_short);
    for (uint32_t i = 0; i < count; i++) {
        spare->channel[channels[i].number] = channels[i];
        if (ct_channel_offer(spare->programs, &channels[i]) != 0)
            ct_channel_free(spare->programs, &channels[i]);
    }
}

static int watch(const struct ct_spare_channels *spare)
{
    const int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event notices = { .events = EPOLLIN | EPOLLET }, end = { .events = EPOLLIN, .data.u32 = 1 };
    if (poll >= 0 && epoll_ctl(poll, EPOLL_CTL_ADD, ct_programs_notices(spare->programs), &notices) == 0 &&
        epoll_ctl(poll, EPOLL_CTL_ADD, spare->end, &end) == 0)
        return poll;
    if (poll >= 0)
        close(poll);
    return -1;
}

static void *work(void *data)
{
    struct ct_spare_channels *spare = data;
    const int poll = watch(spare);
    struct epoll_event event;
    int count;
    while (poll >= 0 && ((count = epoll_wait(poll, &event, 1, IDLE_MS)) <= 0 || event.data.u32 == 0)) {
        const uint32_t left = ct_channels_spare(spare->programs);
        if (left < (count > 0 ? FEW : SPARE))
            ct_spare_channels_offer(spare);
        if (count == 0)
            ct_channels_release(spare->programs);
    }
    if (poll >= 0)
        close(poll);
    return NULL;
}

void ct_spare_channels_start(struct ct_spare_channels *spare)
{
    spare->end = eventfd(0, EFD_CLOEXEC);
    spare->is_running = spare->end >= 0 && pthread_create(&spare->thread, NULL, work, spare) == 0;
}

void ct_spare_channels_stop(struct ct_spare_channels *spare)
{
    if (!spare->is_running)
        return;
    eventfd_write(spare->end, 1);
    pthread_join(spare->thread, NULL);
    close(spare->end);
    spare->is_running = false;
}

struct ct_channel ct_spare_channels_take(struct ct_spare_channels *spare, uint32_t number, uid_t uid)
{
    struct ct_channel channel = spare->channel[number];
    channel.is_held = true; /* the BPF programs have counted it */
    channel.holder = uid;
    return channel;
}
