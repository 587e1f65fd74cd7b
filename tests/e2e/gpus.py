"""Tests `cudatraced --gpu-samples` with a simulated NVML (tests/simnvml). The daemon samples GPUs only while processes are traced. A value
that cannot be read is NULL. An NVML call that does not return delays neither the trace nor the daemon's exit. Samples expire, continue in
the trace's next file, and are part of a replay."""
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import subprocess

from cudatrace_test import BUILD, CUDATRACE, DAEMON, DRIVER_PATH, HungCall, Session, WORKLOADS, check, equal, fifo, wait_for
from replay_test import check_same, replay, tables
from screen_test import Screen
from series_test import file, files, sql

SIMNVML = BUILD / "tests/simnvml"
GIB = 1 << 30


class Gpus:
    """The file that describes the GPUs' state to a session's simulated NVML."""

    def __init__(self, session, library="libsimnvml.so"):
        folder, self.path = session.dir / "driver", session.dir / "nvml"
        folder.mkdir()
        (folder / "libnvidia-ml.so.1").symlink_to(SIMNVML / library)
        self.write()
        self.env = dict(os.environ, LD_LIBRARY_PATH=str(folder), SIMNVML=str(self.path))

    def write(self, *lines):
        new = self.path.with_suffix(".new")
        new.write_text("".join(line + "\n" for line in lines))
        new.rename(self.path)

    def log(self):
        path = pathlib.Path(f"{self.path}.log")
        return path.read_text().splitlines() if path.exists() else []


@contextlib.contextmanager
def sampling(*options, **more):
    with Session() as s:
        gpus = Gpus(s, **more)
        s.start_daemon("--log-level", "info", *options, env=gpus.env)
        yield s, gpus


def has_library(s):
    return "simnvml" in pathlib.Path(f"/proc/{s.daemon.pid}/maps").read_text()


def await_samples(s, count, of="gpu_samples"):
    s.flush_until(f"{count} rows of {of}", lambda: s.value(f"SELECT count(*) FROM {of}") >= count)


