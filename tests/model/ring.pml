/* A lane's rings. Slots are published, read, stored and given back. Records are 1 to 3 slots long and do not wrap. A pad fills
 * the end of a ring, and records without room are counted. There are a short ring and a longer one. A producer switches to the
 * longer one when its ring is full, and back when the collector permits it. It only switches to a ring whose slots were all given back.
 * While the collector holds the lock, it removes the longer ring's memory from the file. It removes either all of that memory, or the
 * part that the producer does not show as about to be written. The processor may make a producer's stores visible one by one in any
 * order, except where a release orders them. So the slots of a record are written one at a time, in any order, and `state` after them.
 *
 *   producer   hold() and begin_record() of hook/call/hot_record.h, ct_record_room() and ct_record_write() of hook/lane/ring.c,
 *              ct_ring_make_room() of hook/lane/ring_resize.c
 *   collector  ct_lane_source_watermark(), make_readable() and fill() of collector/source/shm/shm_lane.c, ct_batch_make() of batch.c,
 *              ct_lane_source_publish(): the position is committed with the rows and only then given back;
 *              ct_lane_rings_tidy() of shm_rings.c
 *
 * With DEATHS, the collector is killed that many times at any step, and another one continues from the committed position.
 *
 * Properties: each call is stored once, whole and in order, or counted as lost. No slot is written while the collector may still need it,
 * or while it has no memory. Twins: TWIN_PUBLISH_EARLY, TWIN_ROOM_WITHOUT_PAD, TWIN_GIVE_BACK_UNREAD, TWIN_SWITCH_ANYWHERE,
 * TWIN_SINCE_READ_FIRST, TWIN_SINCE_SHOWN_LATE, TWIN_TAKE_WITHOUT_LOCK, TWIN_REQUEST_IGNORED. */
#define SHORT 4
#define LONG 8
#define PLACES 12 /* slots of the short ring, followed by slots of the longer one */
#define STEP_SLOTS 4 /* slots of the longer ring shown at a time */
#ifndef DEATHS
#define DEATHS 0
#ifdef SMALL
#define RECORDS 3
#else
#define RECORDS 4
#endif
#endif
#define START 3
#define SLOTS_OF(ring) (SHORT + (ring) * (LONG - SHORT))
#define PLACE(ring, position) ((ring) * SHORT + (position) % SLOTS_OF(ring))
/* The ring that has a slot: of the rings begun before that position, the most recent one. */
#define RING(position) ((since1 <= (position) && since1 > since0) || (since0 > (position) && since1 <= (position)))
#define LATER(a, b) ((a) > (b) -> (a) : (b))
#define PAD 15

/* Shared memory. Positions do not wrap here. */
byte position = START; /* lane->state, without its announcement */
byte tail = START;
byte since0 = 0, since1 = 0;
bool lock;             /* held by the producer or the collector */
byte level;            /* shown by the producer: the ring in use, and in `upto` how far it may be written */
byte upto;
byte request;              /* counts removals of memory */
byte slot_record[PLACES]; /* for each slot: the record's number, or PAD in a pad */
byte slot_length[PLACES]; /* the length of its record */
byte slot_part[PLACES];   /* the number of the slot in its record */

/* The database. */
byte stored_position = START;
byte stored;           /* records */
byte last_stored;      /* the number of the newest record */

/* Only used by the properties. */
byte lost;
bool was_lost[RECORDS + 1];
bool wanted[PLACES];   /* the slot is written and not yet given back */
bool there[PLACES];    /* the slot has memory */
bool done;

inline write_slot(at, what, long, part)
{
    assert(!wanted[PLACE(mine_level, at)]); /* its old content is not needed any more */
    assert(mine_level == 0 || there[PLACE(mine_level, at)]);
    wanted[PLACE(mine_level, at)] = true;
    slot_record[PLACE(mine_level, at)] = what;
    slot_length[PLACE(mine_level, at)] = long;
    slot_part[PLACE(mine_level, at)] = part;
}

inline reckon_pad()
{
    pad = 0;
    if
    :: (mine % SLOTS_OF(mine_level)) + length > SLOTS_OF(mine_level) -> pad = SLOTS_OF(mine_level) - mine % SLOTS_OF(mine_level)
    :: else
    fi
}

/* Makes memory for the next step of the longer ring, then shows that step. The lock is held. */
inline extend_long()
{
#ifndef TWIN_REQUEST_IGNORED
    if
    :: request != applied -> applied = request; made = mine + LONG
    :: else
    fi;
#endif
    i = (mine + STEP_SLOTS < LATER(seen, begun) + LONG -> mine + STEP_SLOTS : LATER(seen, begun) + LONG);
    if
    :: mine < made -> d_step {
        limit = mine;
        do
        :: limit < i -> there[PLACE(1, limit)] = true; limit++
        :: else -> break
        od }
    :: else
    fi;
    upto = i;
    level = 1;
    limit = i;
    i = 0
}

/* Makes memory for all of the longer ring at first. Memory that was removed is requested again in steps. */
inline whole()
{
    i = 0;
    do
    :: i < LONG -> there[PLACE(1, i)] = true; i++
    :: else -> break
    od;
    i = 0
}

inline take_lock()
{
#ifdef TWIN_TAKE_WITHOUT_LOCK
    skip
#else
    atomic { !lock -> lock = true }
#endif
}

