"""Tests `cudatrace set --gpu`. Programs must record GPU work exactly from the request to its end. They do their work on command, so that
each piece of work is clearly inside or outside a recording. The memory sets have different sizes, which identify each piece of work in the
views."""
import os
import signal
import socket

from cudatrace_test import Session, by_tier, check, equal, wait_for
from gpu_programs import Program, request

ROUNDS, PER_ROUND = 5, 7
FAR = "1h"  # longer than any test


def check_work(s, wanted):
    """Checks that the trace contains exactly the work with the given sizes for each process, identified by its pid, and that each piece of
    work has a call."""
    s.flush_until("work", lambda: s.value("SELECT count(*) FROM gpu_work") >= sum(len(sizes) for sizes in wanted.values()) * ROUNDS * PER_ROUND)
    equal(s.rows("SELECT pid, count(*) FROM gpu_work JOIN processes USING (process_id) GROUP BY pid ORDER BY pid"),
          sorted((pid, len(sizes) * ROUNDS * PER_ROUND) for pid, sizes in wanted.items() if sizes), "the rows of work by process")
    equal(s.rows("SELECT pid, bytes, count(*) FROM gpu_work JOIN processes USING (process_id) WHERE kind = 'set' GROUP BY 1, 2 ORDER BY 1, 2"),
          sorted((pid, size, ROUNDS) for pid, sizes in wanted.items() for size in sizes), "the sets by process and size")
    equal(s.value("SELECT count(*) FROM gpu_work LEFT JOIN calls USING (call_id) WHERE name IS NULL"), 0, "work without a call")


def four_of_eight():
    """Checks that with --pid, only the given process records its work, and that processes that start later do not."""
    with Session() as s:
        s.start_daemon()
        programs = [Program(s, f"program{i}") for i in range(8)]
        chosen = programs[::2]
        for program in programs:
            program.work(100)
        for program in chosen:
            equal(request(s, [program], FAR, "--pid", program.pid), "1 of 1 processes record GPU work", "the answer")
        late = Program(s, "late")
        check("\ngpu 4 of 9 processes record GPU work\n" in s.cudatrace("status").stdout, "the status")
        for program in [*programs, late]:
            program.work(101)
        equal(request(s, programs, "off"), "0 of 9 processes record GPU work", "the answer")
        for program in programs:
            program.work(102)
            program.end()
        check_work(s, {program.pid: [101] for program in chosen})
        equal(dict(s.rows("SELECT pid, gpu_recording FROM processes")),
              {program.pid: "recorded" if program in chosen else None for program in [*programs, late]}, "the results")
        s.check_identity()


def again_and_again():
    """Checks that a process can record several times, whenever this is requested."""
    times = by_tier(10, 30, 300)
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        for i in range(times):
            equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
            program.work(200 + i)
            equal(request(s, [], "off"), "0 of 1 processes record GPU work", "the answer without a call of the program")
            equal(program.ended(), i + 1, "recordings that have ended")
            program.work(199)
        program.end()
        check_work(s, {program.pid: [200 + i for i in range(times)]})
        s.check_identity()


def running_at_the_end():
    """Checks that the end of a recording waits for a kernel of 180 ms that was launched before the recording was turned off."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, SIMCUDA_LAUNCH_NS=180 * 10 ** 6)
        request(s, [program], "on")
        program.do("launch 1")
        request(s, [], "off")
        s.flush_until("the kernel", lambda: s.value("SELECT count(*) FROM gpu_work"))
        equal(s.value("SELECT count(*) FROM losses"), 0, "losses")
        program.end()


def by_themselves():
    """Checks that a recording ends on time, even if the program makes no call. Another request replaces the end time. A process that starts
    while the request lasts records from its first call until the request's end."""
    with Session() as s:
        s.start_daemon()
        first = Program(s, "first")
        request(s, [first], "3s")
        equal(request(s, [first], FAR, "--pid", first.pid), "1 of 1 processes record GPU work", "the answer to a longer request")
        second = Program(s, "second")
        wait_for("the end of the second recording", second.ended)
        equal(first.ended(), 0, "the first process's recordings that have ended, although its first end has passed")
        for program in (first, second):
            program.work(101)
        request(s, [], "1s", "--pid", first.pid)
        wait_for("the end of the first recording", first.ended)
        for program in (first, second):
            program.work(102)
            program.end()
        sets = s.flush_until("the sets", lambda: s.rows("SELECT pid, bytes FROM gpu_work JOIN processes USING (process_id) WHERE kind = 'set' "
                                                        "GROUP BY 1, 2"))
        equal(set(sets), {(first.pid, 101), (second.pid, 512)}, "the sets by process and size")
        s.check_identity()