def check_values(has_gpm):
    """Checks that the columns have the values that NVML reports, and that NVML is loaded only while a process is traced."""
    with sampling(library="libsimnvml.so" if has_gpm else "libsimnvml-old.so") as (s, gpus):
        s.flush()
        equal((has_library(s), gpus.log()), (False, []), "the library while no process is traced")
        with HungCall(s) as hung:
            gpus.write(f"process 0 {hung.pid} {3 * GIB} 55 11", f"process 0 1 {GIB} 0 0", "process 1 1 18446744073709551615 0 0")
            s.flush_until("processes of a GPU", lambda: s.value("SELECT count(*) FROM gpu_processes WHERE process_id IS NOT NULL"))
            await_samples(s, 2 * 2)
            hung.release()
        wait_for("the library to be closed", lambda: gpus.log()[-1:] == ["call nvmlShutdown"] and not has_library(s))
        equal(gpus.log(), ["call nvmlInit_v2", "call nvmlShutdown"], "calls")
        equal(s.rows("SELECT gpu, uuid, pci_address, name, memory_bytes, driver, is_mig FROM gpus ORDER BY gpu"),
              [(0, "GPU-00000000", "0000:3b:00.0", "Simulated GPU A", 80 * GIB, "580.00", 0),
               (1, "GPU-00000001", "0000:3c:00.0", "Simulated GPU B", 80 * GIB, "580.00", None)], "GPUs")
        equal(s.rows("SELECT busy_percent, memory_busy_percent FROM gpu_samples WHERE gpu_id = 1 ORDER BY time_ns LIMIT 2"),
              [(20, 10), (40, 20)], "utilisation")
        columns = "memory_used_bytes, power_mw, temperature_c, sm_mhz, memory_mhz, clock_limits, clock_reasons, ecc_corrected, ecc_uncorrected"
        equal(s.rows(f"SELECT DISTINCT gpu_id, {columns} FROM gpu_samples ORDER BY gpu_id"),
              [(1, 10 * GIB, 350000, None, 1980, 2619, "power cap, hardware thermal slowdown", 0x44, 3, 0),
               (2, GIB, 70000, None, 1880, 2619, "", 1, 3, 0)], "values")
        # The first sample has no values from GPM.
        columns = """pcie_sent_kb_per_s, pcie_received_kb_per_s, sm_busy_percent, sm_occupancy_percent, tensor_percent, fp64_percent, fp32_percent,
            fp16_percent, integer_percent, dram_percent"""
        without = (1, 1000, 25000000) + 8 * (None,)
        later = (1, 1048576, 2097152, 80.0625, 40.125, 50.25, 0, 20.5, 10.0078, 5, 30.75) if has_gpm else without
        found = s.rows(f"SELECT gpu_id, {columns} FROM gpu_samples ORDER BY gpu_id, time_ns")
        equal(found[0], (1,) + 10 * (None,) if has_gpm else without, "the first sample")
        equal(sorted(set(found[1:]), key=str), [later, (2,) + 10 * (None,)], "the other samples")
        links = s.rows("SELECT nvlink_sent_kb_per_s, nvlink_received_kb_per_s FROM gpu_samples WHERE gpu_id = 1 ORDER BY time_ns")
        equal(links[0], (None, None), "NVLink traffic before the first sample")
        check(all(sent > 0 and 0 <= received - 2 * sent <= 1 for sent, received in links[1:]), "NVLink traffic", links)
        equal(s.value("SELECT count(nvlink_sent_kb_per_s) FROM gpu_samples WHERE gpu_id = 2"), 0, "NVLink traffic without NVLink")
        traced = s.value("SELECT process_id FROM processes")
        equal(s.rows("SELECT DISTINCT gpu_id, pid, process_id, memory_bytes, busy_percent, memory_busy_percent FROM gpu_processes "
                     "ORDER BY gpu_id, pid"),
              [(1, 1, None, GIB, None, None), (1, hung.pid, traced, 3 * GIB, 55, 11), (2, 1, None, None, None, None)], "processes")
        log = s.log()
        equal(log.count("info: GPU 1 (Simulated GPU B): cannot read the sent PCIe traffic: Not Supported (error 3)"), 1, log)
        equal(log.count("cannot read the temperature"), 2, log)
        missing = [f"GPU {gpu} (Simulated GPU {name}): cannot read the activity of the SMs: {why}" for gpu, name, why in (
            ((1, "B", "Not Supported (error 3)"),) if has_gpm else ((0, "A", "Simulated Error (error 13)"), (1, "B", "Simulated Error (error 13)")))]
        equal([log.count(line) for line in missing], [1] * len(missing), log)
        equal(log.count("the activity of the SMs"), len(missing), log)


