"""The LTTng-UST peer: a tracing session with the benchmark's events. If root's daemon is already running, the session uses it, because
there can be only one such daemon. Otherwise, the session starts a daemon, and stops it at the end."""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import time

from figures import Missing
from program import PROGRAMS

DEADLINE_S = 60
# Through this folder, programs find the daemon that root has started, regardless of LTTNG_HOME.
ROOTS_FOLDER = pathlib.Path("/run/lttng")


def end(daemon):
    daemon.terminate()
    try:
        daemon.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def remove_empty(folder):
    with contextlib.suppress(OSError):
        folder.rmdir()


class Tracer:
    name = "lttng"
    ways = ("lttng_one_event", "lttng_clock_and_event", "lttng_two_events")
    EVENTS_A_CALL = 1 + 1 + 2

    def __init__(self, session):
        self.tracepoints = PROGRAMS / "libbench_lttng.so"
        self.home = session.dir / "lttng"
        self.session = f"cudatrace-bench-{os.getpid()}"
        self.options = ("-l", self.tracepoints)
        # Make programs wait for the daemon at startup, so that no program makes calls before the daemon has enabled the program's events.
        self.env = {"LTTNG_HOME": self.home, "LTTNG_UST_REGISTER_TIMEOUT": DEADLINE_S * 1000}
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        if not self.tracepoints.exists():
            raise Missing("the build found no lttng-ust (Debian: liblttng-ust-dev)")
        if not shutil.which("lttng") or not shutil.which("lttng-sessiond"):
            raise Missing("no lttng command (Debian: lttng-tools)")
        self.home.mkdir()
        with contextlib.ExitStack() as undo:
            if os.geteuid() != 0 or not self.roots_daemon_runs():
                undo.callback(self.remove_shared, self.shared())
                self.start_daemon(undo)
            undo.callback(self.destroy)
            self.lttng("create", self.session, f"--output={self.home / 'trace'}")
            # Give the channel room for a whole round, so that the benchmark measures how events are recorded rather than how they are
            # discarded.
            ours = ("--userspace", f"--session={self.session}")
            self.lttng("enable-channel", *ours, "--subbuf-size=1M", "--num-subbuf=4", "calls")
            self.lttng("enable-event", *ours, "--channel=calls", "cudatrace_bench:*")
            self.lttng("start", self.session)
            self.undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def start_daemon(self, undo):
        if os.geteuid() == 0 and not ROOTS_FOLDER.exists():
            undo.callback(remove_empty, ROOTS_FOLDER)
        with open(self.home / "sessiond.log", "wb") as log:
            # Start the daemon in a new process session, because Ctrl-C must not reach it.
            daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.environment(), stdout=log, stderr=log,
                                      stdin=subprocess.DEVNULL, start_new_session=True)
        undo.callback(end, daemon)
        deadline = time.monotonic() + DEADLINE_S
        while self.lttng("list", check=False).returncode != 0:
            if daemon.poll() is not None:
                log = (self.home / "sessiond.log").read_text(errors="replace")
                raise Missing(f"lttng-sessiond ended: {' '.join(log.split()) or daemon.returncode}")
            if time.monotonic() > deadline:
                raise Missing("lttng-sessiond does not answer")

    @staticmethod
    def shared():
        """Returns the shared-memory files that LTTng's traced programs use to wait for a daemon. LTTng itself does not remove them."""
        return set(pathlib.Path("/dev/shm").glob("lttng-ust-wait-*"))

    def remove_shared(self, before):
        for path in self.shared() - before:
            path.unlink(missing_ok=True)

    @staticmethod
    def roots_daemon_runs():
        try:
            os.kill(int((ROOTS_FOLDER / "lttng-sessiond.pid").read_text()), 0)
            return True
        except (OSError, ValueError):
            return False

    def environment(self):
        return dict(os.environ, LTTNG_HOME=str(self.home))

    def lttng(self, *arguments, check=True):
        try:
            done = subprocess.run(["lttng", "--no-sessiond", *arguments], env=self.environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise Missing(f"lttng {arguments[0]} does not answer") from None
        if check and done.returncode != 0:
            raise Missing(f"lttng {arguments[0]}: {' '.join(done.stdout.split())}")
        return done

    def destroy(self):
        with contextlib.suppress(Missing):
            self.lttng("destroy", self.session, check=False)

    def check(self, made):
        """Checks that LTTng's figures are valid: it must have discarded at most 1 % of the events, and written at least 8 bytes per
        event."""
        self.lttng("stop", self.session)
        found = re.search(r"Discarded events: (\d+)", self.lttng("list", self.session).stdout)
        discarded = int(found.group(1)) if found else 0
        bytes_written = sum(path.stat().st_size for path in (self.home / "trace").rglob("*") if path.is_file())
        events = made * self.EVENTS_A_CALL
        if discarded > events // 100:
            raise Missing(f"{discarded} of {events} events were discarded")
        if bytes_written < events * 8:
            raise Missing(f"{bytes_written} bytes were written for {events} events")
