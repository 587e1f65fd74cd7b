"""Tests a thread that is stopped while it writes a record. The calls of other threads must be stored after a limited time. The stopped
thread's row then arrives late, and must be marked and counted as late. A call that does not return must not delay the calls of other
threads."""
import os
import signal

from fault_test import HungCall, Session, WORKLOADS, at_point, check, equal, promise

CALLS = 200


def late(s):
    """Returns the number of late rows that `cudatrace status` reports."""
    return int(s.status()["late"].split()[0])


def rows_of(s, pid):
    return s.value("SELECT count(*) FROM calls WHERE pid = ? AND layer = 'driver'", pid)


with Session() as s:
    s.start_daemon()
    with promise("late_row"):
        held = s.start(WORKLOADS / "calls", "--calls", CALLS, env=at_point("hot_record.clock_read", 50, "stop"))
        equal(os.waitpid(held.pid, os.WUNTRACED)[1] & 0xff, 0x7f, "it is stopped")
        others = [s.start(WORKLOADS / "calls", "--calls", CALLS) for _ in range(2)]
        for other in others:
            equal(other.wait(), 0, "the status of another")
        s.flush()
        seen, truth = s.totals(), s.truth()
        for other in others:
            equal({key: n for key, n in seen.items() if key[0] == other.pid},
                  {key: n for key, n in truth.items() if key[0] == other.pid}, "another's calls while it stands still")
        equal(late(s), 0, "late rows so far")
        before = rows_of(s, held.pid)
        os.kill(held.pid, signal.SIGCONT)
        equal(held.wait(), 0, "its status")
        s.flush()
        check(rows_of(s, held.pid) > before, "its rows come once it goes on")
        equal(late(s), 1, "late rows that status counts")
        (late_id, behind), = s.rows("SELECT call_id, behind_ns FROM late_call")
        check(behind > 0, "how late it was:", behind)
        equal(s.rows("SELECT pid, end_ns FROM calls WHERE call_id = ?", late_id)[0][0], held.pid, "whose row is late")
        check(s.value("SELECT count(*) FROM calls WHERE call_id > ? AND pid IN (?, ?)", late_id, *(o.pid for o in others)) > 0,
              "it stands at its place, before what was stored before it")
        equal(s.rows("SELECT a.call_id FROM calls a JOIN calls b ON b.call_id = "
                     "(SELECT min(call_id) FROM calls c WHERE c.call_id > a.call_id) WHERE b.end_ns < a.end_ns LIMIT 5"), [],
              "rows out of order")
        s.check_identity()
        s.check_truth()

    with promise("blocked_call"), HungCall(s, "--calls", CALLS) as inside:
        other = s.start(WORKLOADS / "calls", "--calls", CALLS)
        equal(other.wait(), 0, "the other's status")
        s.flush()
        seen, truth = s.totals(), s.truth()
        equal({key: n for key, n in seen.items() if key[0] == other.pid},
              {key: n for key, n in truth.items() if key[0] == other.pid}, "the other's calls")
        equal(s.value("SELECT count(*) FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", inside.pid), 1,
              "open calls")
        equal(late(s), 1, "late rows: no more than before")
    s.flush()
    s.check_identity()