def check_report():
    """Checks that the report shows the mean and the maximum of the samples in its window. With --pid, the report must show only the GPUs
    that the process has used."""
    with sampling("--gpu-samples", "100ms") as (s, gpus):
        with HungCall(s) as hung, HungCall(s) as other:
            gpus.write(f"process 0 {hung.pid} {GIB} 50 5")
            await_samples(s, 2 * 5)
            await_samples(s, 1, "gpu_processes")
            s.flush_until("metrics", lambda: s.value("SELECT count(sm_busy_percent) FROM gpu_samples"))
            hung.release()
            other.release()
        s.stop_daemon()  # a sample that is being taken during a flush is stored later

        def rows(*options, section="gpus"):
            return json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", *options, section, preload=False).stdout)[section]

        def wanted(condition="1", *values):
            return [{"gpu": gpu, "name": name, "samples": samples, "busy_%": busy, "peak_gb": peak, "of_gb": 85.9, "mean_w": power,
                     "max_c": None, "limited_%": limited, "limited_by": by}
                    for gpu, name, samples, busy, peak, power, limited, by in s.rows(
                        "SELECT gpu, name, count(*), round(avg(busy_percent), 1), round(max(memory_used_bytes) / 1e9, 2), "
                        "round(avg(power_mw) / 1e3, 1), iif(gpu = 0, 100.0, 0.0), max(clock_limits) FROM gpu_samples "
                        f"JOIN gpus USING (gpu_id) WHERE {condition} GROUP BY gpu_id ORDER BY gpu", *values)]

        equal([row["mean_w"] for row in wanted()], [350.0, 70.0], "power")
        equal(rows(), wanted(), "the report")
        # Samples taken after the process has ended do not count. Such a sample may exist, because the two processes do not end at the same
        # time.
        lifetime = s.rows("SELECT started_ns, ended_ns FROM processes WHERE pid = ?", hung.pid)[0]
        equal(rows("--pid", str(hung.pid)), wanted("gpu = 0 AND time_ns BETWEEN ? AND ?", *lifetime), "the report of a process")
        equal(rows("--pid", str(other.pid)), [], "the report of a process that used no GPU")
        activity = [{"gpu": 0, "name": "Simulated GPU A", "sm_%": 80.1, "occupancy_%": 40.1, "tensor_%": 50.3, "fp64_%": 0.0, "fp32_%": 20.5,
                     "fp16_%": 10.0, "integer_%": 5.0, "dram_%": 30.8}]
        equal(rows(section="activity"), activity, "the activity of the GPUs")
        equal(rows("--pid", str(hung.pid), section="activity"), activity, "the activity of a process's GPUs")
        equal(rows("--pid", str(other.pid), section="activity"), [], "the activity of GPUs that the process did not use")
        lines = s.run(CUDATRACE, "report", "--db", s.db, "activity", preload=False).stdout.splitlines()
        check(max(map(len, lines)) + len("NVIDIA H100 80GB HBM3") - len("Simulated GPU A") <= 100, "wide lines", lines)
        zero_ns, third_ns = s.rows("SELECT (SELECT min(started_ns) FROM processes), time_ns FROM gpu_samples WHERE gpu_id = 1 ORDER BY time_ns "
                                   "LIMIT 1 OFFSET 2")[0]
        window = ("--to", f"{(third_ns + 1000 - zero_ns) / 1e9:.9f}")
        equal([(row["gpu"], row["samples"], row["busy_%"]) for row in rows(*window)], [(0, 3, 40.0), (1, 2, 0.0)], "the report of a window")


def check_top():
    """Checks that `top` shows the latest sample of each GPU on the screen, in a table and in JSON."""
    with sampling("--gpu-samples", "60s") as (s, _):
        equal(json.loads(s.cudatrace("top", "--once", "--json", "--interval", "0.1").stdout)["gpus"], [], "GPUs without a sample")
        with HungCall(s) as hung, Screen(s, 140, 10) as screen:
            await_samples(s, 2)
            line = "GPU 0: 20 %, 10.7 of 85.9 GB, 350 W, power cap, hardware thermal slowdown  GPU 1: 0 %, 1.1 of 85.9 GB, 70 W"
            screen.wait("the GPUs above the table", lambda lines: lines[2] == line and lines[3].split()[:2] == ["pid", "calls/s"])
            screen.press("Enter")
            screen.wait("the functions of the process", lambda lines: f"process {hung.pid}" in lines[0] and lines[2].split()[:2] == ["function", "calls/s"])
            moment = json.loads(s.cudatrace("top", "--once", "--json", "--interval", "0.1").stdout)
            equal(moment["gpus"][1], {"gpu": 1, "name": "Simulated GPU B", "busy_%": 0, "used_GB": 1.1, "of_GB": 85.9, "power_W": 70,
                                      "temperature_C": None, "limited_by": ""}, "GPUs in JSON")
            check("Simulated GPU A" in s.cudatrace("top", "--once", "--interval", "0.1").stdout, "no table of GPUs")
            check("Simulated" not in s.cudatrace("top", "--once", "--interval", "0.1", "--format", "csv").stdout, "a second table in CSV")
            hung.release()


