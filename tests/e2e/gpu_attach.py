"""Tests `cudatrace set --gpu` in a process that `cudatrace attach` has visited. In such a process, the hook was loaded from an unnamed
file, and learns the path of libcudatrace-gpu.so from the command."""
from attach_test import Attach
from cudatrace_test import Session, equal, wait_for
from gpu_programs import Program, request

with Session() as s:
    s.start_daemon()
    program = Program(s, preload=False)
    program.work(100)
    for size in (200, 300):  # the second time, the library is loaded already
        attach = Attach(s, program.pid)
        attach.await_armed(program.pid)
        program.work(size)
        attach.await_line("is recorded")
        equal(request(s, [program], "on"), "1 of 1 processes record GPU work", "the answer")
        program.work(size + 1)
        if size == 200:
            equal(request(s, [], "off"), "0 of 1 processes record GPU work", "the answer without a call of the program")
        attach.end()
        wait_for("the end of each recording", lambda size=size: program.ended() + program.logged("unsubscribe") == size // 100 - 1)
        program.work(size + 2)
    equal((program.ended(), program.logged("unsubscribe")), (1, 1), "how CUPTI left; without the hook, calls cannot be held")
    program.end()
    s.flush_until("the end of the process", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'running'") == 0)
    equal(s.rows("SELECT bytes, count(*) FROM gpu_work WHERE kind = 'set' AND bytes < 300 GROUP BY 1"), [(201, 5)], "sets of the first recording")
    # CUPTI may not return the second recording's work until the hook has left the process.
    returned, pending = s.value("SELECT count(*) FROM gpu_work"), s.value("SELECT count(*) FROM gpu_pending")
    equal(returned + pending, 2 * 5 * 7, "work that was recorded, or is known to be missing")
    equal(s.value("SELECT ifnull(sum(calls), 0) FROM losses WHERE cause = 'cupti'"), pending, "work that is counted as missing")
    equal(s.value("SELECT count(*) FROM gpu_work LEFT JOIN calls USING (call_id) WHERE name IS NULL"), 0, "work without a call")
    s.check_identity()
