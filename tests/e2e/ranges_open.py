"""Tests that libraries' ranges are not mistaken for the program's phases. Also tests that the report and `top` show the open ranges of a
process that was killed, but not the ranges that a process left open when it exited."""
import contextlib
import json
import subprocess

from browser import Browser
from cudatrace_test import CUDATRACE, HOOK, HungCall, Session, WORKLOADS, can, equal, fifo

STEPS = 3


@contextlib.contextmanager
def rank(s, steps):
    """Runs a program that waits while two NCCL ranges are open and one thread is in a call. Yields (the program, a function that lets it
    continue)."""
    with fifo(s.dir, f"released.{steps}") as released, HungCall(
            s, "--do", "rank", "--count", steps, "--released", released, program=WORKLOADS / "ranges", stdout=subprocess.DEVNULL,
            env={"NVTX_INJECTION64_PATH": HOOK}) as child:
        def release():
            with open(released, "wb") as go:
                go.write(b"\n")
            equal(child.program.wait(), 0, "its status")

        yield child, release


def process_of(s, pid):
    row, = s.report("--pid", pid, "processes")["processes"]
    return row["state"], row["inside"], row["open_at_exit"]


def top_of(s, pid, *options):
    out = json.loads(s.run(CUDATRACE, "top", "--db", s.db, "--once", "--json", "--all", *options, preload=False).stdout)
    return next(row["open_call"] for row in out["processes"] if row["pid"] == pid)


with Session() as s:
    s.start_daemon()
    opened = "nvtxRangePush (2), cuCtxSynchronize"
    rows = [("cuCtxSynchronize", 0), ("nvtxRangePush", 0), ("nvtxRangePush", 1)]
    asked = "SELECT open_calls.name, depth FROM open_calls JOIN processes USING (process_id) WHERE pid = ? AND at_exit = ? ORDER BY name, depth"
    with rank(s, STEPS) as (child, release):
        s.flush()
        equal(process_of(s, child.pid), ("running", opened, ""), "one that runs")
        equal(top_of(s, child.pid), "cuCtxSynchronize", "top of one that runs")
        release()
    s.flush()
    exited = child.pid
    equal(process_of(s, exited), ("exited", "", opened), "one that ended by itself")
    equal((s.rows(asked, exited, 1), s.rows(asked, exited, 0)), (rows, []), "what it left open")
    equal(top_of(s, exited), None, "top of one that has ended")
    with rank(s, 0) as (child, _):
        child.kill()
    s.flush()
    killed = child.pid
    equal(process_of(s, killed), ("killed", opened, ""), "one that was killed")
    equal((s.rows(asked, killed, 0), s.rows(asked, killed, 1)), (rows, []), "what it was killed in")
    equal(top_of(s, killed), "cuCtxSynchronize", "top of one that was killed")
    page = s.dir / "page.html"
    s.run(CUDATRACE, "html", "--db", s.db, "--output", page, preload=False)
    if can("chromedriver", "open ranges in a browser"):
        with Browser() as b:
            b.show(page)
            tiles = b.run("return Object.fromEntries([...document.querySelectorAll('.tile')].map((t) => [t.children[1].textContent, t.children[0].textContent]))")
            equal(tiles["calls not returned"], str(len(rows)), "what the page counts: the killed one's alone")

    # The phases are derived from the program's own ranges, whether or not these have a domain, and even if they are inside a library's
    # range. For a program without such ranges, the phases are derived from the pattern of its calls.
    equal([(row["phase"], row["times"], row["by"]) for row in s.report("--pid", exited, "phases")["phases"]],
          [("setup", 1, "nvtx"), ("step N", STEPS, "nvtx")], "phases")
    equal({row["by"] for row in s.report("--pid", killed, "phases")["phases"]}, {"pattern"}, "phases of a program without ranges")
    equal(s.rows("SELECT domain, message, count(*) FROM ranges JOIN processes USING (process_id) WHERE pid = ? GROUP BY domain, message", exited),
          [(None, f"step {step}", 1) for step in range(STEPS)] +
          [("NCCL", "ncclAllReduce", STEPS), ("NCCL", "ncclCommInitRank", 1), ("NCCL", "ncclGroup", STEPS), ("mine", "setup", 1)], "all ranges")
    lengths = dict(s.rows("SELECT substr(message, 1, 4), sum(duration_ns) FROM ranges JOIN processes USING (process_id) WHERE pid = ? AND "
                          "domain IS NOT 'NCCL' GROUP BY 1", exited))
    for row in s.report("--pid", exited, "phases")["phases"]:
        equal(row["seconds"], round(lengths[row["phase"][:4]] / 1e9, 6), f"the length of {row['phase']}")