def check_failures():
    """Checks that a value is NULL while NVML's function for it fails, and that the failure is logged once."""
    with sampling("--gpu-samples", "100ms") as (s, gpus):
        with HungCall(s) as hung:
            await_samples(s, 2)
            gpus.write("fail nvmlDeviceGetPowerUsage 0 999")
            power = "SELECT power_mw FROM gpu_samples WHERE gpu_id = 1 ORDER BY time_ns DESC LIMIT 2"
            s.flush_until("two samples without power", lambda: s.rows(power) == [(None,), (None,)])
            equal(s.value("SELECT count(*) FROM gpu_samples WHERE memory_used_bytes IS NULL"), 0, "samples without memory")
            gpus.write()
            s.flush_until("a sample with power", lambda: s.rows(power)[0] == (350000,))
            hung.release()
        equal(s.log().count("warning: GPU 0 (Simulated GPU A): cannot read the power: Unknown Error (error 999)"), 1, s.log())


def check_gpm():
    """Checks the metrics that GPM computes from two samples. A metric that fails is NULL, and an unsupported metric is not read again. If
    GPM fails, the PCIe traffic is read without GPM."""
    rows = "SELECT sm_busy_percent, fp64_percent, fp32_percent, pcie_sent_kb_per_s FROM gpu_samples WHERE gpu_id = 1"
    with sampling("--gpu-samples", "100ms") as (s, gpus):
        def await_row(what, wanted):
            last_ns = s.value("SELECT ifnull(max(time_ns), 0) FROM gpu_samples")
            s.flush_until(what, lambda: wanted in s.rows(f"{rows} AND time_ns > ?", last_ns))

        with HungCall(s) as hung:
            await_row("metrics", (80.0625, 0, 20.5, 1048576))
            gpus.write("metric 0 11 4 1", "metric 0 12 0 nan", "metric 0 20 3 0")
            await_row("metrics that fail", (80.0625, None, None, None))
            gpus.write("metric 0 2 0 0.00016", "metric 0 12 0 -1")
            await_row("a metric that is rounded, and a negative one", (0.0002, 0, None, None))
            gpus.write("fail nvmlGpmSampleGet 0 4")
            s.flush_until("the line in the log", lambda: "activity of the SMs: Insufficient Permissions (error 4)" in s.log())
            gpus.write()
            await_row("metrics again", (80.0625, 0, 20.5, None))
            hung.release()
        wait_for("the library to be closed", lambda: gpus.log()[-1:] == ["call nvmlShutdown"])
        equal(gpus.log(), ["call nvmlInit_v2", "call nvmlShutdown"], "calls, none of which is wrong")
        for line in ("info: GPU 0 (Simulated GPU A): cannot read the utilisation by FP64: Insufficient Permissions (error 4)",
                     "info: GPU 0 (Simulated GPU A): cannot read the sent PCIe traffic (GPM): Not Supported (error 3)",
                     "info: GPU 0 (Simulated GPU A): cannot read the activity of the SMs: Insufficient Permissions (error 4)"):
            equal(s.log().count(line), 1, s.log())
        check("FP32" not in s.log(), "a value that is not a number is an error", s.log())

    for failure, level in (("fail nvmlGpmMetricsGet 0 999", "warning"), ("fail nvmlGpmSampleAlloc 0 999", "warning"), ("metric 0 21 3 0", "info")):
        with sampling() as (s, gpus):
            gpus.write(failure)
            with HungCall(s) as hung:
                s.flush_until("PCIe traffic", lambda: (1000, 25000000) in s.rows("SELECT pcie_sent_kb_per_s, pcie_received_kb_per_s FROM gpu_samples"))
                hung.release()
            check(f"{level}: GPU 0 (Simulated GPU A): cannot read the " in s.log(), s.log())


