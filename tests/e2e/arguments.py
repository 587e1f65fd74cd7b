"""Tests the decoding of arguments: the trace contains the launches, copies, allocations and failures that the program made."""
from cudatrace_test import Session, WORKLOADS, check, equal

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "graph")
    s.flush()
    launches, captured = s.rows("SELECT count(*), sum(captured) FROM launches")[0]
    replayed, replays = s.rows("SELECT sum(kernel_nodes), count(*) FROM graph_launches")[0]
    equal((captured, replays, replayed), (20, 50, 1000), "captured launches, replays and the kernels they gave")

    s.run(WORKLOADS / "calls", "--mix", "copy", "--calls", 2000)
    s.run(WORKLOADS / "calls", "--mix", "alloc", "--calls", 2000)
    s.run(WORKLOADS / "calls", "--mix", "launch", "--calls", 2000)
    s.flush()
    kinds = dict(s.rows("SELECT kind, count(*) FROM copies GROUP BY kind"))
    check({"HtoD", "DtoH", "DtoD"} <= kinds.keys() and "unknown" not in kinds, "copies by kind", kinds)
    equal(s.value("SELECT count(*) FROM calls WHERE category = 'copy' AND status = 0 AND bytes IS NULL"), 0,
          "copies without bytes")
    equal(s.value("SELECT count(*) FROM copies JOIN calls USING (call_id) WHERE copies.bytes <> calls.bytes"), 0,
          "copies whose bytes differ from their call's")
    check(s.value("SELECT count(*) FROM allocations WHERE freed_ns IS NOT NULL") > 100, "allocations that were freed")
    equal(s.value("SELECT count(*) FROM allocations WHERE freed_ns < allocated_ns"), 0, "freed before allocated")
    equal(s.value("SELECT count(*) FROM launches WHERE kernel IS NULL OR grid_x < 1 OR block_x < 1"), 0,
          "launches without name or shape")
    check(s.value("SELECT count(DISTINCT kernel) FROM launches WHERE kernel LIKE '%(%'") > 1, "demangled kernels",
          s.rows("SELECT DISTINCT kernel FROM launches"))
    s.check_identity()
    s.check_truth()
