"""Tests that the test points work in the hook and the daemon that are built for tests, and that other builds have no test points."""
import signal
import subprocess

from fault_test import DAEMON, FAULT_DAEMON, FAULT_HOOK, HOOK, Session, WORKLOADS, at_point, check, equal, points

for binary in (FAULT_HOOK, FAULT_DAEMON):
    print(binary.name, *points(binary))
for binary in (HOOK, DAEMON):
    sections = subprocess.run(["readelf", "-SW", str(binary)], check=True, capture_output=True, text=True).stdout
    check(".text" in sections and "ct_test_points" not in sections, binary, "has test points")

with Session() as s:
    s.start_daemon()
    calls = WORKLOADS / "calls"
    s.run(calls, "--calls", 100, env=at_point("hot_record.published", 50), status=-signal.SIGKILL)
    s.run(calls, "--calls", 100, env=at_point("hot_record.published", 100000))
    s.run(calls, "--calls", 100, env=at_point("hot_record.elsewhere", 1))
    s.flush()
    equal(s.rows("SELECT state, count(*) FROM processes GROUP BY state ORDER BY state"), [("exited", 2), ("killed", 1)],
          "states")
    s.check_identity()
