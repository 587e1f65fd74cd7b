"""Tests which clock a daemon chooses for each of the kernel's clock sources. If the kernel stops trusting the processor's timestamp
counter, the log and `status` report this, and calls are still stored."""
from cudatrace_test import DAEMON, Session, WORKLOADS, check, equal, mount_namespace, needs, wait_for

SOURCES = "/sys/devices/system/clocksource/clocksource0"
needs("mount namespaces")

with Session() as s:
    # Mount the test's own file over the file in /sys that contains the kernel's clock source, so that the daemon reads the test's file
    # instead.
    current = s.dir / "current_clocksource"
    available = s.dir / "available_clocksource"
    current.write_text("tsc\n")
    available.write_text("tsc hpet\n")
    program = s.dir / "cudatraced"
    program.write_text(f"#!/bin/sh\nmount --bind {current} {SOURCES}/current_clocksource &&\n"
                       f"mount --bind {available} {SOURCES}/available_clocksource && exec {DAEMON} \"$@\"\n")
    program.chmod(0o755)
    wrapper = s.dir / "in_namespace"
    wrapper.write_text(f"#!/bin/sh\nexec {' '.join(mount_namespace())} {program} \"$@\"\n")
    wrapper.chmod(0o755)
    s.daemon_program = wrapper
    for source, sources, clock in (("hyperv_clocksource_tsc_page", "hyperv_clocksource_tsc_page acpi_pm", "counter"),
                                   ("kvm-clock", "tsc kvm-clock", "counter"), ("kvm-clock", "kvm-clock", "clock_gettime"),
                                   ("hpet", "tsc hpet", "clock_gettime"), ("tsc", "tsc hpet", "counter")):
        current.write_text(f"{source}\n")
        available.write_text(f"{sources}\n")
        if s.daemon:
            s.stop_daemon()
        s.start_daemon(clock="")
        equal(s.status()["clock"], clock, f"the clock of {source} among {sources}")
    s.run(WORKLOADS / "calls", "--calls", 100)
    current.write_text("hpet\n")
    wait_for("the daemon's doubt", lambda: "no longer trusts" in s.cudatrace("status").stdout)
    s.run(WORKLOADS / "calls", "--calls", 100)
    s.flush()
    s.check_identity()
    s.check_truth()
    log = (s.dir / "daemon.log").read_text()
    check(log.count("no longer trusts the processor's counter (the clock source is now hpet)") == 1, log)
