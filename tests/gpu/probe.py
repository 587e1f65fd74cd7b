#!/usr/bin/env python3
"""Probes working programs on a real GPU, and compares the recorded calls with CUPTI's counts. Must run as root.

The workloads are the same as in attach.py. For each driver function, the number of calls recorded between two quiet moments must equal the
number of CUPTI's callbacks. After the probe has exited, no more calls may be recorded. All results must be bit-identical. In the "handover"
workload, the probe takes over from the hook.

    probe.py --build build                      0 for success, 1 for a failure, 2 for wrong usage, 77 where there is no GPU or CUPTI
    probe.py --simulated build                  the same on the simulated driver, with its own counts in place of CUPTI's
"""
import re
import sys

import attach
from attach import PLAIN_EPOCHS, between, check_part, check_results, check_trace, compare_calls, end_programs

ATTACH_MOST_MS = 100


def exact(report, work):
    """Starts and ends a probe while the program is working, and compares the recorded calls with CUPTI's counts."""
    report.begin(f"{work.name}: counts")
    work.start(cupti=True)
    work.steps(PLAIN_EPOCHS * work.epoch_steps)
    plain = [program.snapshot() for program in work.programs]
    probe = work.probed_at_work()
    begun = work.moment()
    work.steps(work.workload.steps)
    over = work.moment()
    work.interrupt_at_work(probe)
    left = work.moment()
    work.steps(work.workload.burst)
    end = work.moment()

    took_ms = [float(ms) for ms in re.findall(r"functions of .* in ([\d.]+) ms", probe.said.text())]
    [cost] = re.findall(r"a call takes (\d+) ns longer", probe.said.text())
    if work.bench.simulated:
        report.check(took_ms, f"the probes were attached in {took_ms} ms")
    else:
        report.check(took_ms and max(took_ms) <= ATTACH_MOST_MS, f"the probes were attached in {took_ms} ms, at most {ATTACH_MOST_MS}")
    figures = {"attached_ms": took_ms, "cost_ns": int(cost)}
    for i, program in enumerate(work.programs):
        name = f"process {program.pid}" if len(work.programs) > 1 else "driver calls"
        ours, theirs = between(begun.ours[i], over.ours[i]), between(begun.theirs[i], over.theirs[i])
        compare_calls(report, f"{name}, {work.workload.steps} steps", ours, theirs, set())
        check_part(report, f"{name}, around the start", begun.ours[i], between(plain[i], begun.theirs[i]))
        check_part(report, f"{name}, around the end", between(over.ours[i], left.ours[i]), between(over.theirs[i], left.theirs[i]))
        report.check(end.ours[i] == left.ours[i] and end.theirs[i] != left.theirs[i],
                     f"{name}, after the end: {sum(between(left.theirs[i], end.theirs[i]).values())} calls, none of them recorded")
        report.check(not program.shared_memory(), "nothing is left in /dev/shm", program.shared_memory())
        figures.update({"calls": sum(ours.values()), "functions": len(ours), "epochs": check_results(report, program)["epochs"]})
    report.check(not work.problems, "CUPTI lost nothing", sorted(work.problems))
    for line in probe.said.text().splitlines():
        report.note(line)
    end_programs(report, work)
    return figures | check_trace(report, work, has_names=False)


def taken_over(report, work):
    """Attaches the hook, starts a probe, and then ends `attach`, so that the hook leaves the process and the probe takes over. Checks that
    no call is missed or recorded twice."""
    report.begin(f"{work.name}: taken over")
    work.start(cupti=True)
    work.steps(PLAIN_EPOCHS * work.epoch_steps)
    slotless = attach.Before(work.programs[0]).slotless
    attached = work.recorded_at_work()
    begun = work.moment()
    probe = work.probed_at_work()
    both = work.moment()
    work.interrupt_at_work(attached)
    work.steps(work.workload.burst)
    over = work.moment()
    work.steps(work.workload.burst)
    end = work.moment()
    probe.interrupt()
    probe.wait()
    for i, program in enumerate(work.programs):
        for what, first, second, missing in (("by the hook, next to a probe", begun, both, slotless), ("across the change", both, over, slotless),
                                             ("by the probe", over, end, set())):
            compare_calls(report, f"process {program.pid}, {what}", between(first.ours[i], second.ours[i]),
                          between(first.theirs[i], second.theirs[i]), missing)
        check_results(report, program)
    report.check(not work.problems, "CUPTI lost nothing", sorted(work.problems))
    for line in (attached.said.text() + probe.said.text()).splitlines():
        report.note(line)
    end_programs(report, work)
    return check_trace(report, work, has_names=False)


class Bench(attach.Bench):
    """The same programs, probed."""

    def scene(self, name):
        return taken_over if name == "handover" else exact


if __name__ == "__main__":
    sys.exit(attach.main(Bench, "Probe programs at work on this machine's GPU, and compare with CUPTI.", ("torch", "handover", "triton", "jax", "nccl"),
                         ("tools/cudatrace", "collector/cudatraced", "hook/libcudatrace.so", "probe/cudatrace-probe")))