def new_process():
    """Checks that a process that starts before the end of the session's request records work from its first call on, and that a process
    that starts later records nothing."""
    with Session() as s:
        s.start_daemon()
        equal(request(s, [], "on"), "0 of 0 processes record GPU work", "the answer without processes")
        inside = Program(s, "inside")
        equal(request(s, [], "off"), "0 of 1 processes record GPU work", "the answer")
        outside = Program(s, "outside")
        for program in (inside, outside):
            program.work(101)
            program.end()
        check_work(s, {inside.pid: [512]})


def graphs():
    """Checks that a recording that begins at the process's first call contains whole graphs on request. Later recordings contain the
    graphs' nodes instead, because CUPTI crashes if it records whole graphs and a graph is older than the recording."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, rounds=0, CUDATRACE_GPU="graphs")
        equal(program.do("graph 4"), 0, "the answer")
        request(s, [program], "off")
        equal(program.do("graph 5"), 0, "the answer between the recordings")
        equal((program.ended(), program.logged("unsubscribe")), (0, 1), "CUPTI left the process, and ended its subscription")
        equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
        equal(program.do("graph 3"), 0, "the answer")
        check("the recording must begin at the process's first call of the driver" in s.cudatrace("doctor", program.pid, status=1).stdout, "doctor's answer")
        program.end()
        rows = s.flush_until("the work", lambda: s.rows(
            "SELECT recording, gpu_work.kind, count(*), count(DISTINCT call_id), sum(calls.name = 'cuGraphLaunch'), count(node), "
            "count(DISTINCT gpu_work.graph) FROM gpu_work JOIN calls USING (call_id) GROUP BY 1, 2"))
        equal(rows, [(1, "graph", 4, 4, 4, 0, 1), (2, "kernel", 9, 3, 9, 9, 1)], "the work by recording")
        equal(s.value("SELECT count(*) FROM gpu_pending"), 0, "pending calls")
        equal(s.rows("SELECT graphs, kernels FROM streams"), [(4, 9)], "the work of the stream")
        s.check_identity()
    with Session() as s:  # the daemon is started after the program has made a graph
        program = Program(s, rounds=0, CUDATRACE_GPU="graphs")
        equal(program.do("graph 1"), 0, "the answer without a daemon")
        s.start_daemon()
        s.flush_until("the nodes", lambda: program.do("graph 1") == 0 and s.value("SELECT count(*) FROM gpu_work WHERE kind = 'kernel'") > 0)
        equal(s.value("SELECT count(*) FROM gpu_work WHERE kind = 'graph'"), 0, "whole graphs")
        request(s, [program], "off")
        equal((program.do("graph 1"), program.ended()), (0, 1), "the answer after a recording")
        program.end()
    with Session() as s:  # graphs that were not used during a recording
        s.start_daemon()
        program = Program(s, rounds=0)
        equal(program.do("graph 1"), 0, "the answer before a recording")
        request(s, [program], "on")
        request(s, [program], "off")
        equal((program.do("graph 1"), program.ended()), (0, 1), "the answer after a recording")
        program.end()


def second_subscriber():
    """Checks that recordings never disturb a program that itself uses CUPTI before, between or after them."""
    with Session() as s:
        s.start_daemon()
        program, other = Program(s), Program(s, "other")
        equal(program.do("subscribe"), 0, "the program's subscription before")
        equal(request(s, [program, other], "on"),
              f"1 of 2 processes record GPU work; 1 cannot: another tool uses CUPTI (process {program.pid})", "the answer")
        results = f"SELECT gpu_recording FROM processes WHERE pid = {program.pid}"
        s.flush_until("the result", lambda: s.value(results) == "another tool uses CUPTI")
        equal((program.do("unsubscribe"), other.do("subscribe")), (0, 39), "the results")
        program.work(100)
        equal(request(s, [program], "on"), "2 of 2 processes record GPU work", "the answer to the next request")
        s.flush_until("the next result", lambda: s.value(results) == "recorded")
        program.work(101)
        equal(request(s, [], "off"), "0 of 2 processes record GPU work", "the answer")
        equal(program.do("subscribe"), 0, "the program's subscription afterwards")
        program.work(102)
        for each in (program, other):
            each.end()
        check_work(s, {program.pid: [101]})


def cannot():
    """Checks that if a process cannot record its work, the command prints the reason. A process that is making no calls starts to record at
    its next call, unless the request has ended by then."""
    with Session() as s:
        s.start_daemon()
        program = Program(s, cupti=None)
        answer = request(s, [program], "on")
        check(answer.startswith("0 of 1 processes record GPU work; 1 cannot: "), "the answer without CUPTI", answer)
        program.end()
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        equal(request(s, [], "on"), f"0 of 1 processes record GPU work; 1 will record from the next call of the driver (process {program.pid})",
              "the answer without a call")
        request(s, [], "off")
        program.work(100)
        equal(request(s, [], "on")[:33], "0 of 1 processes record GPU work;", "the answer without a call")
        program.do("call")
        s.flush_until("the recording", lambda: "\ngpu 1 of 1 processes record GPU work\n" in s.cudatrace("status").stdout)
        program.work(101)
        program.end()
        check_work(s, {program.pid: [101]})


def stopped():
    """Checks the answer if a process cannot end its recording, because it is stopped."""
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        request(s, [program], "on")
        program.child.send_signal(signal.SIGSTOP)
        equal(request(s, [], "off"), f"0 of 1 processes record GPU work; 1 yet to stop recording (process {program.pid})", "the answer")
        program.child.send_signal(signal.SIGCONT)
        s.flush_until("the end", lambda: "\ngpu 0 of 1 processes record GPU work\n" in s.cudatrace("status").stdout)
        program.end()


def ends():
    """Checks that all work of a process that exits is recorded, and that a process that is killed or forks loses no calls."""
    with Session() as s:
        s.start_daemon()
        exits, killed, forks = (Program(s, name) for name in ("exits", "killed", "forks"))
        request(s, [exits, killed, forks], "on")
        for program in (exits, killed, forks):
            program.work(101)
        exits.end()
        killed.child.kill()
        killed.child.wait()
        equal(forks.do("fork"), 0, "the answer")
        forks.work(102)
        forks.end()
        s.flush_until("the ends", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'running'") == 0)
        counts = dict(s.rows("SELECT pid, count(*) FROM gpu_work JOIN processes USING (process_id) GROUP BY pid"))
        equal((counts[exits.pid], counts[forks.pid]), (ROUNDS * PER_ROUND, 2 * ROUNDS * PER_ROUND), "the work")
        s.check_identity()


def daemons():
    """Checks that a recording continues if the daemon is killed, and then obeys the next daemon. The recording ends when its session
    ends."""
    with Session() as s:
        s.start_daemon()
        program = Program(s)
        request(s, [program], "on")
        s.daemon.kill()
        s.daemon.wait()
        program.work(101)
        s.start_daemon()
        equal(request(s, [program], "off"), "0 of 1 processes record GPU work", "the answer of the next daemon")
        program.work(102)
        request(s, [program], "on")
        program.work(103)
        check_work(s, {program.pid: [101, 103]})
        s.stop_daemon()
        wait_for("the end of the recording", lambda: (program.do("call"), program.logged("unsubscribe") == 1)[1])
        equal(program.do("subscribe"), 0, "the program's subscription")
        program.end()


def refused():
    with Session() as s:
        s.start_daemon()
        for options, status, message in (
                (["--gpu", "5"], 2, "invalid value '5' for --gpu: expected on, off, or a duration from 1s to 3653d, such as 30s, 10m or 24h"),
                (["--gpu", "0s"], 2, "invalid value '0s' for --gpu: expected on, off"),
                (["--gpu", "yes"], 2, "invalid value 'yes' for --gpu: expected on, off"),
                (["--gpu", "1s", "--pid", "0"], 2, "invalid value '0' for --pid: expected a process ID"),
                (["--pid", "1"], 2, "set: --pid needs --gpu"),
                (["--gpu", "1s", "--pid", "1"], 1, "set: the session has no process 1; `cudatrace top --once` lists its processes")):
            done = s.cudatrace("set", *options, status=status)
            check(message in done.stderr and not done.stdout, options, "printed", done.stdout, done.stderr)
        for words in "", "on x", "on 1x", "on 1 x", "1x", "000000000000005x", "on 4294967297", "on 0", "on -1":
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(f"/dev/shm/cudatrace.{os.geteuid()}.{s.name}.sock")
                client.sendall(f"gpu {words}\n".encode())
                equal(client.recv(4096).decode(), f"error invalid request '{words}' for GPU work: expected on, off or 1 to 315619200 seconds\n",
                      "the answer to a raw line")


for case in (four_of_eight, again_and_again, running_at_the_end, by_themselves, new_process, graphs, second_subscriber, cannot, stopped, ends, daemons,
             refused):
    print(case.__name__, flush=True)
    case()
