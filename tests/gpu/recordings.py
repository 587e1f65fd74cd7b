#!/usr/bin/env python3
"""Begins and ends recordings of GPU work (`cudatrace set --gpu`) during training runs on a real GPU.

Eight PyTorch runs train at the same time, and four of them record. The trace must contain GPU work from these four alone, and only from
the time while they were recording. All epochs have bit-identical results. In a training run on its own, the test measures the
longest step as each recording begins and ends. torch.profiler is used before, during and after recordings.

Two more training runs replay their steps as a CUDA graph, through several recordings and torch.profiler. The second one records whole graphs
from its start.

    recordings.py --build build --out report        0 for success, 1 for a failure, 2 for wrong usage, 77 where there is no GPU
"""
import contextlib
import re
import statistics
import sys

import attach
import compare
import run
from attach_work import Trouble

TIMES = 10
PAUSE_MOST_MS = 40
LIMIT_S = 60
AFTER_NS = 300_000_000  # a change is over so long after the answer
CLOCKS_DIFFER_US = 100


class Set:
    """A `cudatrace set --gpu` that has ended. `answer` is the sentence that it printed."""

    def __init__(self, work, *words):
        self.begun_ns = attach.time.monotonic_ns()
        done = work.tool("set", "--gpu", *map(str, words))
        self.ended_ns, self.answer = attach.time.monotonic_ns(), done.stdout.strip()
        if done.returncode:
            raise Trouble(f"set --gpu {words}: {done.stderr}")


def made(program):
    found = [re.search(r"^at (\d+)", line) for _, line in program.said.lines[-20:]]
    return max((int(match[1]) for match in found if match), default=0)


def progress(programs, steps):
    """Waits until each program has made some more steps."""
    goals = [(program, made(program) + steps) for program in programs]
    for program, goal in goals:
        with program.said.changed:
            if not program.said.changed.wait_for(lambda: made(program) >= goal or program.said.has_ended, LIMIT_S):
                raise Trouble(f"process {program.pid} made no {steps} steps in {LIMIT_S} s")


def stop(programs):
    for program in programs:
        program.tell("")
    for program in programs:
        program.hear()


def steps_of(program):
    result = program.ask("result")
    return list(zip(result["began_ns"], result["ended_ns"]))


def longest_ms(steps, begin_ns, end_ns):
    return max(((ended - began) / 1e6 for began, ended in steps if began < end_ns and ended > begin_ns), default=0)


def median_ms(steps):
    return statistics.median((ended - began) / 1e6 for began, ended in steps)


def alone(report, work, program):
    """Measures the pauses in a single training run. Returns the figures."""
    report.begin("recordings: the pause at a begin and at an end")
    program.tell("run")
    progress([program], 300)
    changes = []
    for _ in range(TIMES):
        for word, recording in (("on", 1), ("off", 0)):
            change = Set(work, word, "--pid", program.pid)
            changes.append((word, change))
            if change.answer != f"{recording} of 1 processes record GPU work":
                report.check(False, f"set --gpu {word} answers '{change.answer}'")
            progress([program], 100)
    stop([program])
    steps = steps_of(program)
    near = {word: [longest_ms(steps, change.begun_ns, change.ended_ns + AFTER_NS) for name, change in changes if name == word]
            for word in ("on", "off")}
    ends = [(change.begun_ns, change.ended_ns + AFTER_NS) for _, change in changes]
    far = [step for step in steps if not any(step[0] < end and step[1] > begin for begin, end in ends)]
    on = [(first.ended_ns + AFTER_NS, second.begun_ns) for (_, first), (_, second) in zip(changes[::2], changes[1::2])]
    inside = [step for step in far if any(begin < step[0] < end for begin, end in on)]
    outside = [step for step in far if step not in set(inside)]
    plain = [step for step in steps if step[1] < changes[0][1].begun_ns][50:]
    last = [step for step in steps if step[0] > changes[-1][1].ended_ns + AFTER_NS]
    figures = {"steps": len(steps), "plain_ms": median_ms(plain), "plain_longest_ms": longest_ms(plain, 0, 1 << 63),
               "on_longest_ms": near["on"], "off_longest_ms": near["off"], "outside_ms": median_ms(outside)}
    if inside:
        figures["inside_ms"] = median_ms(inside)
    if last:
        figures["last_ms"] = median_ms(last)
    extra = max(near["on"]) - figures["plain_ms"]
    report.check(extra <= PAUSE_MOST_MS, f"{TIMES} begins: the longest step takes {extra:.1f} ms more than the median of "
                 f"{figures['plain_ms']:.2f} ms; {PAUSE_MOST_MS} at most", [str(near["on"])])
    report.note(str(figures))
    return figures