active proctype producer()
{
    byte number = 1, length, pad, mine = START, limit = START + SHORT, mine_level, begun, left = 0, made, applied, seen, i;
    limit = SHORT + START;
    do
    :: number <= RECORDS ->
        select(length : 1 .. 3);
        d_step { reckon_pad() }
        if
        :: mine + pad + length <= limit
        :: else ->
            seen = tail;
            if
            /* The collector's request to switch back to the short ring. */
            :: mine_level == 1 && request != applied && seen >= left && mine > begun ->
                applied = request;
                left = mine; begun = mine; mine_level = 0;
                since0 = mine;
                level = 0
            :: else
            fi;
            d_step { reckon_pad() }
            if
            :: mine_level == 0 ->
#ifdef TWIN_ROOM_WITHOUT_PAD
                limit = LATER(seen, begun) + SHORT + pad
#else
                limit = LATER(seen, begun) + SHORT
#endif
            :: mine_level == 1 && mine + pad + length <= LATER(seen, begun) + LONG ->
                take_lock();
                extend_long();
                lock = false
            :: else
            fi;
            if
            :: mine + pad + length > limit && mine_level == 0 && mine > begun &&
#ifdef TWIN_SWITCH_ANYWHERE
               true ->
#else
               seen >= left ->
#endif
                if
                :: take_lock();
                    d_step { applied = request; left = mine; begun = mine; mine_level = 1; made = 0; whole(); reckon_pad() }
#ifndef TWIN_SINCE_SHOWN_LATE
                    since1 = mine;
#endif
                    extend_long();
                    lock = false
                :: true /* out of memory */
                fi
            :: else
            fi;
            seen = 0
        fi;
        if
        :: mine + pad + length <= limit ->
            if
            :: pad > 0 -> atomic {
                for (i : 0 .. pad - 1) {
                    write_slot((mine + i), PAD, pad, i)
                }
                i = 0;
                mine = mine + pad }
            :: else
            fi;
#ifdef TWIN_PUBLISH_EARLY
            position = mine + length;
#endif
            /* Write its slots in any order. Writing the last slot first represents all other orders. */
            if
            :: i = 0;
                do
                :: i < length -> atomic { write_slot((mine + i), number, length, i); i++ }
                :: else -> break
                od
            :: length > 1 -> i = length;
                do
                :: i > 0 -> atomic { i--; write_slot((mine + i), number, length, i) }
                :: else -> break
                od
            fi;
            atomic {
                i = 0;
                mine = mine + length;
                position = mine
            }
#ifdef TWIN_SINCE_SHOWN_LATE
            if
            :: mine_level == 1 -> since1 = begun
            :: else
            fi
#endif
        :: else -> atomic { lost++; was_lost[number] = true }
        fi;
        number++
    :: else -> break
    od;
    done = true
}

/* A single transaction commits the rows and the position after them. */
inline commit()
{
    atomic { stored = stored + rows; last_stored = newest; stored_position = at }
}

/* Updates `tail`, and the state of the properties. */
inline give_back(upto_here)
{
    atomic {
        do
        :: tail < upto_here -> wanted[PLACE(RING(tail), tail)] = false; tail++
        :: else -> break
        od
    }
}

/* Removes memory of the longer ring: the part that may not be written, or all if the producer left it and it was read. */
inline take_away()
{
    if
#ifdef TWIN_TAKE_WITHOUT_LOCK
    :: true ->
#else
    :: atomic { !lock -> lock = true };
#endif
        shown = level;
        part = (shown == 1 -> upto : 0);
        first = (shown == 1 -> LATER(tail, since1) + LONG : LONG);
        if
        :: shown == 1 || (since1 > 0 && since0 > since1 && tail >= since0) ->
            request++;
            do
            :: part < first -> atomic { there[PLACE(1, part)] = false; part++ }
            :: else -> break
            od
        :: else
        fi;
        part = 0; first = 0; shown = 0;
        lock = false
    :: lock
    fi
}

/* A kill may occur before each step. */
byte deaths;
#define STEP if :: skip :: deaths < DEATHS -> deaths++; goto another_one fi

active proctype collector()
{
    byte head, at, first, part, rows, newest, begun0, begun1, shown, tidied;
another_one:
    atomic { /* no private state is left */
        head = 0; first = 0; part = 0; rows = 0; newest = 0;
#ifdef TWIN_BEGIN_AT_TAIL
        at = tail
#else
        at = stored_position
#endif
    }
#define HERE(position) PLACE(((begun1 <= (position) && begun1 > begun0) || (begun0 > (position) && begun1 <= (position))), position)
    do
    :: (done && position == at) -> break
    :: tidied < 2 -> tidied++; take_away()
    :: position != at ->
        /* A batch: reads the head, then some or all records before it. */
#ifdef TWIN_SINCE_READ_FIRST
        begun0 = since0; begun1 = since1;
        head = position;
#else
        head = position;
        begun0 = since0; begun1 = since1;
#endif
        assert(head - at <= SHORT + LONG);
#ifdef TWIN_GIVE_BACK_UNREAD
        give_back(head);
#endif
        rows = 0;
        newest = last_stored;
        do
        :: at != head ->
            STEP;
            first = slot_record[HERE(at)];
            part = slot_length[HERE(at)];
            assert(part >= 1 && part <= head - at && slot_part[HERE(at)] == 0);
            if
            :: first == PAD
            :: else ->
                /* The record must be the next one, except for lost ones, and it must be whole. */
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
                :: part > 1 -> assert(slot_record[HERE(at + 1)] == first && slot_part[HERE(at + 1)] == 1)
                :: else
                fi;
                if
                :: part > 2 -> assert(slot_record[HERE(at + 2)] == first && slot_part[HERE(at + 2)] == 2)
                :: else
                fi
            fi;
            at = at + part
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
        first = 0; part = 0;
        STEP
    od;
    assert(stored + lost == RECORDS)
}
