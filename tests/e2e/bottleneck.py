"""Tests the bottleneck that `cudatrace report` finds in runs whose bottleneck is known. A run is only start, is held up by the host,
waits for room in a full queue of launches, or waits in cuStreamSynchronize or in a copy back. Other runs are mixtures, launch nothing,
or are killed in a wait. The reports are of each run alone, of all together, of one process, and of windows."""
import re

from cudatrace_test import CUDATRACE, SOURCE, HungCall, Session, WORKLOADS, check, equal

QUEUE = {"SIMCUDA_QUEUE": 1024, "SIMCUDA_LAUNCH_NS": 100000}
SLOW = {"SIMCUDA_LAUNCH_NS": 2000000}
# Loading a module and launching take as long as on a real driver.
LATENCY = "cuModuleLoadData=20000000,cuLaunchKernel=3000"
SHARES = re.compile(r"([\d.]+) % in the driver \(waiting for the GPU ([\d.]+), for room in the queue of launches ([\d.]+), launching ([\d.]+), "
                    r"copying ([\d.]+), memory ([\d.]+), loading ([\d.]+)\), ([\d.]+) % outside")
TIMES = re.compile(r"of ([\d.]+) s in all: ([\d.]+) s before the first \w+ \(([\d.]+) s of that in the driver\), ([\d.]+) s up to the last "
                   r"and in waits behind it, ([\d.]+) s after")


class Answer:
    def __init__(self, s, *options):
        row, = s.report(*options, "bottleneck")["bottleneck"]
        self.read(row["bound_by"], row["paragraph"])

    def read(self, bound_by, text):
        self.bound_by, self.text = bound_by, text
        if self.bound_by == "start":
            return
        shares = SHARES.search(self.text)
        check(shares, "no shares in:", self.text)
        self.driver, self.wait, self.room, self.launch, self.copy, self.memory, self.load, self.outside = map(float, shares.groups())
        self.whole_s, self.before_s, self.before_driver_s, self.part_s, self.after_s = map(float, TIMES.search(self.text).groups())
        check(abs(self.driver + self.outside - 100) < 0.11, "shares", self.text)
        if abs(self.before_s - self.whole_s / 2) > 0.002:
            equal(self.text.startswith("Most of this run is its start: "), self.before_s > self.whole_s / 2, self.text)
        shares = {"gpu": self.wait + self.room, "launch": self.launch, "copy": self.copy, "memory": self.memory, "load": self.load, "host": self.outside}
        check(shares[self.bound_by] >= max(shares.values()) - 0.11, "the largest share", self.bound_by, self.text)
        check(min(self.wait, self.room, self.launch, self.copy, self.memory, self.load, self.outside) >= -0.05, "a negative share", self.text)

    def wants(self, bound_by, **more):
        equal(self.bound_by, bound_by, f"what bounds: {self.text}")
        for name, (low, high) in more.items():
            check(low <= getattr(self, name) <= high, name, "is", getattr(self, name), "and not", low, "to", high, "in:", self.text)
        return self


def trace_of(s, *options, env=None):
    child = s.start(WORKLOADS / "bottlenecks", *options, env={"SIMCUDA_LATENCY": LATENCY, **(env or {})})
    equal(child.wait(), 0, "the program's status")
    return child.pid