def launches_us(work, program, begin_ns, end_ns):
    """Returns the median duration of the launches that began between the two times."""
    rows = work.rows("SELECT duration_ns FROM calls WHERE pid = ? AND name LIKE 'cuLaunchKernel%' AND start_ns BETWEEN ? AND ?", program.pid,
                     begin_ns, end_ns)
    return statistics.median(ns / 1e3 for ns, in rows) if rows else None


def four_of_eight(report, work):
    report.begin("recordings: four of eight trainings")
    chosen, programs = work.programs[::2], work.programs
    work.flush()
    before = dict(work.rows("SELECT pid, count(*) FROM gpu_work JOIN processes USING (process_id) GROUP BY pid"))
    for program in programs:
        program.tell("run")
    progress(programs, 60)
    begun_ns = attach.time.monotonic_ns()
    changes = [Set(work, "5s", "--pid", program.pid) for program in chosen]
    report.check(all(change.answer == "1 of 1 processes record GPU work" for change in changes), "the four begin",
                 [change.answer for change in changes])
    late = 0
    while "\ngpu 0 of 8 processes record GPU work\n" not in work.tool("status").stdout:  # and none is yet to stop
        late = attach.time.monotonic_ns()
        progress(programs[1:2], 10)
    ended_ns = attach.time.monotonic_ns()
    progress(programs, 100)
    stop(programs)
    work.flush()
    counts = dict(work.rows("SELECT pid, count(*) FROM gpu_work JOIN processes USING (process_id) GROUP BY pid"))
    new = {pid: count - before.get(pid, 0) for pid, count in counts.items() if count > before.get(pid, 0)}
    report.check(set(new) == {program.pid for program in chosen}, f"only the chosen four have new GPU work: {new}",
                 [str([program.pid for program in chosen])])
    first, last = work.rows("SELECT min(gpu_start_ns), max(gpu_end_ns) FROM gpu_work WHERE gpu_start_ns > ?", begun_ns)[0]
    report.check(first >= begun_ns and last <= ended_ns, f"the work is from the {(last - first) / 1e9:.1f} s of the recordings")
    rows, without, early_us = work.rows("SELECT count(*), sum(call_id IS NULL), max(start_ns - gpu_start_ns) / 1e3 FROM gpu_work LEFT JOIN calls "
                                        "USING (call_id)")[0]
    report.check(rows and without <= TIMES + len(chosen), f"{rows - without} of {rows} rows have their call, all but those in progress at a begin")
    report.check(early_us < CLOCKS_DIFFER_US, f"work begins at most {early_us:.0f} us before its call, the accuracy of CUPTI's conversion of times")
    figures = {}
    for name, group in (("chosen", chosen), ("others", programs[1::2])):
        for part, begin, end in (("before", 0, begun_ns), ("during", changes[-1].ended_ns, begun_ns + 4 * 10 ** 9), ("after", ended_ns, 1 << 62)):
            values = [launches_us(work, program, max(begin, begun_ns - 5 * 10 ** 9), end) for program in group]
            figures[f"launch_{name}_{part}_us"] = [value and round(value, 2) for value in values]
    report.note(str(figures))
    report.note(f"status was last busy at {(late - begun_ns) / 1e9:.1f} s")
    return figures


