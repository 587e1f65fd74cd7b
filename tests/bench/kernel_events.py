"""Measures the time that `cudatrace probe --kernel` adds to work that it does not record. The probe records a hooked program, but not a
bare one. Before and during the probe, both programs run rounds of page faults and thread switches outside of calls, rounds of driver calls,
and rounds of other system calls."""
from functools import partial

from cudatrace_test import BUILD, check
from figures import emit, emit_missing
from probed_programs import Probe, Program, added_by
from program import PROGRAMS, Measured

PROBES = 15
WORKS = {work: work for work in ("fault", "switch", "driver_call", "system_call")}


def run(_build, _options):
    if not (BUILD / "probe/cudatrace-probe").exists():
        emit_missing("kernel_events", "probe", "this build has no probe")
        return
    with Measured() as session:
        session.start_daemon()
        command = PROGRAMS / "kernel_events_cost"
        programs = {"hooked": Program(session, command), "bare": Program(session, command, preload=False)}
        pid = programs["hooked"].process.pid
        session.flush()
        try:
            added = added_by(programs, WORKS, {"kernel": partial(Probe, session, pid, "--kernel")}, PROBES)
        except RuntimeError as error:
            emit_missing("kernel_events", "probe", error)
            return
        for program in programs.values():
            program.process.communicate()
        session.flush()
        # A few events are expected, because an interrupt sometimes preempts a driver call.
        events = session.value("SELECT count(*) FROM calls WHERE layer = 'kernel'")
        check(events < 1000, events, "events are recorded, in work without any")
    for (_, name, work), values in added.items():
        emit("kernel_events", f"{name}_{work}_added_ns", values, "ns", recorded=events)