with Session() as s:
    s.start_daemon()
    pids = {
        # 0.6 s of start, then launches without a pause.
        "start": trace_of(s, "--start-ms", 600, "--launches", 15000),
        "host": trace_of(s, "--launches", 300, "--pause-us", 1000),
        # 3,072 kernels of 0.1 ms with room for 1,024: two thirds of the launches wait.
        "queue": trace_of(s, "--launches", 3072, env=QUEUE),
        # Kernels of 28 us in a row, as on an H200: nearly all launches wait, each for one kernel.
        "brief": trace_of(s, "--launches", 12000, env={**QUEUE, "SIMCUDA_LAUNCH_NS": 28000}),
        # The same by two threads in turns, as in a forward and a backward pass. At any time, one or the other is in the driver.
        "turns": trace_of(s, "--launches", 4096, "--turns", 256, env=QUEUE),
        "sync": trace_of(s, "--launches", 150, "--sync-every", 1, env=SLOW),
        # Waits only after its last launch, and stays for a while.
        "late": trace_of(s, "--launches", 150, "--end-ms", 300, env=SLOW),
        # Spends as long outside the driver as in waits, which cover the time of its kernels.
        "mixed": trace_of(s, "--launches", 100, "--pause-us", 2000, "--sync-every", 1, "--start-ms", 100, env=SLOW),
        # Makes far more of its calls after its launches than between them.
        "behind": trace_of(s, "--launches", 2000, "--copies", 20000, env={"SIMCUDA_LATENCY": "cuLaunchKernel=5000"}),
        "nothing": trace_of(s, "--launches", 0, "--start-ms", 50),
        "copies": trace_of(s, "--launches", 0, "--copies", 100, env={"SIMCUDA_LATENCY": "cuMemcpyDtoH_v2=1000000"}),
    }
    with HungCall(s, "--launches", 100, "--hang", 1, program=WORKLOADS / "bottlenecks", env=SLOW) as hung:
        s.flush()
        # Another program makes calls, so that the length of the wait is known when the process is killed.
        trace_of(s, "--launches", 100, "--pause-us", 1000)
        hung.kill()
        pids["killed"] = hung.pid
    s.flush()

    def of(name, *options):
        return Answer(s, "--pid", pids[name], *options)

    # The report states the start, and judges the time after it separately.
    start = of("start").wants("launch", before_s=(0.6, 60), launch=(30, 100))
    check(0.02 <= start.before_driver_s < start.before_s - 0.55, "time in the driver before the first launch", start.text)
    host = of("host").wants("host", outside=(60, 100), wait=(0, 5), room=(0, 10))
    check(host.text.startswith("The host bounds this run") and "How long kernels run is not recorded" in host.text, host.text)
    queue = of("queue").wants("gpu", room=(25, 100), launch=(0, 40))
    check("waits until the GPU has done earlier ones" in queue.text, queue.text)
    of("brief").wants("gpu", room=(60, 100), launch=(0, 40))
    # For two threads, the report takes the middle of two values. One is the busiest thread's time, as if both were in the driver at
    # the same time. The other is the sum of both.
    turns = of("turns")
    spent = [ns for ns, in s.rows("SELECT driver_ns FROM threads JOIN processes USING (process_id) WHERE pid = ? ORDER BY 1", pids["turns"])]
    equal(len(spent), 2, "threads")
    part_ns = turns.part_s * 1e9
    inside_ns = s.value("SELECT sum(duration_ns) FROM calls JOIN (SELECT process_id, min(start_ns) AS from_ns FROM launches GROUP BY process_id) "
                        "USING (process_id) WHERE pid = ? AND layer = 'driver' AND call_id >= from_ns", pids["turns"])
    middle = 50 * inside_ns * (max(spent) / sum(spent) + min(1, part_ns / inside_ns)) / part_ns
    turns.wants(turns.bound_by, room=(20, 100), driver=(middle - 3, middle + 3))
    check(turns.driver > 110 * inside_ns * max(spent) / sum(spent) / part_ns, "more than of the busiest alone", turns.text, spent)
    of("sync").wants("gpu", wait=(70, 100), room=(0, 5))
    late = of("late").wants("gpu", wait=(70, 100), after_s=(0.29, 60), part_s=(0.25, 5))
    mixed = of("mixed")
    mixed.wants(mixed.bound_by if mixed.bound_by in ("host", "gpu") else "host or gpu", wait=(20, 60), outside=(35, 80), before_s=(0.1, 60))
    of("copies").wants("copy", copy=(90, 100))
    check("no launches" in of("copies").text and "before the first copy" in of("copies").text, of("copies").text)
    of("killed").wants("gpu", wait=(60, 100))

    # The report agrees exactly with the rows of one process.
    process_id, first_ns, last_ns = s.rows("SELECT process_id, min(start_ns), max(call_id) FROM launches JOIN processes USING (process_id) "
                                           "WHERE pid = ?", pids["host"])[0]
    inside_ns = s.value("SELECT sum(duration_ns) FROM calls WHERE process_id = ? AND layer = 'driver' AND start_ns >= ? AND call_id <= ?",
                        process_id, first_ns, last_ns)
    late_ns = s.value("SELECT sum(duration_ns) FROM calls WHERE process_id = ? AND category = 'sync' AND start_ns >= ?", process_id, last_ns)
    check(abs(host.part_s - (last_ns - first_ns + late_ns) / 1e9) < 0.001, "from the first launch to the last", host.text)
    check(abs(host.driver - 100 * (inside_ns + late_ns) / (last_ns - first_ns + late_ns)) < 0.1, "in the driver", host.text, inside_ns)

    # Windows: of a full queue although no launch in it found room, of the start, of the wait at the end.
    def window(name, from_ns, to_ns):
        return of(name, "--from", f"@{from_ns}", "--to", f"@{to_ns}")

    process_id, first_ns, last_ns = s.rows("SELECT process_id, min(start_ns), max(call_id) FROM launches JOIN processes USING (process_id) "
                                           "WHERE pid = ?", pids["queue"])[0]
    # The first launch of a window counts as loading. It takes long if it lost the processor.
    full = window("queue", last_ns - (last_ns - first_ns) // 3, last_ns)
    full.wants("load" if full.load > full.room else "gpu", before_s=(0, 0), after_s=(0, 0))
    check(full.room + full.load >= 90, "waits for room", full.text)
    first_ns = s.value("SELECT min(start_ns) FROM launches JOIN processes USING (process_id) WHERE pid = ?", pids["start"])
    check("Nothing was launched here" in window("start", 0, first_ns - 1).wants("start").text, "a window of the start")
    wait_ns, end_ns = s.rows("SELECT start_ns, end_ns FROM calls WHERE pid = ? AND name = 'cuStreamSynchronize'", pids["late"])[0]
    window("late", wait_ns - 1000000, wait_ns + (end_ns - wait_ns) // 2).wants("gpu", wait=(90, 100))

    # All together: the sums of all processes, and the number that launched nothing.
    everything = Answer(s)
    alone = [of(name) for name in pids if name != "nothing"]
    check(everything.part_s > sum(answer.part_s for answer in alone) - 0.01, "the parts of all", everything.text)
    check(everything.before_s > sum(answer.before_s for answer in alone) - 0.01, "the starts of all", everything.text)
    check("1 of them launched nothing" in everything.text, everything.text)
    check(f"{len(pids) + 1} processes of " in everything.text, everything.text)

    # The report reads a sample if many calls are outside the launches. Here, few calls count as many.
    sql = (SOURCE / "schema/reports/bottleneck.sql").read_text()
    check("/ 5e5" in sql, "what is many")
    sql = sql.replace(":pid", str(pids["behind"])).replace(":from_ns", "NULL").replace(":to_ns", "NULL")

    def sample(many):
        (row,) = s.rows(sql.replace("/ 5e5", f"/ {many}"))
        answer = Answer.__new__(Answer)
        answer.read(*row)
        return answer

    sampled, whole = sample(5000), of("behind")
    # A sampled call counts for several. If it lost the processor and took longer than they did, that counts for each of them.
    calls, longest_ns = s.rows("SELECT count(*), max(duration_ns) FROM calls JOIN (SELECT process_id, max(call_id) AS to_ns FROM launches "
                               "GROUP BY process_id) USING (process_id) WHERE pid = ? AND layer = 'driver' AND call_id > to_ns", pids["behind"])[0]
    near = 5 + 100 * longest_ns * calls / 5000 / (whole.part_s * 1e9)
    # A single sample may agree with all rows to the tenth of a percent.
    check(any(sample(many).text != whole.text for many in (5000, 500, 100, 50, 10)), "no sample is taken", whole.text)
    for share in "driver", "copy", "outside":
        check(abs(getattr(sampled, share) - getattr(whole, share)) < near, near, share, sampled.text, whole.text)

    # The other formats have the same words.
    text = s.run(CUDATRACE, "report", "--db", s.db, "--pid", pids["queue"], "bottleneck", preload=False).stdout
    check(" ".join(text.split()).endswith(" ".join(queue.text.split())), text)
