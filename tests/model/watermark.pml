/* The watermark: a record that returned before it is in the batch or was in an earlier one, without a fence between "I may
 * be reading my end time" and the reading. Time goes in ticks. A store stays in its processor's buffer for less than SLACK
 * ticks, and buffers are emptied in order; loads do not wait for that.
 *
 *   producer   begin_record() and finish_record() of hook/call/hot_record.h: ct_lane_announce(), the clock, ct_lane_publish()
 *   collector  all_are_known_ns() of collector/source/shm/shm_source.c, ct_lane_source_watermark() of shm_lane.c, fill() by the watermark
 *
 * A batch comes every GAP ticks.
 *
 * What holds: a row that is not younger than an earlier batch's watermark is of a lane whose announcement was seen for
 * PATIENCE ticks; and no lane holds the watermark back for longer than that, however often it announces. Twins:
 * TWIN_NO_SLACK, TWIN_ANNOUNCE_BEHIND_CLOCK, TWIN_NOT_WAITED_FOR, TWIN_SILENCE_ALONE, TWIN_SILENCE_OF_OTHERS. */
#define LANES 2
#define RECORDS_MAX 2
#define RECORDS(p) (p == 0 -> 2 : 1)
#define SLACK 1
#define PATIENCE 2
#define GAP 1
#ifdef SMALL
#define END 5
#else
#define END 7
#endif
#define NONE 31

byte now = SLACK + 1; /* the clock */

/* A lane's `state`, and the ends of what is published; only the end of a published record is ever looked at. */
typedef lane_of {
    byte position;
    bool announcing;
    byte end[RECORDS_MAX];
    /* The store buffer: a state each, and when it was stored. */
    byte buffer_position[2];
    bool buffer_announcing[2];
    byte buffer_time[2];
    byte buffered;
    /* The collector's own. */
    byte taken, head, silent, announced_at, announced_since, looked
}
lane_of lane[LANES];
byte running = LANES;
byte last_batch = SLACK + 1;
bool was_impatient[LANES]; /* used by the properties alone */

inline store_state(p, position_now, announcing_now)
{
    atomic {
        lane[p].buffered < 2;
        lane[p].buffer_position[lane[p].buffered] = position_now;
        lane[p].buffer_announcing[lane[p].buffered] = announcing_now;
        lane[p].buffer_time[lane[p].buffered] = now;
        lane[p].buffered++
    }
}

proctype store_buffer(byte p)
{
end:
    do
    :: d_step { lane[p].buffered > 0 ->
        lane[p].position = lane[p].buffer_position[0];
        lane[p].announcing = lane[p].buffer_announcing[0];
        lane[p].buffer_position[0] = lane[p].buffer_position[1];
        lane[p].buffer_announcing[0] = lane[p].buffer_announcing[1];
        lane[p].buffer_time[0] = lane[p].buffer_time[1];
        lane[p].buffered--;
        lane[p].buffer_position[1] = 0;
        lane[p].buffer_announcing[1] = false;
        lane[p].buffer_time[1] = 0 }
    od
}

#define IN_TIME(p) (lane[p].buffered == 0 || now + 1 < lane[p].buffer_time[0] + SLACK)

proctype clock()
{
end:
    do
    :: d_step { now < END && IN_TIME(0) && IN_TIME(1) && now < last_batch + GAP -> now++ }
    od
}

proctype producer(byte p)
{
    byte i = 0;
    do
    :: i < RECORDS(p) ->
#ifdef TWIN_ANNOUNCE_BEHIND_CLOCK
        lane[p].end[i] = now;
        store_state(p, i, true);
#else
        store_state(p, i, true);
        lane[p].end[i] = now;
#endif
        i++;
        store_state(p, i, false)
    :: else -> break
    od;
    running--
}

proctype collector()
{
    byte at, seen, until, before = 0, p = 0;
    bool impatient[LANES];
    do
    :: now > last_batch || now == END ->
        atomic {
            at = now;
            last_batch = at;
#ifdef TWIN_NO_SLACK
            seen = at;
#else
            seen = at - SLACK;
#endif
            until = seen
        }
        do
        :: p < LANES ->
            /* ct_lane_source_watermark() */
            atomic {
                lane[p].head = lane[p].position;
                impatient[p] = false;
                if
                :: !lane[p].announcing ->
#ifdef TWIN_SILENCE_OF_OTHERS
                    lane[p].silent = until;
#else
                    lane[p].silent = seen;
#endif
                    lane[p].announced_since = 0
                :: else ->
                    if
                    :: lane[p].announced_since == 0 || lane[p].announced_at != lane[p].head ->
#ifndef TWIN_SILENCE_ALONE
                        if
                        :: lane[p].announced_since > 0 -> lane[p].silent = lane[p].looked
                        :: else
                        fi;
#endif
                        lane[p].announced_at = lane[p].head;
                        lane[p].announced_since = at
                    :: else
                    fi;
                    if
#ifdef TWIN_NOT_WAITED_FOR
                    :: true
#else
                    :: at - lane[p].announced_since >= PATIENCE -> impatient[p] = true
                    :: else -> until = (lane[p].silent < until -> lane[p].silent : until)
#endif
                    fi;
                    lane[p].looked = seen
                fi;
                if
                :: lane[p].announced_since == 0 -> lane[p].announced_at = 0; lane[p].looked = 0
                :: else
                fi;
                p++
            }
        :: else -> break
        od;
        p = 0;
        assert(until + SLACK + PATIENCE + GAP >= at);
        /* The merge. */
        atomic {
            do
            :: p < LANES ->
                do
                :: lane[p].taken < lane[p].head && lane[p].end[lane[p].taken] <= until ->
                    assert(lane[p].end[lane[p].taken] > before || impatient[p] || was_impatient[p]);
                    lane[p].end[lane[p].taken] = 0;
                    lane[p].taken++
                :: else -> break
                od;
                was_impatient[p] = was_impatient[p] || impatient[p];
                impatient[p] = false;
                lane[p].head = 0;
                p++
            :: else -> break
            od;
            p = 0;
            before = (until > before -> until : before);
            at = 0; seen = 0; until = 0
        }
        if
        :: now == END && running == 0 && lane[0].taken == RECORDS(0) && lane[1].taken == RECORDS(1) -> break
        :: now == END && before == END - SLACK -> break
        :: else
        fi
    od
}

init {
    atomic {
        run producer(0); run producer(1); run store_buffer(0); run store_buffer(1); run clock(); run collector()
    }
}
