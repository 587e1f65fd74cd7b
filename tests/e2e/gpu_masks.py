"""Tests that the work of processes with different values of CUDA_VISIBLE_DEVICES is assigned to the right GPU. Each process uses only its
device 0. The simulated driver derives the GPU's UUID and PCI address from the first number in the variable."""
import json
import os
import signal

from cudatrace_test import BUILD, CUDATRACE, Session, equal, wait_for
from gpu_programs import Program
from replay_test import check_same, replay, tables
from series_test import file, files, sql

ROUND = 7  # pieces of work of a round
ENV = {"CUDATRACE_GPU": "kernels", "SIMCUDA_LAUNCH_NS": 20000, "SIMCUDA_COPY_GBPS": 1}
DEVICES = "SELECT pid, cuda_device, device, uuid, pci_address FROM gpu_devices JOIN processes USING (process_id) ORDER BY pid"
BUSY = "SELECT device, count(DISTINCT process_id) FROM gpu_busy GROUP BY device ORDER BY device"
ENDED = "SELECT count(*) FROM processes WHERE state = 'exited'"


def uuid(gpu, instance=0):
    return f"{'MIG' if instance else 'GPU'}-{0xa0 + gpu:02x}000000-0000-0000-0000-00000000000{instance}"


def address(gpu):
    return f"0000:{0x3b + gpu:02x}:00.0"


def start(s, *masks, **more):
    return [Program(s, f"program{number}", CUDA_VISIBLE_DEVICES=mask, **ENV, **more) for number, mask in enumerate(masks)]


def masks():
    """Checks that processes have the same device in the views and in the report if and only if they use the same GPU. The replay of a
    recording must have the same rows."""
    with Session() as s:
        recording, again = s.dir / "recording", s.dir / "again.db"
        s.start_daemon("--gpu-samples", "off", "--record", recording)
        programs = start(s, "3,1", "1", "3")
        for program in programs:
            program.end()
        s.flush_until("the ends", lambda: s.value(ENDED) == 3)
        number = {3: 0, 1: 1}  # in the order of the first work
        if s.value("SELECT device FROM gpus WHERE pci_address = ?", address(1)) == 0:
            number = {3: 1, 1: 0}
        wanted = sorted((program.pid, 0, number[gpu], uuid(gpu), address(gpu)) for program, gpu in zip(programs, (3, 1, 3)))
        equal(s.rows(DEVICES), wanted, "the devices of the processes")
        equal(s.rows(BUSY), [(0, 1 + (number[3] == 0)), (1, 1 + (number[3] == 1))], "processes by device")
        equal(s.rows("SELECT pid, device, count(*) FROM gpu_work JOIN processes USING (process_id) GROUP BY 1, 2 ORDER BY 1"),
              [(pid, device, 5 * ROUND) for pid, _, device, _, _ in wanted], "work by process and device")
        equal(s.value("SELECT count(*) FROM gpu_idle WHERE device NOT IN (SELECT device FROM gpu_devices WHERE gpu_devices.process_id = gpu_idle.process_id)"),
              0, "gaps of a device that end with work of another")
        rows = json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", "gpu", "shares", preload=False).stdout)
        equal([(row["device"], row["kernels"]) for row in rows["gpu"]], [(device, 15 * count) for device, count in s.rows(BUSY)], "the section gpu")
        equal(sorted((row["pid"], row["device"]) for row in rows["shares"]), [(pid, device) for pid, _, device, _, _ in wanted], "the section shares")
        s.check_identity()
        s.stop_daemon()
        replay("--replay", recording, "--db", again)
        check_same(tables(again), tables(s.db), "the replay")


def sampled():
    """Checks that a GPU that was sampled before it did any work keeps the number that it has in NVML. An instance of a divided GPU has its
    own UUID, but the device number of the whole GPU."""
    with Session() as s:
        folder = s.dir / "driver"
        folder.mkdir()
        (folder / "libnvidia-ml.so.1").symlink_to(BUILD / "tests/simnvml/libsimnvml.so")
        (s.dir / "nvml").write_text("")
        s.start_daemon("--gpu-samples", "100ms", env=dict(os.environ, LD_LIBRARY_PATH=str(folder), SIMNVML=str(s.dir / "nvml")))
        first = Program(s, "first", CUDA_VISIBLE_DEVICES="1", rounds=0)  # has no recording
        s.flush_until("samples", lambda: s.value("SELECT count(*) FROM gpu_samples"))
        program, = start(s, "1", SIMCUDA_MIG=2)
        for each in (program, first):
            each.end()
        equal(s.flush_until("the device", lambda: s.rows(DEVICES)), [(program.pid, 0, 1, uuid(1, 2), address(1))], "the device")
        s.flush_until("the ends", lambda: s.value(ENDED) == 2)
        equal(s.rows("SELECT device, gpu, name, count(*) FROM gpu_work JOIN gpus USING (device) GROUP BY 1, 2, 3"),
              [(1, 1, "Simulated GPU B", 5 * ROUND)], "the work")


def next_file():
    """Checks that a process's device is still known in the next file of the trace."""
    with Session() as s:
        s.start_daemon("--gpu-samples", "off")
        programs = start(s, "2", "4")
        s.flush_until("work", lambda: s.value("SELECT count(*) FROM gpu_work") == 2 * 5 * ROUND)
        before = s.rows(DEVICES)
        s.daemon.send_signal(signal.SIGHUP)
        wait_for("the next file", lambda: files(s) == [1, 2])
        for program in programs:
            program.work(100)
            program.end()
        s.flush_until("the ends", lambda: s.value(ENDED, db=file(s, 2)) == 2)
        s.stop_daemon()
        equal([tuple(row) for row in sql(s, DEVICES)], before, "the devices")
        equal(sql(s, "SELECT device, count(DISTINCT process_id), count(*) FROM gpu_work GROUP BY 1 ORDER BY 1"), [[0, 1, 2 * 5 * ROUND], [1, 1, 2 * 5 * ROUND]],
              "work by device in both files")


def unknown():
    """Checks that if the driver does not identify the devices, the devices of different processes count as different GPUs."""
    with Session() as s:
        s.start_daemon("--gpu-samples", "off")
        for program in start(s, "0", "0", SIMCUDA_ADDRESS="unknown"):
            program.end()
        s.flush_until("the ends", lambda: s.value(ENDED) == 2)
        equal(s.rows("SELECT process_id, device FROM gpu_work GROUP BY 1, 2 ORDER BY 1"), [(1, 1000), (2, 2000)], "the devices")
        equal(s.rows("SELECT * FROM gpu_devices"), [], "known devices")


for case in (masks, sampled, next_file, unknown):
    print(case.__name__, flush=True)
    case()
