/* A lane changes hands. Threads take a free lane, write and lose calls, and give it back. The collector assigns each record and
 * loss to the thread that made it.
 *
 *   producer   ct_producer_take_free() of hook/lane/producer_pool.c,
 *              introduce() and give_back() of hook/lane/thread.c; a record that finds no room, ct_record_lose() of
 *              hook/lane/loss.c
 *   collector  save_losses() and ct_lane_source_publish() of collector/source/shm/shm_lane.c, take_note() of ledger.c; after a kill, the
 *              next collector begins with a tenancy for which it must query the database (ct_store_find_losses())
 *
 * Properties: a lane has one owner. Records and losses are stored under the tenancy in which they were made. Twins:
 * TWIN_TAKE_WITHOUT_SWAP, TWIN_PASS_UNSEEN_LOSS, TWIN_TENANCY_READ_ONCE. */
#define THREADS 2
#define LANES 1
#define CALLS 2
#define SPACE 6 /* room for all records of a lane; another model has the rings */

typedef lane_of {
    bool owned;
    byte tenancy;
    byte calls;     /* loss[].calls */
    byte loss_seen;
    byte published;
    byte slot[SPACE]; /* the tenancy of each record; an introduction has INTRODUCES added */
    /* Only used by the properties. */
    byte owners, lost_by[THREADS + 1];
    /* The database. */
    byte stored_position, stored_tenancy, stored_loss[THREADS + 1];
    /* Private to the collector. */
    byte known_tenancy, base, saved
}
#define INTRODUCES 16
lane_of lane[LANES];
byte running = THREADS;

proctype thread()
{
    byte i = 0, calls, tenancy;
    do
    :: i < LANES ->
        /* take_free() */
        if
        :: !lane[i].owned ->
#ifdef TWIN_TAKE_WITHOUT_SWAP
            lane[i].owned = true;
#else
            atomic {
                if
                :: !lane[i].owned -> lane[i].owned = true
                :: else -> goto next
                fi
            }
#endif
            calls = lane[i].calls;
#ifndef TWIN_PASS_UNSEEN_LOSS
            if
            :: calls != lane[i].loss_seen -> lane[i].owned = false; goto next
            :: else
            fi;
#endif
            lane[i].owners++;
            assert(lane[i].owners == 1);
            /* introduce() */
            tenancy = lane[i].tenancy + 1;
            lane[i].tenancy = tenancy;
            atomic {
                lane[i].slot[lane[i].published] = INTRODUCES + tenancy;
                lane[i].published++
            }
            calls = 0;
            do
            :: calls < CALLS -> atomic {
                lane[i].slot[lane[i].published] = tenancy;
                lane[i].published++;
                calls++ }
            :: calls < CALLS -> atomic { lane[i].lost_by[tenancy]++; lane[i].calls++; calls++ }
            :: break
            od;
            atomic { lane[i].owners--; lane[i].owned = false } /* give_back() */
            break
        :: else
        fi;
next:   i++
    :: else -> break /* no lane is free */
    od;
    running--
}

#define ALL_SEEN(l) (lane[l].stored_position == lane[l].published && lane[l].loss_seen == lane[l].calls)

proctype collector()
{
    byte l = 0, k, tenancy, calls, loss, record;
    do
    :: running == 0 && ALL_SEEN(0) -> break
    :: l < LANES ->
        /* Takes records, up to any published one. */
        do
        :: lane[l].stored_position < lane[l].published -> atomic {
            record = lane[l].slot[lane[l].stored_position];
            if
            :: record > INTRODUCES ->
                assert(record - INTRODUCES > lane[l].stored_tenancy);
                lane[l].stored_tenancy = record - INTRODUCES
            :: else -> assert(record == lane[l].stored_tenancy)
            fi;
            lane[l].stored_position++;
            record = 0 }
        :: break
        od;
        /* save_losses(). This may be a new daemon, which has no state yet. */
        if
        :: true
        :: lane[l].known_tenancy > 0 -> d_step { lane[l].known_tenancy = 0; lane[l].base = 0; lane[l].saved = 0 }
        fi;
        tenancy = lane[l].tenancy;
        if
        :: tenancy != lane[l].known_tenancy -> d_step {
            lane[l].known_tenancy = tenancy;
            lane[l].base = 0;
            for (k : 1 .. THREADS) {
                if
                :: k < tenancy -> lane[l].base = lane[l].base + lane[l].stored_loss[k]
                :: else
                fi
            }
            k = 0 }
        :: else
        fi;
        calls = lane[l].calls;
#ifndef TWIN_TENANCY_READ_ONCE
        if
        :: lane[l].tenancy != tenancy -> goto later /* the losses may be the next owner's */
        :: else
        fi;
#endif
        if
        :: calls <= lane[l].base -> lane[l].saved = calls
        :: else
        fi;
        if
        :: calls != lane[l].saved -> atomic {
            lane[l].stored_loss[tenancy] = calls - lane[l].base;
            assert(lane[l].stored_loss[tenancy] <= lane[l].lost_by[tenancy]);
            lane[l].saved = calls }
        :: else
        fi;
        lane[l].loss_seen = lane[l].saved;
later:  atomic { tenancy = 0; calls = 0; l = (l + 1) % LANES }
    od;
    for (l : 0 .. LANES - 1) {
        for (k : 1 .. THREADS) {
            assert(lane[l].stored_loss[k] == lane[l].lost_by[k])
        }
    }
}

init {
    atomic {
        run thread(); run thread(); run collector()
    }
}
