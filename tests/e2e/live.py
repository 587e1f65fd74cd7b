"""Queries the trace while programs run. After each flush, no rows may have disappeared, and the totals must agree with the rows."""
from cudatrace_test import Session, WORKLOADS, by_tier, check, equal, fifo

with Session() as s, fifo(s.dir, "hold") as hold:
    s.start_daemon()
    held = s.start(WORKLOADS / "calls", "--calls", 1000, "--hold", hold)
    programs = [s.start(WORKLOADS / "calls", "--calls", by_tier(20000, 100000), "--mix", "training", "--rate", 100000,
                        stdout=-3) for _ in range(4)]
    last = looks = 0
    while any(p.poll() is None for p in programs):
        s.flush()
        now = s.value("SELECT count(*) FROM calls")
        check(now >= last, "rows went away", last, now)
        last, looks = now, looks + 1
        equal(s.value("SELECT (SELECT sum(stored) FROM totals) - (SELECT count(*) FROM calls)"), 0, "totals and rows")
    equal([p.wait() for p in programs], [0] * 4, "statuses")
    s.flush()
    equal(s.value("SELECT state FROM processes WHERE pid = ?", held.pid), "running", "the held program")
    with open(hold, "wb") as go:
        go.write(b"\n")
    equal(held.wait(), 0, "the held program's status")
    s.flush()
    s.check_identity()
    s.check_truth()
    print(looks, "looks,", s.value("SELECT count(*) FROM calls"), "calls")