def profilers(report, work):
    """Runs torch.profiler in several processes: before, during and after a recording."""
    report.begin("recordings: torch.profiler")
    recorded, never, during = work.programs[0], work.programs[1], work.programs[3]
    figures = {"before": never.ask("profile")["kernels"]}
    report.check(figures["before"] > 0, f"before a recording, the profiler sees {figures['before']} kernels")
    never.tell("run")
    figures["answer after the profiler"] = Set(work, "on", "--pid", never.pid).answer
    progress([never], 20)
    Set(work, "off", "--pid", never.pid)
    stop([never])
    figures["after both"] = never.ask("profile")["kernels"]
    during.tell("run")
    report.check(Set(work, "on", "--pid", during.pid).answer.startswith("1 of 1"), "a recording begins")
    stop([during])
    figures["during"] = during.ask("profile")["kernels"]
    Set(work, "off", "--pid", during.pid)
    figures["after"] = recorded.ask("profile")["kernels"]
    figures["after during"] = during.ask("profile")["kernels"]
    report.check(figures["after"] == figures["before"], f"after a recording, the profiler sees {figures['after']} kernels")
    report.note(str(figures))
    return figures


def graph_launches_us(work, begin_ns, end_ns):
    """Returns the median duration of the launches of graphs that began between the two times."""
    rows = work.rows("SELECT duration_ns FROM calls WHERE name LIKE 'cuGraphLaunch%' AND start_ns BETWEEN ? AND ?", begin_ns, end_ns)
    return round(statistics.median(ns / 1e3 for ns, in rows), 2)


def check_graph_recordings(report, work, begun_ns, forms):
    """Checks the work of each recording. `forms` has the form of each, either `nodes` or `whole`."""
    found = work.rows("SELECT recording, count(*), sum(call_id IS NULL), max(start_ns - gpu_start_ns) / 1e3, sum(gpu_work.kind = 'graph'), "
                      "min(gpu_start_ns) FROM gpu_work LEFT JOIN calls USING (call_id) GROUP BY 1 ORDER BY 1")
    report.check(len(found) == len(forms), f"{len(found)} of {len(forms)} recordings have work", [str(found)])
    for (recording, rows, without, early_us, graphs, first_ns), form, begin_ns in zip(found, forms, begun_ns):
        sizes = [size for size, in work.rows("SELECT count(*) FROM gpu_work JOIN calls USING (call_id) WHERE recording = ? AND name LIKE "
                                             "'cuGraphLaunch%' GROUP BY call_id ORDER BY call_id", recording)]
        pieces = statistics.mode(sizes)
        odd = [size for size in sizes if size != pieces]
        report.check((graphs > 0) == (form == "whole") and (pieces == 1) == (form == "whole") and len(odd) <= 2,
                     f"recording {recording}: {len(sizes)} launches of graphs with {pieces} pieces of work each, but at the begin or the end",
                     [f"other numbers: {odd[:20]}; pieces of kind graph: {graphs}"])
        report.check(without <= pieces and early_us < CLOCKS_DIFFER_US and first_ns >= begin_ns,
                     f"recording {recording}: {rows} pieces, {without} without their call; work begins at most {early_us:.0f} us before its call",
                     [f"first {(first_ns - begin_ns) / 1e6:.3f} ms after the request"])


