"""Tests that the trace contains the nodes of graphs, and shows which calls were captured, although the hook makes no driver calls to find
out. The trace is compared with the driver's own lists of nodes and its own count of calls."""
import re

from cudatrace_test import Session, WORKLOADS, equal

KINDS = ("kernels, copies, sets, host_calls, graphs, empties, event_waits, event_records, semaphore_signals, "
         "semaphore_waits, allocations, frees, memory_operations, conditionals")

with Session() as s:
    s.start_daemon()
    said = s.run(WORKLOADS / "nodes").stdout
    s.flush()
    truth = [[int(line.split()[1])] + [int(pair.split("=")[1]) for pair in line.split()[2:]]
             for line in said.splitlines() if line.startswith("exec ")]
    seen = [list(row) for row in s.rows(f"SELECT graph_exec, {KINDS} FROM graphs ORDER BY call_id")]
    equal(seen, truth, "nodes by kind of each executable graph")

    captured = s.value("SELECT (SELECT count(*) FROM launches WHERE captured) + "
                       "(SELECT count(*) FROM copies WHERE captured) + (SELECT count(*) FROM memsets WHERE captured) + "
                       "(SELECT count(*) FROM graph_launches WHERE captured) + "
                       "(SELECT count(DISTINCT call_id) FROM objects WHERE captured)")
    equal(captured, int(re.search(r"captured (\d+)", said).group(1)), "calls that were captured")
    hand = truth[1]
    equal(s.rows("SELECT kernel_nodes FROM graph_launches WHERE graph_exec = ? AND NOT captured ORDER BY call_id", hand[0]),
          [(hand[1],), (hand[1] - 1,), (hand[1],)], "kernels of launches, one node being off in the second")
    s.check_identity()
    s.check_truth()

# Test how many kernels the trace shows for a graph, and for each launch of it.
with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "graph", "--launches", 7, "--replays", 3)
    s.flush()
    equal(s.rows("SELECT kernels FROM graphs"), [(7,)], "kernels of the graph")
    equal(s.rows("SELECT DISTINCT kernel_nodes FROM graph_launches"), [(7,)], "kernels that a launch replays")
    s.check_truth()
