"""Tests that values which cudatrace cannot determine are NULL, not 0. Examples are the number of kernels in a graph that has conditional
nodes or was created without the hook, and the size of memory that another process has shared. Sums omit such values, and reports show how
many of them there are."""
import csv
import io

from cudatrace_test import Session, WORKLOADS, equal


def section(s, name):
    return list(csv.DictReader(io.StringIO(s.cudatrace("report", "--format", "csv", name).stdout)))


with Session() as s:
    s.start_daemon()
    said = s.run(WORKLOADS / "unknown").stdout
    s.flush()
    execs = [(line.split()[1], int(line.split()[2])) for line in said.splitlines() if line.startswith("graph ")]
    names = {handle: name for name, handle in execs}
    equal([(names[handle], nodes) for handle, nodes in
           s.rows("SELECT graph_exec, kernel_nodes FROM graph_launches ORDER BY call_id")],
          [("plain", 4), ("conditional", None), ("parent", None), ("created_elsewhere", None), ("instantiated_elsewhere", None)],
          "kernels that launches replay")
    equal([(names[handle], *row) for handle, *row in s.rows("SELECT graph_exec, kernels, conditionals FROM graphs ORDER BY call_id")],
          [("plain", 4, 0), ("conditional", 2, 1), ("parent", 2, 1), ("created_elsewhere", None, None)], "nodes of graphs")
    [graphs] = section(s, "graphs")
    equal((graphs["launches"], graphs["kernels"], graphs["unknown"]), ("5", "4", "4"), "the report of graphs")
    section(s, "phases")
    s.check_identity()

with Session() as s:
    s.start_daemon()
    s.run(WORKLOADS / "objects", "memory", env={"SIMCUDA_VERIFY": 0, "SIMCUDA_COUNTS": ""})
    s.flush()
    equal(s.rows("SELECT count(*), count(bytes), sum(bytes) > 0 FROM allocations WHERE kind = 'ipc'"), [(3, 1, 1)],
          "memory of other processes, with a size where the program asked for it")
    equal(s.rows("SELECT count(*) FROM calls WHERE name LIKE 'cuIpcOpenMemHandle%' AND bytes IS NOT NULL"), [(0,)],
          "bytes of the calls that got it")
    equal({row["kind"]: row["unknown"] for row in section(s, "memory")}["ipc"], "2", "the report of memory")
    section(s, "leaks")
    s.cudatrace("export", "--format", "chrome", "--output", s.dir / "out.json")
    s.cudatrace("html", "--output", s.dir / "page.html")
