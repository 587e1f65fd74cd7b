"""Reads in Meson's logs of tests (meson-logs/testlog.json) what was left out. Called by tools/promises and tools/untried.

A test that cannot be tried ends with status 77 and says why, behind "skipped: "; one that leaves a part of it out says
"not tried: WHAT: WHY" (tests/e2e/needs.py).
"""
import json
import re
import typing


class Ran(typing.NamedTuple):
    name: str
    result: str  # OK, FAIL, SKIP, …
    said: str

    @property
    def passed(self):
        return self.result in ("OK", "EXPECTEDFAIL")

    @property
    def skipped(self):
        return self.result in ("SKIP", "IGNORED")


def read(paths):
    entries = (json.loads(line) for path in paths for line in path.read_text().splitlines())
    return [Ran(entry["name"].split(" / ")[-1], entry["result"], entry.get("stdout") or "") for entry in entries]


def left_out(ran):
    """[(test, part or None for all of it, why)] in the order of the logs, each once: a test of several builds says it several times."""
    found = {}
    for test in ran:
        if test.skipped:
            why = re.search(r"^skipped: (.*)", test.said, re.M)
            found[test.name, None, why[1] if why else (test.said.strip().splitlines() or ["it did not say why"])[-1]] = True
        for what, why in re.findall(r"^not tried: (.+?): (.*)", test.said, re.M):
            found[test.name, what, why] = True
    return list(found)
