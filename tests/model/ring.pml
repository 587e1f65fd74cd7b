/* A lane's ring: slots are published, read, stored and given back; records are 1 to 3 slots long and do not wrap, a pad
 * fills the ring's end, and what finds no room is counted. The ring may get twice its capacity once, where what was not given
 * back keeps its places by that (ct_lane_may_grow()), if there is memory. The processor may make a producer's stores visible one by one
 * in any order, but for those that a release holds back: the slots of a record are written one at a time, in an order that
 * is open, and `state` behind them.
 *
 *   producer   hold() and begin_record() of hook/call/hot_record.h, ct_record_room() and ct_record_write() of hook/lane/ring.c,
 *              ct_slot_grow() of hook/lane/slot.c
 *   collector  ct_lane_source_watermark(), make_readable() and fill() of collector/source/shm/shm_lane.c, ct_batch_make() of batch.c,
 *              ct_lane_source_publish(): the position is committed with the rows and only then given back
 *
 * With DEATHS the collector is killed so often at any step, and another one goes on from the committed position.
 *
 * What holds: each call is stored once, whole and in order, or counted as lost; no slot is written while the collector may
 * still want it. Twins: TWIN_PUBLISH_EARLY, TWIN_ROOM_WITHOUT_PAD, TWIN_GIVE_BACK_UNREAD, TWIN_GROW_ANYWHERE,
 * TWIN_CAPACITY_READ_FIRST, TWIN_CAPACITY_SHOWN_LATE. */
#define SLOTS 4 /* at first */
#define MOST 8
#define POSITIONS 16 /* counters wrap here; the real ones never do */
#ifndef DEATHS
#define DEATHS 0
#define RECORDS 5
#endif
#define PLACE(position, capacity) ((position) % (capacity))
#define DISTANCE(from, to) (((to) + POSITIONS - (from)) % POSITIONS)
#define START (POSITIONS - 3) /* just below the wrap */
#define MAY_GROW(tail, position, capacity) \
    ((tail) == (position) || ((tail) % (2 * (capacity)) < (capacity) && \
                              DISTANCE((tail) - (tail) % (capacity), position) <= (capacity)))
#define PAD 15

/* Shared memory. */
byte position = START; /* lane->state, without its announcement */
byte tail = START;
byte capacity = SLOTS;
byte slot_record[MOST]; /* of each slot: the record's number, or PAD in a pad's first slot; */
byte slot_length[MOST]; /* in the first slot of a record, its length; */
byte slot_part[MOST];   /* the number of the slot in its record */

/* The database. */
byte stored_position = START;
byte stored;           /* records */
byte last_stored;      /* the number of the newest */

/* Used by the properties alone. */
byte lost;
bool was_lost[RECORDS + 1];
bool wanted[MOST]; /* written, and not given back */
bool done;

inline write_slot(at, what, long, part)
{
    assert(!wanted[PLACE(at, slots)]); /* nobody wants what stood there */
    wanted[PLACE(at, slots)] = true;
    slot_record[PLACE(at, slots)] = what;
    slot_length[PLACE(at, slots)] = long;
    slot_part[PLACE(at, slots)] = part;
}

inline reckon_pad()
{
    pad = 0;
    if
    :: PLACE(mine, slots) + length > slots -> pad = slots - PLACE(mine, slots)
    :: else
    fi
}