def check_no_gpus():
    for lines, options, env, wanted in (
            (["fail nvmlInit_v2 0 18"], [], {}, "warning: GPUs are not sampled: cannot initialise libnvidia-ml.so.1: Simulated Error (error 18)"),
            (["fail nvmlInit_v2 0 9"], [], {}, "info: GPUs are not sampled: cannot initialise"),
            (["fail nvmlDeviceGetCount_v2 0 999"], [], {}, "info: GPUs are not sampled: NVML lists no GPU"),
            ([], [], {"LD_LIBRARY_PATH": "/nonexistent"}, "info: GPUs are not sampled: cannot load libnvidia-ml.so.1: "),
            ([], ["--gpu-samples", "off"], {}, None)):
        with Session() as s:
            gpus = Gpus(s)
            gpus.write(*lines)
            s.start_daemon("--log-level", "info", *options, env={**gpus.env, **env})
            with HungCall(s) as hung:
                if wanted:
                    s.flush_until("the line in the log", lambda: wanted in s.log())
                s.run(WORKLOADS / "demo")
                hung.release()
            s.flush()
            s.check_identity()
            s.stop_daemon()
            equal((s.value("SELECT count(*) FROM gpu_samples"), s.log().count("GPUs are not sampled")), (0, 1 if wanted else 0), s.log())


def check_blocked(is_released):
    """Checks that calls are stored while a function of NVML hangs. If the function returns later, the daemon takes more samples. If it
    never returns, the daemon still exits in time."""
    with sampling("--gpu-samples", "100ms") as (s, gpus), fifo(s.dir, "released") as released:
        gpus.write(f"block nvmlDeviceGetPowerUsage 1 {released}")
        with HungCall(s) as hung:
            wait_for("the library to block", lambda: "block nvmlDeviceGetPowerUsage" in gpus.log())
            s.run(WORKLOADS / "demo")
            s.flush()
            check(s.value("SELECT count(*) FROM launches") > 0, "no launches")
            if is_released:
                gpus.write()
                with open(released, "w"):
                    pass
                await_samples(s, 6)
                equal(s.value("SELECT count(*) FROM gpu_samples WHERE power_mw IS NULL"), 0, "samples without power")
            hung.release()
        s.flush()
        s.check_identity()
        s.stop_daemon()
        equal(s.log().count("a call of NVML has not returned"), 0 if is_released else 1, s.log())


def check_files():
    """Checks that samples continue in the trace's next file and under the next daemon, and that there is still one row per GPU. A replay
    must give the same rows."""
    with Session() as s:
        gpus = Gpus(s)
        recording, again = s.dir / "recording", s.dir / "again.db"
        s.start_daemon("--gpu-samples", "100ms", "--record", recording, env=gpus.env)
        with HungCall(s) as hung:
            gpus.write(f"process 0 {hung.pid} {GIB} 50 5")
            await_samples(s, 4)
            await_samples(s, 2, "gpu_processes")
            traced_pid = hung.pid
            hung.release()
        s.stop_daemon()
        replay("--replay", recording, "--db", again)
        check_same(tables(again), tables(s.db), "the replay")

        s.start_daemon("--gpu-samples", "100ms", env=gpus.env)
        with HungCall(s) as hung:
            before = s.value("SELECT count(*) FROM gpu_samples")
            await_samples(s, before + 2)
            s.daemon.send_signal(signal.SIGHUP)
            wait_for("the next file", lambda: files(s) == [1, 2])
            s.flush_until("samples in the next file", lambda: s.value("SELECT count(*) FROM gpu_samples", db=file(s, 2)))
            hung.release()
        s.stop_daemon()
        parts = [s.value("SELECT count(*) FROM gpu_samples", db=file(s, number)) for number in (1, 2)]
        equal(sql(s, "SELECT count(*), count(DISTINCT gpu_id || ' ' || time_ns) FROM gpu_samples"), [[sum(parts)] * 2], "samples")
        equal(sql(s, "SELECT gpu, name FROM gpus ORDER BY gpu"), [[0, "Simulated GPU A"], [1, "Simulated GPU B"]], "GPUs")
        equal(sql(s, "SELECT count(*) FROM gpu_samples JOIN gpus USING (gpu_id)"), [[sum(parts)]], "samples with their GPUs")
        # The file with the GPUs' state still lists the first process after it has ended, so both files have samples of it.
        equal(sql(s, "SELECT pid, gpu, name, process_id IS NULL, first_ns < last_ns FROM process_gpus ORDER BY 4"),
              [[traced_pid, 0, "Simulated GPU A", 0, 1], [traced_pid, 0, "Simulated GPU A", 1, 1]], "GPUs of processes")


