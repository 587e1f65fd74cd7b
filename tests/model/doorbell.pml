/* The doorbell. A sleeping collector is woken, or has already seen all records. Each producer has a store buffer, as x86-64 processors
 * have. Its stores become visible later and in order. Its loads do not wait until they are visible, but an atomic exchange does.
 *
 *   producer   ct_lane_publish() and ct_lane_rung() of proto/lane.h, ct_wants_doorbell() of hook/lane/producer.h, ct_attach_apply() of
 *              hook/process/attach.c, ct_daemon_ring() of hook/segment/find_daemon.c
 *   collector  wake() and rest() of collector/source/shm/shm_source.c, ct_lane_source_publish() of shm_lane.c (`wake`), on_batch() of service.c:
 *              another batch follows while rows arrived or wait, one follows an empty batch, and then it sleeps
 *
 * The time between two batches is longer than a store stays invisible (CT_PUBLISH_SLACK_NS). So when a pause ends, all stores that were
 * in the buffers at its beginning are visible. The collector's own buffer is not modelled. `sleeping` is set by an exchange, which makes
 * earlier stores visible, too. If `wake` is seen early, the producer only rings early. After a batch without rows, `sleeping` stays set,
 * also during the second look, which follows the pause. A producer that finds it unset published before the pause.
 *
 * Property: when no process can take a step any more, all published records have been drained. The collector's housekeeping also looks
 * once a second. This is not in the model, and the property does not need it. Twins: TWIN_AWAKE_FOR_EACH_LOOK, TWIN_NO_SECOND_LOOK,
 * TWIN_WAKE_AT_HALF. */
#define PRODUCERS 2
#ifdef SMALL
#define RECORDS(p) (p == 0 -> 2 : 1)
#else
#define RECORDS(p) (p == 0 -> 3 : 1)
#endif
#define HALF 2 /* records that fill half of a ring */
#define NEVER 15

byte position[PRODUCERS];
byte tail[PRODUCERS];
byte wake[PRODUCERS] = 1;
bool sleeping;
byte doorbell; /* number of rings of the bell that the collector has not taken yet */

/* Store buffers. All buffered stores are positions, so their number determines them. A pause waits for the stores that were buffered when
 * it began. */
byte buffered[PRODUCERS], awaited[PRODUCERS];

inline drain_one(p)
{
    d_step {
        position[p]++;
        buffered[p]--;
        if
        :: awaited[p] > 0 -> awaited[p]--
        :: else
        fi
    }
}

proctype store_buffer(byte p)
{
end:
    do
    :: buffered[p] > 0 -> drain_one(p)
    od
}

proctype producer(byte p)
{
    byte mine = 0, seen;
    bool heard;
    do
    :: mine < RECORDS(p) ->
        atomic { buffered[p] < 2 -> buffered[p]++; mine++ } /* two stores fit the buffer */
        atomic {
            seen = wake[p];
            if
            :: mine < seen -> goto next
            :: else
            fi
        }
        if
        :: sleeping ->
            atomic {
                buffered[p] == 0; /* an exchange waits for the buffer */
                heard = sleeping;
                sleeping = false
            }
            if
            :: heard -> doorbell++
            :: else
            fi
        :: else
        fi;
        d_step {
            if
            :: heard && wake[p] == seen -> wake[p] = NEVER
            :: else
            fi;
            heard = false
        }
next:   seen = 0
    :: else -> break
    od
}

inline look_for_backlog()
{
    p = 0;
    do
    :: p < PRODUCERS -> d_step { backlog = backlog || position[p] != tail[p]; p++ }
    :: else -> break
    od;
    p = 0
}

inline pause()
{
    d_step { awaited[0] = buffered[0]; awaited[1] = buffered[1]; rows = 0; backlog = false; p = 0 }
    awaited[0] == 0 && awaited[1] == 0
}

proctype collector()
{
    byte p, rows, quiet_batches;
    bool backlog, quiet;
    do
    ::
        if
#ifndef TWIN_AWAKE_FOR_EACH_LOOK
        :: quiet -> skip
        :: else ->
#else
        :: true ->
#endif
            sleeping = false
        fi;
        d_step { rows = 0; backlog = false; p = 0 }
        do
        :: p < PRODUCERS ->
            atomic {
                /* Records that are newer than the watermark stay. */
                if
                :: rows = rows + position[p] - tail[p]; tail[p] = position[p]
                :: position[p] != tail[p] -> skip
                fi;
                p++
            }
        :: else -> p = 0; break
        od;
        do
        :: p < PRODUCERS -> d_step {
#ifdef TWIN_WAKE_AT_HALF
            wake[p] = tail[p] + HALF;
#else
            wake[p] = tail[p] + (rows == 0 -> 1 : HALF);
#endif
            p++ }
        :: else -> break
        od;
        sleeping = true;
        look_for_backlog();
        quiet = rows == 0;
        if
        :: rows > 0 || backlog -> quiet_batches = 0; pause()
        :: else -> quiet_batches++;
            if
#ifdef TWIN_NO_SECOND_LOOK
            :: quiet_batches < 1 -> pause()
            :: else ->
#else
            :: quiet_batches < 2 -> pause()
            :: else ->
#endif
end_asleep:         atomic { doorbell > 0 -> doorbell-- }
                quiet_batches = 0
            fi
        fi
    od
}

init {
    atomic {
        run producer(0); run producer(1); run store_buffer(0); run store_buffer(1); run collector()
    }
    /* No process can take a step. */
    timeout -> assert(tail[0] == RECORDS(0) && tail[1] == RECORDS(1))
}
