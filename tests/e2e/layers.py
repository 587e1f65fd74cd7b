"""Compares own times by layer with those of calls that were generated as trees, and imported. Each call's children are known, so that the
test needs no search for them."""
import collections
import json
import random

from cudatrace_test import CUDATRACE, Session, check, equal, seed

LAYERS = ("library", "runtime", "driver", "ioctl", "kernel", "blocked", "preempted")
# The functions, and the layer of the trace and the category from which the layer follows.
FUNCTIONS = {"library": (("cublasSgemm_v2", "hook", "library"),), "runtime": (("cudaLaunchKernel", "runtime", "launch"), ("cudaFree", "runtime", "memory")),
             "driver": (("cuLaunchKernel", "driver", "launch"), ("cuMemFree_v2", "driver", "memory")),
             "ioctl": (("NV_ESC_RM_FREE", "ioctl", "control"),), "kernel": (("page_fault", "kernel", "memory"), ("nv_open", "hook", "other")),
             "blocked": (("blocked", "kernel", "scheduling"),), "preempted": (("preempted", "kernel", "scheduling"),)}
THREADS = 3
MANY = 70000  # calls inside a single one: more than are kept apart


class Call:
    """A call with calls inside it. Its begin and its end are the next microseconds of its thread."""

    def __init__(self, clock, layer, children):
        self.layer, (self.name, self.own_layer, self.category) = layer, children.pop(0)
        self.begin = clock()
        self.children = [child() for child in children]
        self.end = clock()

    @property
    def total(self):
        return self.end - self.begin

    def own(self):
        return self.total - sum(child.total for child in self.children)

    def inside(self):
        """Yields all calls inside this one, at any depth."""
        for child in self.children:
            yield child
            yield from child.inside()


def grow(choice, clock, level=0):
    """Makes a random tree of calls. Each call has calls of inner layers, or of its own."""
    level = choice.randrange(level, len(LAYERS)) if level else choice.randrange(3)
    layer = LAYERS[level]
    count = choice.choice((0, 0, 1, 2, 4)) if level < 5 else 0
    return Call(clock, layer, [choice.choice(FUNCTIONS[layer]), *[lambda: grow(choice, clock, max(1, level))] * count])


def ticking(choice, now, jump_us=0):
    """Returns a clock. With jump_us, one tick of fifty takes up to that long."""
    def clock():
        nonlocal now
        now += THREADS * choice.randrange(1, jump_us // THREADS if jump_us and choice.random() < 0.02 else 20)
        return now
    return clock


def lines_of(calls):
    """Returns the lines of JSON for calls, given as (pid, tid, outermost call)."""
    number = 0
    for pid, tid, outermost in calls:
        for call in (outermost, *outermost.inside()):
            number += 1
            for phase, at_us, details in ("B", call.begin, {"category": call.category, "depth": 0}), ("E", call.end, {"status": 0}):
                yield json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": call.name, "layer": call.own_layer, "pid": pid,
                                  "tid": tid, "details": details}) + "\n"


def expected(calls, pid=None, window=(0, 1e18)):
    """Returns {(pid, layer, function): [calls, total, own, inside by layer…]} of the calls that returned in the window, in nanoseconds."""
    rows, threads = collections.defaultdict(lambda: [0] * (3 + len(LAYERS))), {}
    for its_pid, tid, outermost in calls:
        def is_in(call):
            return (pid is None or its_pid == pid) and window[0] <= call.end <= window[1]
        for call in (outermost, *outermost.inside()):
            if is_in(call):
                row = rows[its_pid, call.layer, call.name]
                inside = [1000 * sum(c.own() for c in call.inside() if c.layer == layer) for layer in LAYERS]
                row[:] = [a + b for a, b in zip(row, [1, 1000 * call.total, 1000 * call.own(), *inside])]
        # Calls that returned in the window without the call around them are outermost there.
        tops = [outermost] if is_in(outermost) else [c for c in outermost.inside() if is_in(c) and not any(is_in(o) and c in o.inside() for o in outermost.inside())]
        for call in tops:
            first, last, covered = threads.get((its_pid, tid), (call.begin, 0, 0))
            threads[its_pid, tid] = min(first, call.begin), max(last, call.end), covered + call.total
    for (its_pid, _), (first, last, covered) in threads.items():
        rows[its_pid, "program", None][2] += 1000 * (last - first - covered)
    return {key: tuple(row) for key, row in rows.items()}


