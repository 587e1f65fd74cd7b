"""Reads Meson's test logs (meson-logs/testlog.json) and the results of promises that tests have recorded ($CUDATRACE_PROMISES). Called by
tools/promises and tools/suite.

A test that cannot run exits with status 77 and prints the reason after "skipped: ". A test that skips only part of its checks
prints "not tried: WHAT: WHY" (tests/e2e/needs.py).
"""
import csv
import json
import pathlib
import re
import typing

PROMISES = pathlib.Path(__file__).resolve().parent.parent / "tests/faults/promises.tsv"


class Ran(typing.NamedTuple):
    name: str
    result: str  # OK, FAIL, SKIP, …
    said: str
    complained: str  # standard error

    @property
    def passed(self):
        return self.result in ("OK", "EXPECTEDFAIL")

    @property
    def skipped(self):
        return self.result in ("SKIP", "IGNORED")


def entries(path):
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        yield Ran(entry["name"].split(" / ")[-1], entry["result"], entry.get("stdout") or "", entry.get("stderr") or "")


def second_log(log, name):
    """Returns the path of the log from a test's second run (tools/suite)."""
    return log.with_name(f"{log.stem}-second-{name}.json")


def read(paths):
    """Reads logs. The result of a test's second run replaces that of the first."""
    ran = []
    for path in paths:
        for first in entries(path):
            second = second_log(path, first.name)
            ran.append(next((again for again in (entries(second) if second.exists() else ()) if again.name == first.name), first))
    return ran


def promises():
    """Returns the rows of promises.tsv."""
    with open(PROMISES, newline="") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


def keeps(test, name):
    """Returns whether a test name in the table refers to this Meson test. NAME in the table matches NAME and NAME-*."""
    return name == test or name.startswith(test + "-")


def forget_failures(account, name):
    """Removes broken promises from the recorded results if the second run of the test kept them."""
    kept_by = {row["name"]: row["test"] for row in promises()}
    lines = account.read_text().splitlines(keepends=True) if account.exists() else []
    entries = [(line, json.loads(line)) for line in lines]
    account.write_text("".join(line for line, entry in entries if not entry["failures"] or
                               not keeps(kept_by.get(entry["name"], ""), name.removeprefix("faults-"))))


def skipped(ran):
    """Returns [(test, part, why)] in the order of the logs. The part is None if the whole test was skipped. A test that is part
    of several builds is listed only once."""
    found = {}
    for test in ran:
        if test.skipped:
            why = re.search(r"^skipped: (.*)", test.said, re.M)
            found[test.name, None, why[1] if why else (test.said.strip().splitlines() or ["no reason given"])[-1]] = True
        for what, why in re.findall(r"^not tried: (.+?): (.*)", test.said, re.M):
            found[test.name, what, why] = True
    return list(found)
