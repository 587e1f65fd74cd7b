"""Tests samples of a GPU that is divided into instances (MIG), with a simulated NVML. Each instance has a row with its memory and the
activity of its SMs, and each process is listed with the instance that it uses. Instances that are created later appear, and instances that
are destroyed disappear. A failure is logged once."""
import json

from cudatrace_test import CUDATRACE, HungCall, Session, check, equal, wait_for
from gpus import GIB, Gpus, await_samples, sampling
from replay_test import check_same, replay, tables

FIRST, SECOND = f"mig 100 1 0 MIG-aaaa 1g.10gb {10 * GIB}", f"mig 300 5 1 MIG-bbbb 3g.40gb {40 * GIB}"
WHOLE = (0, "0", "GPU-00000000", "Simulated GPU A", 80 * GIB, 1, None, None, None)


def instances(s):
    return [uuid for uuid, in s.rows("SELECT uuid FROM gpus WHERE whole_id IS NOT NULL ORDER BY uuid")]


def check_instances():
    """Checks that instances have rows in `gpus`, `gpu_samples` and `gpu_processes`, in the report, and in the replay of a recording."""
    with Session() as s:
        gpus = Gpus(s)
        s.start_daemon("--gpu-samples", "100ms", "--record", s.dir / "recording", "--log-level", "info", env=gpus.env)
        gpus.write(FIRST, SECOND)
        with HungCall(s) as hung, HungCall(s) as other:
            # The last `process` line assigns a process to the whole GPU. The daemon must ignore it, because the GPU is divided.
            gpus.write(FIRST, SECOND, f"process 100 {hung.pid} {3 * GIB} 0 0", f"process 300 {other.pid} {GIB} 0 0", f"process 300 1 {GIB} 0 0",
                       f"process 0 {hung.pid} {7 * GIB} 50 5")
            s.flush_until("metrics of instances", lambda: s.value("SELECT count(DISTINCT gpu_id) FROM gpu_samples WHERE sm_busy_percent < 50") == 2)
            s.flush_until("processes", lambda: s.value("SELECT count(DISTINCT pid) FROM gpu_processes") == 3)
            hung.release()
            other.release()
        wait_for("the library to be closed", lambda: gpus.log()[-1:] == ["call nvmlShutdown"])
        equal(gpus.log(), ["call nvmlInit_v2", "call nvmlShutdown"], "calls, none of which is wrong")
        s.stop_daemon()
        whole_id = s.value("SELECT gpu_id FROM gpus WHERE uuid = 'GPU-00000000'")
        equal(s.rows("SELECT gpu, CAST(label AS TEXT), uuid, name, memory_bytes, is_mig, whole_id, gpu_instance, compute_instance FROM gpus ORDER BY gpu, gpu_id"),
              [WHOLE, (0, "0/1/0", "MIG-aaaa", "Simulated GPU A MIG 1g.10gb", 10 * GIB, None, whole_id, 1, 0),
               (0, "0/5/1", "MIG-bbbb", "Simulated GPU A MIG 3g.40gb", 40 * GIB, None, whole_id, 5, 1),
               (1, "1", "GPU-00000001", "Simulated GPU B", 80 * GIB, None, None, None, None)], "GPUs and instances")
        equal(s.rows("SELECT DISTINCT uuid, memory_used_bytes, sm_busy_percent, dram_percent, busy_percent, power_mw FROM gpu_samples JOIN gpus USING (gpu_id) "
                     "WHERE gpu = 0 AND sm_busy_percent IS NOT NULL ORDER BY uuid"),
              [("GPU-00000000", 10 * GIB, 80.0625, 30.75, None, 350000), ("MIG-aaaa", 10 * GIB // 4, 40.0313, 15.375, None, None),
               ("MIG-bbbb", 10 * GIB, 40.0313, 15.375, None, None)], "values")
        used = [("0/1/0", "MIG-aaaa", hung.pid, 1, 3 * GIB), ("0/5/1", "MIG-bbbb", 1, 0, GIB), ("0/5/1", "MIG-bbbb", other.pid, 1, GIB)]
        # The file with the GPUs' state lists both processes until the end, so a later sample may list a process that has already exited.
        equal(s.rows("SELECT gpu, uuid, pid, process_id IS NOT NULL, peak_bytes FROM process_gpus WHERE process_id IS NOT NULL OR pid = 1 "
                     "ORDER BY gpu, pid"), used, "the processes of each instance")
        equal(s.rows("SELECT DISTINCT pci_address, process_id = (SELECT process_id FROM processes WHERE processes.pid = process_gpus.pid), "
                     "last_ns >= first_ns FROM process_gpus WHERE process_id IS NOT NULL"), [("0000:3b:00.0", 1, 1)], "the GPU of each process")

        def report(*options):
            done = s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", *options, "gpus", "activity", preload=False)
            return {section: [row["gpu"] for row in rows] for section, rows in json.loads(done.stdout).items()}

        equal(report(), {"gpus": [0, "0/1/0", "0/5/1", 1], "activity": [0, "0/1/0", "0/5/1"]}, "the report")
        equal(report("--pid", str(other.pid)), {"gpus": ["0/5/1"], "activity": ["0/5/1"]}, "the report of a process")
        check("cannot read the memory of processes" not in s.log(), "the whole GPU's processes are read", s.log())
        replay("--replay", s.dir / "recording", "--db", s.dir / "again.db")
        check_same(tables(s.dir / "again.db"), tables(s.db), "the replay")


def check_changes():
    """Checks that the daemon notices new and destroyed instances while processes are traced. The values of the other instances do not
    change."""
    with sampling("--gpu-samples", "100ms") as (s, gpus):
        gpus.write(FIRST)
        with HungCall(s) as hung:
            s.flush_until("the first instance", lambda: instances(s) == ["MIG-aaaa"])
            gpus.write(FIRST, SECOND)
            s.flush_until("the second instance", lambda: instances(s) == ["MIG-aaaa", "MIG-bbbb"])
            gpus.write(SECOND)
            last = "SELECT max(time_ns) FROM gpu_samples JOIN gpus USING (gpu_id) WHERE uuid = ?"
            s.flush_until("only the second instance", lambda: s.value(last, "MIG-bbbb") > s.value(last, "MIG-aaaa") + 10**9)
            hung.release()
        wait_for("the library to be closed", lambda: gpus.log()[-1:] == ["call nvmlShutdown"])
        equal(gpus.log(), ["call nvmlInit_v2", "call nvmlShutdown"], "calls, none of which is wrong")
        equal(s.value("SELECT count(*) FROM gpu_samples JOIN gpus USING (gpu_id) WHERE whole_id IS NOT NULL AND memory_used_bytes IS NULL"), 0,
              "samples of instances that do not exist")


def check_failures():
    """Checks that the whole GPU is still sampled if its instances cannot be listed."""
    for failure, library, line in (
            ("fail nvmlDeviceGetMaxMigDeviceCount 0 999", "libsimnvml.so", "warning: GPU 0 (Simulated GPU A): cannot read the instances: Unknown Error (error 999)"),
            ("fail nvmlDeviceGetMigDeviceHandleByIndex 100 999", "libsimnvml.so", "warning: GPU 0 (Simulated GPU A): cannot read the instances: Unknown Error"),
            ("", "libsimnvml-old.so", "info: GPU 0 (Simulated GPU A): cannot read the instances: Simulated Error (error 13)"),
            ("", "libsimnvml-old.so", "info: GPU 0 (Simulated GPU A): cannot read the memory of processes: Insufficient Permissions (error 4)")):
        with sampling("--gpu-samples", "100ms", library=library) as (s, gpus):
            gpus.write(FIRST, failure)
            with HungCall(s) as hung:
                await_samples(s, 2 * 12)  # instances are listed after every tenth sample
                hung.release()
            s.stop_daemon()
            equal((instances(s), s.log().count(line)), ([], 1), s.log())
            check(s.value("SELECT count(power_mw) FROM gpu_samples WHERE gpu_id = 1") > 0, "no samples of the whole GPU")


if __name__ == "__main__":
    check_instances()
    check_changes()
    check_failures()
