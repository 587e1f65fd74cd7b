/* The users whose processes a system's daemon traces: who they are by the kernel's word, and what each may
 * take of what all share. A user who goes beyond starves himself. */
#ifndef CT_USER_H
#define CT_USER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CT_USER_SEGMENTS_MAX = 2048, /* open at once: two descriptors and two mappings each */
    CT_USER_LANES_MAX = 16384,    /* mapped at once: by the kernel's default a process has 65,530 mappings */
    CT_USER_REFUSED_MAX = 4096,   /* names remembered because there is no segment behind them */
    CT_USER_LOOKS_MAX = 4096,     /* files opened from one look through the directory to the next */
    CT_USER_LOOKS_NAMESPACE = 16, /* what it counts as to find a process of another pid namespace in /proc */
};

struct ct_user {
    uint32_t uid;
    /* The loop thread's; the entry itself is found and freed by it. */
    uint32_t segments, refused, looks;
    uint64_t said_ns; /* when the log named him last */
    uint64_t unsaid;  /* what it left out since */
    /* The worker's. */
    uint32_t lanes;
    uint64_t waiting;             /* slots published and not stored, in this batch */
    uint64_t not_waited_until_ns; /* his threads held the others up: they are not waited for */
    struct ct_user *next;
};

struct ct_users {
    struct ct_user *first; /* one for each user who made a segment, until ct_users_finish() */
};

/* The entry of a user; NULL without memory. Loop thread. */
struct ct_user *ct_users_find(struct ct_users *users, uint32_t uid);
/* Every entry's looks begin anew. */
void ct_users_look_anew(struct ct_users *users);
/* Notes in the log what a user did, ten seconds apart. */
void ct_user_complain(struct ct_user *user, const char *what, const char *path);
void ct_users_finish(struct ct_users *users);

#endif
