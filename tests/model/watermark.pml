/* The watermark: a record that returned before it is in the batch or was in an earlier one. There is no fence between announcing
 * a record and reading its end time. Time is in ticks. A store stays in its processor's buffer for less than SLACK ticks, and buffers are
 * emptied in order. Loads do not wait until a buffer is empty.
 *
 *   producer   begin_record() and finish_record() of hook/call/hot_record.h: ct_lane_announce(), the clock, ct_lane_publish()
 *   collector  all_are_known_ns() of collector/source/shm/shm_source.c, ct_lane_source_watermark() of shm_lane.c, fill() by the watermark
 *
 * The lanes belong to two threads, or lane 0 is a probe's, which publishes records later than the times that they carry:
 *
 *   watched    a call, in the kernel: it reserves a place in the kernel's ring, reads the clock, submits the record
 *   probe      `complete` of proto/segment.h: it reads the clock, counts reserved places, publishes their records, stores the word
 *   collector  ct_shm_read_complete() and wait_for_probe() of collector/source/shm/shm_drain.c
 *
 * A batch is made every GAP ticks.
 *
 * Properties: a row is newer than each earlier batch's watermark, unless its lane's announcement was seen for PATIENCE ticks. No
 * lane holds the watermark back for longer than that, however often it announces. A probe's row is older than an earlier watermark only
 * if `complete` was PROBE_PATIENCE ticks old at that time. No probe holds the watermark back for longer than that. Twins: TWIN_NO_SLACK,
 * TWIN_ANNOUNCE_BEHIND_CLOCK, TWIN_NOT_WAITED_FOR, TWIN_SILENCE_ALONE, TWIN_SILENCE_OF_OTHERS, TWIN_COMPLETE_IGNORED,
 * TWIN_COMPLETE_READ_LAST, TWIN_COMPLETE_STORED_FIRST, TWIN_COMPLETE_OF_LATER, TWIN_RESERVE_BEHIND_CLOCK, TWIN_PROBE_WAITED_FOR_EVER. */
#define LANES 2
#define RECORDS_MAX 2
#define RECORDS(p) (p == 0 -> 2 : 1)
#define SLACK 1
#define PATIENCE 2
#define PROBE_PATIENCE 3
#define GAP 1
#ifdef SMALL
#define END 5
#define RECORDS_WATCHED 1
#else
#define END 7
#define RECORDS_WATCHED 2
#endif
#define NONE 31

byte now = SLACK + 1; /* the clock */

/* A lane's `state`, and the end times of its published records. Only a published record's end is ever read. */
typedef lane_of {
    byte position;
    bool announcing;
    byte end[RECORDS_MAX];
    /* The store buffer. Each entry has a state and the time of the store. */
    byte buffer_position[2];
    bool buffer_announcing[2];
    byte buffer_time[2];
    byte buffered;
    /* Private to the collector. */
    byte taken, head, silent, announced_at, announced_since, looked
}
lane_of lane[LANES];
byte running = LANES;
byte last_batch = SLACK + 1;
bool was_impatient[LANES]; /* only used by the properties */

/* A probe's state: places reserved in the kernel's ring, records submitted, and the segment's word. */
bool is_probed;
byte reserved, submitted, complete = NONE;

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

/* Reserving takes a lock, which is a fence. So the place is visible before the clock is read. */
proctype watched()
{
    byte i = 0;
    do
    :: i < RECORDS_WATCHED ->
#ifdef TWIN_RESERVE_BEHIND_CLOCK
        lane[0].end[i] = now;
        reserved++;
#else
        reserved++;
        lane[0].end[i] = now;
#endif
        i++;
        submitted++
    :: else -> break
    od
}

/* The probe has no store buffer, because stores that become visible later, in order, are the same as later stores. */
proctype probe()
{
    byte read, until;
end:
    do
    :: complete < now ->
#ifdef TWIN_COMPLETE_OF_LATER
        read = reserved;
        until = now;
#else
        until = now;
        read = reserved;
#endif
        submitted >= read;
#ifdef TWIN_COMPLETE_STORED_FIRST
        complete = until;
        lane[0].position = read;
#else
        lane[0].position = read;
        complete = until;
#endif
        atomic { read = 0; until = 0 }
    od
}

proctype collector()
{
    byte at, seen, until, read_complete, lanes_until, before = 0, p = 0;
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
#ifndef TWIN_COMPLETE_READ_LAST
        read_complete = complete;
#endif
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
#ifdef TWIN_COMPLETE_READ_LAST
        read_complete = complete;
#endif
        /* wait_for_probe() */
        atomic {
            p = 0;
            lanes_until = until;
#ifndef TWIN_COMPLETE_IGNORED
            if
#ifndef TWIN_PROBE_WAITED_FOR_EVER
            :: read_complete < until && at - read_complete >= PROBE_PATIENCE -> impatient[0] = true
#endif
            :: else -> until = (read_complete < until -> read_complete : until)
            fi;
#endif
            assert(lanes_until + SLACK + PATIENCE + GAP >= at);
            assert(until == lanes_until || until + PROBE_PATIENCE > at);
            lanes_until = 0; read_complete = 0
        }
        /* The merge. */
        atomic {
            do
            :: p < LANES ->
                do
                :: lane[p].taken < lane[p].head && lane[p].end[lane[p].taken] <= until ->
                    assert(lane[p].end[lane[p].taken] > before || impatient[p] || was_impatient[p] ||
                           (is_probed && lane[p].end[lane[p].taken] == before));
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
        if
        :: is_probed = true; complete = now - 1; run watched(); run probe()
        :: run producer(0); run producer(1); run store_buffer(0); run store_buffer(1)
        fi;
        run clock(); run collector()
    }
}
