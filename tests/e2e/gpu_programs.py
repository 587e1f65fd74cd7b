"""Programs that do GPU work on command, for the tests of `cudatrace set --gpu`."""
import subprocess

from cudatrace_test import BUILD, CUDATRACE, DRIVER_PATH, WORKLOADS, equal, wait_for

SIMCUPTI = BUILD / "tests/simcupti/13"


class Program:
    """A program that obeys commands. Before the first command, it makes `rounds` rounds of calls, whose memory sets have 512 bytes."""

    def __init__(self, s, name="program", cupti=SIMCUPTI, rounds=5, preload=True, **env):
        self.log = s.dir / f"{name}.log"
        paths = [DRIVER_PATH, *([cupti] if cupti else [])]
        self.child = s.start(WORKLOADS / "gpu_work", "--rounds", rounds, "--end", "commands", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             preload=preload, env={"SIMCUPTI_LOG": self.log, "LD_LIBRARY_PATH": ":".join(map(str, paths)), **env})
        self.pid = self.child.pid
        equal(self.child.stdout.readline(), f"gpu_work: rounds={rounds} ok\n", "the program's first line")

    def do(self, command):
        """Returns the program's answer."""
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        return int(self.child.stdout.readline())

    def work(self, size):
        equal(self.do(f"work {size}"), 0, "the answer")

    def end(self):
        self.child.stdin.close()
        equal(self.child.wait(), 0, "the program's status")

    def logged(self, line):
        """Returns how often the simulated CUPTI has logged the line."""
        return self.log.read_text().split("\n").count(line) if self.log.exists() else 0

    def ended(self):
        """Returns after how many recordings CUPTI has left the process."""
        return self.logged("finalize")


def request(s, programs, *options):
    """Runs `cudatrace set --gpu`, and lets the programs make calls until it exits. Returns its output."""
    command = [str(word) for word in (CUDATRACE, "set", "--session", s.name, "--gpu", *options)]
    setting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for("the answer", lambda: ([program.do("call") for program in programs], setting.poll() is not None)[1])
    output, errors = setting.communicate()
    equal((setting.returncode, errors), (0, ""), "the status and the errors of set")
    return output.removesuffix("\n")