def check_undone():
    """Checks that if a batch that contains samples is rolled back, or the database is locked, each sample is stored exactly once later."""
    with sampling("--gpu-samples", "100ms") as (s, gpus), contextlib.closing(sqlite3.connect(s.db, timeout=60, isolation_level=None)) as other:
        def await_failures(number):
            wait_for("the daemon to fail", lambda: s.log().count("retrying every second") == number)

        with HungCall(s) as hung:
            gpus.write(f"process 0 {hung.pid} {GIB} 50 5")
            await_samples(s, 1, "gpu_processes")
            # With this setting, SQLite does not change the view when the table is renamed.
            other.execute("PRAGMA legacy_alter_table = ON")
            other.execute("ALTER TABLE gpu_process RENAME TO moved")
            await_failures(1)
            other.execute("ALTER TABLE moved RENAME TO gpu_process")
            await_samples(s, s.value("SELECT count(*) FROM gpu_samples") + 4)
            other.execute("BEGIN IMMEDIATE")
            await_failures(2)
            other.execute("ROLLBACK")
            await_samples(s, s.value("SELECT count(*) FROM gpu_samples") + 4)
            hung.release()
        s.flush()
        busy = [percent for percent, in s.rows("SELECT busy_percent FROM gpu_samples WHERE gpu_id = 1 ORDER BY time_ns")]
        equal(busy, [20 * (n % 5) + 20 for n in range(len(busy))], "the samples in their order")


def check_keep():
    """Checks that samples expire even if the program makes no calls."""
    with sampling("--gpu-samples", "100ms", "--keep", "1s") as (s, gpus):
        with HungCall(s) as hung:
            gpus.write(f"process 0 {hung.pid} {GIB} 50 5")
            await_samples(s, 1, "gpu_processes")
            first_ns = s.value("SELECT min(time_ns) FROM gpu_processes")
            s.flush_until("old samples to go", lambda: s.value(
                "SELECT min(gpu_samples.time_ns) > ?1 AND min(gpu_processes.time_ns) > ?1 FROM gpu_samples, gpu_processes", first_ns))
            hung.release()


def check_run():
    """Checks that `cudatrace run` passes the sampling interval to the daemon that it starts."""
    with Session() as s:
        gpus = Gpus(s, "libsimnvml-old.so")
        command = (CUDATRACE, "run", "--session", s.name, "--db", s.db, "--gpu-samples", "100ms", "--")
        env = {"SIMNVML": gpus.path, "LD_LIBRARY_PATH": f"{gpus.env['LD_LIBRARY_PATH']}:{DRIVER_PATH}"}
        with HungCall(s, within=command, env=env, start=lambda *words, **options: s.start(*words, preload=False, **options)) as hung:
            await_samples(s, 2)
            equal(s.value("SELECT count(pcie_sent_kb_per_s) FROM gpu_samples"), 0, "PCIe traffic in frequent samples")
            hung.release()
        done = s.run(CUDATRACE, "run", "--db", s.dir / "other.db", "--gpu-samples", "99ms", "--", "true", preload=False, status=2)
        check("run: cannot start a daemon: invalid value '99ms' for --gpu-samples" in done.stderr, done.stderr)


def check_option():
    for value in ("", "0s", "99ms", "61s", "1", "1m", "-1s", "1sx", "on"):
        done = subprocess.run([DAEMON, "--gpu-samples", value], capture_output=True, text=True)
        equal((done.returncode, done.stderr), (2, f"cudatraced: invalid value '{value}' for --gpu-samples: expected an interval from 100ms to "
                                                  "60s, or off (see cudatraced --help)\n"), value)


if __name__ == "__main__":
    check_option()
    check_run()
    check_values(has_gpm=True)
    check_values(has_gpm=False)
    check_gpm()
    check_report()
    check_top()
    check_failures()
    check_no_gpus()
    check_blocked(is_released=True)
    check_blocked(is_released=False)
    check_files()
    check_undone()
    check_keep()