def own_times(s, db, *arguments):
    columns = ", ".join(f"{layer}_ns" for layer in LAYERS)
    said = s.run(CUDATRACE, "sql", "--db", db, "--format", "json", f"""
        SELECT pid, layer, own_time.name AS name, calls, total_ns, own_ns, {columns}
          FROM own_time({", ".join("NULL" if value is None else str(value) for value in arguments)}) AS own_time
          JOIN processes USING (process_id)""", preload=False).stdout
    return {(row["pid"], row["layer"], row["name"]): tuple(list(row.values())[3:]) for row in json.loads(said)}


def imported(s, name, calls):
    lines, trace = s.dir / f"{name}.jsonl", s.dir / f"{name}.db"
    lines.write_text("".join(lines_of(calls)))
    s.run(CUDATRACE, "import", "--db", trace, lines, preload=False)
    return trace


def trees(s):
    choice, calls = random.Random(seed()), []
    for number, (pid, tid) in enumerate(((10, 10), (10, 11), (20, 20))):
        clock = ticking(choice, number)  # no two calls return at the same time
        calls += [(pid, tid, grow(choice, clock)) for _ in range(150)]
    trace = imported(s, "trees", calls)
    equal(own_times(s, trace), expected(calls), "own times")
    equal(own_times(s, trace, None, None, 20), expected(calls, 20), "own times of a process")
    ends = sorted(call.end for _, _, call in calls)
    window = ends[len(ends) // 3], ends[len(ends) // 2]
    base_ns = s.value("SELECT min(start_ns) FROM calls", db=trace) - 1000 * min(call.begin for _, _, call in calls)
    equal(own_times(s, trace, *(base_ns + 1000 * at for at in window)), expected(calls, None, window), "own times in a window")
    rows = json.loads(s.run(CUDATRACE, "report", "--db", trace, "--format", "json", "layers", "inside", preload=False).stdout)
    for pid in 10, 20:
        shares = sum(row["%_of_process"] for row in rows["layers"] if row["pid"] == pid)
        check(abs(shares - 100) < 0.5, "the shares of the layers:", shares)
    for row in rows["inside"]:
        shares = sum(row.get(f"{layer}_%") or 0 for layer in ("own", *LAYERS))
        check(abs(shares - 100) < 0.5, "the shares of a function:", row)


def many_inside(s):
    """Checks a call with more calls directly inside it than are kept apart."""
    choice = random.Random(seed())
    clock = ticking(choice, 0)
    leaves = [lambda: Call(clock, "driver", [FUNCTIONS["driver"][0]])] * MANY
    calls = [(10, 10, Call(clock, "runtime", [FUNCTIONS["runtime"][0], *leaves])),
             (10, 10, Call(clock, "runtime", [FUNCTIONS["runtime"][1], *leaves[:3]]))]
    equal(own_times(s, imported(s, "many", calls)), expected(calls), "own times")


def long_calls(s):
    """Checks calls that are short or long, so that some of the earlier calls can be forgotten. A long call may enclose hundreds of them."""
    choice, calls = random.Random(seed()), []
    for number, (pid, tid) in enumerate(((10, 10), (20, 20))):
        clock = ticking(choice, number, 400000)
        for _ in range(4):
            calls += [(pid, tid, grow(choice, clock)) for _ in range(300)]
            calls.append((pid, tid, Call(clock, "library", [FUNCTIONS["library"][0], *[lambda: grow(choice, clock, 1)] * 300])))
    trace = imported(s, "long", calls)
    check(s.value("SELECT count(*) FROM long_calls", db=trace) > 100, "there are few long calls")
    equal(own_times(s, trace), expected(calls), "own times")


with Session() as session:
    trees(session)
    long_calls(session)
    many_inside(session)
