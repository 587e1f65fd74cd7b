#!/usr/bin/env python3
"""Checks that each test sets its own time limit instead of using Meson's default. A test that uses tests/e2e/cudatrace_test.py must also
have a deadline that expires before the time limit."""
import json
import pathlib
import sys

BUILD = pathlib.Path(sys.argv[1])
DEFAULT_S, REPORT_S = 30, 20  # Meson's default; the time a test needs to report and clean up
SHARED = ("cudatrace_test", "fault_test", "daemon_test", "disk_test", "series_test", "trap_test", "hook_test")

tests = json.loads((BUILD / "meson-info/intro-tests.json").read_text())
wrong = []
for test in tests:
    limit_s, script = test["timeout"], next((word for word in test["cmd"] if word.endswith(".py")), None)
    if limit_s <= DEFAULT_S:
        wrong.append(f"{test['name']} has Meson's default limit, or less: {limit_s} s")
    uses = script and any(f"from {name} import" in pathlib.Path(BUILD, script).read_text() for name in SHARED)
    deadline_s = test["env"].get("CUDATRACE_TEST_DEADLINE") if uses else str(limit_s - REPORT_S)
    if deadline_s != str(limit_s - REPORT_S):
        wrong.append(f"{test['name']} has a limit of {limit_s} s and a deadline of {deadline_s}")
assert tests and not wrong, "\n".join(wrong)