active proctype producer()
{
    byte number = 1, length, pad, mine = START, limit = START, slots = SLOTS, seen, i;
    do
    :: number <= RECORDS ->
        select(length : 1 .. 3);
        d_step { reckon_pad() }
        /* The room known of; else what the collector has given back meanwhile. `limit` is kept as slots behind `mine`. */
        if
        :: DISTANCE(mine, limit) >= pad + length
        :: else ->
            seen = tail;
            if
#ifdef TWIN_GROW_ANYWHERE
            :: slots < MOST ->
#else
            :: slots < MOST && MAY_GROW(seen, mine, slots) ->
#endif
                slots = MOST;
#ifndef TWIN_CAPACITY_SHOWN_LATE
                capacity = slots
#endif
            :: true /* there is no memory */
            fi;
            d_step {
                reckon_pad();
#ifdef TWIN_ROOM_WITHOUT_PAD
                limit = (seen + slots + pad) % POSITIONS;
#else
                limit = (seen + slots) % POSITIONS;
#endif
                seen = 0
            }
        fi;
        if
        :: DISTANCE(mine, limit) >= pad + length ->
            if
            :: pad > 0 -> atomic {
                for (i : 0 .. pad - 1) {
                    write_slot((mine + i) % POSITIONS, PAD, pad, i)
                }
                i = 0;
                mine = (mine + pad) % POSITIONS }
            :: else
            fi;
#ifdef TWIN_PUBLISH_EARLY
            position = (mine + length) % POSITIONS;
#endif
            /* Its slots in an order that is open: the last first stands for all others. */
            if
            :: i = 0;
                do
                :: i < length -> atomic { write_slot((mine + i) % POSITIONS, number, length, i); i++ }
                :: else -> break
                od
            :: length > 1 -> i = length;
                do
                :: i > 0 -> atomic { i--; write_slot((mine + i) % POSITIONS, number, length, i) }
                :: else -> break
                od
            fi;
            atomic {
                i = 0;
                mine = (mine + length) % POSITIONS;
                position = mine
            }
#ifdef TWIN_CAPACITY_SHOWN_LATE
            capacity = slots
#endif
        :: else -> atomic { lost++; was_lost[number] = true }
        fi;
        number++
    :: else -> break
    od;
    done = true
}

/* One transaction: rows, and the position behind them. */
inline commit()
{
    atomic { stored = stored + rows; last_stored = newest; stored_position = at }
}

/* `tail`, and what the properties know of it. */
inline give_back(upto)
{
    atomic {
        do
        :: tail != upto -> wanted[PLACE(tail, capacity)] = false; tail = (tail + 1) % POSITIONS
        :: else -> break
        od
    }
}

/* A kill may come before each step. */
byte deaths;
#define STEP if :: skip :: deaths < DEATHS -> deaths++; goto another_one fi

active proctype collector()
{
    byte head, at, first, part, rows, newest, ring;
another_one:
    atomic { /* nothing private is left */
        head = 0; first = 0; part = 0; rows = 0; newest = 0; ring = 0;
#ifdef TWIN_BEGIN_AT_TAIL
        at = tail
#else
        at = stored_position
#endif
    }
    do
    :: (done && position == at) -> break
    :: position != at ->
        /* A batch: the head, then some or all of what lies before it. */
#ifdef TWIN_CAPACITY_READ_FIRST
        ring = capacity;
        head = position;
#else
        head = position;
        ring = capacity;
#endif
        assert(DISTANCE(at, head) <= ring);
#ifdef TWIN_GIVE_BACK_UNREAD
        give_back(head);
#endif
        rows = 0;
        newest = last_stored;
        do
        :: at != head ->
            STEP;
            first = slot_record[PLACE(at, ring)];
            part = slot_length[PLACE(at, ring)];
            assert(part >= 1 && part <= DISTANCE(at, head) && slot_part[PLACE(at, ring)] == 0);
            if
            :: first == PAD
            :: else ->
                /* It is the next one but for those that were lost, and whole. */
                d_step {
                    assert(first > newest && first <= RECORDS);
                    newest++;
                    do
                    :: newest < first -> assert(was_lost[newest]); newest++
                    :: else -> break
                    od
                    rows++
                }
                if
                :: part > 1 -> assert(slot_record[PLACE(at + 1, ring)] == first && slot_part[PLACE(at + 1, ring)] == 1)
                :: else
                fi;
                if
                :: part > 2 -> assert(slot_record[PLACE(at + 2, ring)] == first && slot_part[PLACE(at + 2, ring)] == 2)
                :: else
                fi
            fi;
            at = (at + part) % POSITIONS
        :: rows > 0 || at == head -> break /* the watermark may cut it short */
        od;
        STEP;
#ifdef TWIN_GIVE_BACK_BEFORE_COMMIT
        give_back(at);
        STEP;
        commit();
#else
        commit();
        STEP;
        give_back(at);
#endif
        STEP
    od;
    assert(stored + lost == RECORDS)
}
