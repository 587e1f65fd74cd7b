"""A session that runs hook_cost. It flushes the program's rings between rounds, and accepts the program's figures only if the trace
contains the program's calls."""
import signal
import subprocess

from cudatrace_test import BUILD, Session, check, equal
from figures import rounds_of

PROGRAMS = BUILD / "tests/bench"
LONG_NS = 75_000  # such a call needs a longer record (proto/record.h); calls from 100 us on are kept even in a full ring


class Measured(Session):
    """A session that measures with hook_cost. The attribute `each` is the number of calls measured for each way."""

    def env(self, preload=True, **more):
        return super().env(preload, **{"LD_LIBRARY_PATH": PROGRAMS, **more})

    def pause(self):
        """Stops the daemon, so that it does not read the rings."""
        self.daemon.send_signal(signal.SIGSTOP)

    def resume(self):
        self.daemon.send_signal(signal.SIGCONT)

    def measure(self, *arguments, between=None, env=None, lost=0):
        """Runs hook_cost, and returns {way: [value of each round]}. `between` is called before each round instead of a flush. Fails unless
        the trace contains all calls except those that a full ring is expected to lose. Each call prolonged by an interrupt may change the
        number of losses by one, because such a call may be kept, or may take up the space of two."""
        lines = []
        with self.start(PROGRAMS / "hook_cost", *arguments, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True) as program:
            for line in program.stdout:
                if line == "round\n":
                    (between or self.flush)()
                    program.stdin.write("\n")
                    program.stdin.flush()
                else:
                    lines.append(line)
        equal(program.returncode, 0, "the status of hook_cost")
        rounds = rounds_of("".join(lines))
        self.each, traced = (int(rounds.pop(name)[0]) for name in ("each", "traced"))
        if self.daemon:
            self.resume()
            self.flush()
            self.check_recorded(program.pid, traced, lost)
        return rounds

    def check_recorded(self, pid, made, lost):
        calls, stored, dropped = self.rows("""
            SELECT sum(calls), sum(stored), sum(lost + skipped) FROM totals JOIN processes USING (process_id)
             WHERE pid = ? AND layer = 'driver' AND totals.name NOT IN ('cuInit', 'cuModuleGetFunction')""", pid)[0]
        equal((calls, stored), (made, made - dropped), "calls in the trace, and stored")
        lasted = self.value("SELECT count(*) FROM calls WHERE pid = ? AND duration_ns >= ?", pid, LONG_NS) if lost else 0
        check(abs(lost - dropped) <= lasted, dropped, "calls are lost or skipped, and", lost, "should be, but for", lasted, "that lasted")