def graphs(report, work):
    report.begin(f"recordings: {work.name}")
    whole = work.name == "whole-graphs"
    began_whole_ns = attach.time.monotonic_ns()
    work.bench.env.update(LD_PRELOAD=work.bench.hook, CUDATRACE_SESSION=work.session, CUDATRACE_GPU="graphs" if whole else "")
    work.start(cupti=False)
    program, = work.programs
    launches, begun_ns, forms = {}, [], []

    def measure(what):
        begin_ns = attach.time.monotonic_ns()
        progress([program], 300)
        work.flush()
        launches[what] = graph_launches_us(work, begin_ns, attach.time.monotonic_ns())

    program.tell("run")
    if whole:
        begun_ns.append(began_whole_ns)
        forms.append("whole")
        measure("whole")
        Set(work, "off")
    measure("before")
    for number in range(1, 4):
        change = Set(work, "on")
        report.check(change.answer == "1 of 1 processes record GPU work", f"recording {number} begins", [change.answer])
        begun_ns.append(change.begun_ns)
        forms.append("nodes")
        measure(f"during {number}")
        Set(work, "off")
        measure(f"after {number}")
    stop([program])
    kernels = program.ask("profile")["kernels"]
    report.check(kernels > 0, f"after recordings, the profiler sees {kernels} kernels")
    program.tell("run")
    measure("after the profiler")
    answer = Set(work, "on").answer
    progress([program], 100)
    Set(work, "off")
    stop([program])
    check_graph_recordings(report, work, begun_ns, forms)
    attach.check_results(report, program)
    attach.end_programs(report, work)
    report.note(f"median duration of a graph's launch: {launches} us; a recording after the profiler: {answer}")
    return {"launches_us": launches, "profiled_kernels": kernels, "answer": answer}


def waiting(report, work):
    """Ends a recording while the GPU waits for a call that the program makes later. CUPTI would wait for the GPU, and calls for CUPTI."""
    report.begin("recordings: work that waits for the program")
    work.bench.env.update(LD_PRELOAD=work.bench.hook, CUDATRACE_SESSION=work.session, CUDATRACE_GPU="")
    work.start(cupti=False)
    program, = work.programs
    program.tell("run")
    progress([program], 200)
    Set(work, "on")
    progress([program], 50)
    stop([program])
    program.tell("block")
    program.hear()
    program.tell("run")
    progress([program], 50)
    change = Set(work, "off")
    progress([program], 100)
    report.check(change.answer == "0 of 1 processes record GPU work", "the recording ends while the GPU waits", [change.answer])
    stop([program])
    steps = steps_of(program)
    longest = longest_ms(steps, change.begun_ns, change.ended_ns)
    report.check(longest < 200, f"the longest step at the end takes {longest:.1f} ms")
    attach.check_results(report, program)
    attach.end_programs(report, work)
    return {"longest_ms": longest}


def scene(report, work):
    work.bench.env.update(LD_PRELOAD=work.bench.hook, CUDATRACE_SESSION=work.session)
    work.start(cupti=False)
    figures = {"alone": alone(report, work, work.programs[0]), "eight": four_of_eight(report, work), "profiler": profilers(report, work)}
    report.begin("recordings: the trainings")
    for program in work.programs:
        attach.check_results(report, program)
    attach.end_programs(report, work)
    work.flush()
    with contextlib.closing(compare.open_database(work.db)) as database:
        lost = database.execute("SELECT pid, cause, sum(calls) FROM losses JOIN processes USING (process_id) GROUP BY 1, 2").fetchall()
    pending = work.rows("SELECT pid, count(*) FROM gpu_pending JOIN processes USING (process_id) GROUP BY pid")
    report.check(not lost and not pending, "nothing lost, and no work unreturned", [f"lost: {lost}, unreturned: {pending}"])
    return figures


class Bench(attach.Bench):
    def __init__(self, options, scratch):
        super().__init__(options, scratch)
        self.hook = attach.os.path.abspath(f"{options.build}/hook/libcudatrace.so")

    def prepare(self, report, names):
        run.require_gpu()
        self.python = attach.shutil.which("python3") or sys.executable
        return [name for name in names if self.has(report, name, attach.WORKLOADS[name].processes)]

    def scene(self, name):
        return {"recordings": scene, "waiting": waiting}.get(name, graphs)


if __name__ == "__main__":
    sys.exit(attach.main(Bench, "Record GPU work in running trainings on this machine's GPU.", ("recordings", "graphs", "whole-graphs", "waiting"),
                         ("tools/cudatrace", "collector/cudatraced", "hook/libcudatrace.so", "hook/libcudatrace-gpu.so")))
