"""An allocator calls the driver while it holds its lock. A recording of GPU work, which needs memory for its thread, must not begin in that call,
which would wait for itself. It begins in a later one."""
import subprocess

from trap_test import BUILD, CUDATRACE, DRIVER_PATH, LINKED, Session, compiled, equal, wait_for

with Session() as s:
    s.start_daemon()
    program = s.start(compiled(s, "locked_allocator.c", *LINKED), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                      env={"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{BUILD / 'tests/simcupti/13'}"})

    def call(where):
        program.stdin.write(where + "\n")
        program.stdin.flush()
        equal(program.stdout.readline(), "done\n", f"the answer after calls {where}")

    call("outside")
    setting = s.start(CUDATRACE, "set", "--session", s.name, "--gpu", "on", stdout=subprocess.PIPE, text=True)
    wait_for("the request", lambda: "next call" in s.cudatrace("status").stdout)
    call("inside")
    equal(setting.poll(), None, "the answer of set after calls inside the allocator")
    wait_for("the recording", lambda: (call("outside"), setting.poll() is not None)[1])
    equal(setting.communicate()[0], "1 of 1 processes record GPU work\n", "the answer of set")
    call("inside")
    program.stdin.close()
    equal(program.wait(), 0, "the status")
    s.flush()
    s.check_identity()
