"""Runs a daemon with default settings, its own session and its own trace, for programs that the benchmark itself starts."""
import json
import os
import re
import subprocess

from scene import Daemon


class OwnSession:
    """A session whose daemon starts at the beginning of the `with` block. `finish()` stops the daemon and returns its counts."""

    def __init__(self, place, build, name):
        self.build, self.place = build, place
        self.session = f"{name.replace('_', '')}{os.getpid()}"
        self.database = f"{place.scratch}/{self.session}.db"
        self.where = ["--session", self.session]

    def __enter__(self):
        self.remove()
        # Once this returns, the daemon serves the session.
        subprocess.run([self.build / "collector/cudatraced", "--db", self.database, *self.where], env=self.place.env, check=True)
        self.serves = True
        return self

    def __exit__(self, *_):
        self.stop()
        self.remove()

    def env(self, library="hook/libcudatrace.so"):
        """Returns the environment for a traced program. If `hook` names a different library of the build, the program preloads that library
        instead of the hook."""
        return {**self.place.env, "CUDATRACE_SESSION": self.session, "LD_PRELOAD": str(self.build / library)}

    def ask(self, *command):
        """Runs `cudatrace`, and returns its output."""
        return subprocess.run([self.build / "tools/cudatrace", *command], env=self.place.env, check=True, capture_output=True, text=True).stdout

    def finish(self, pids=None):
        """Returns (sums, the daemon's CPU time in seconds). The sums are the numbers of calls made, stored, lost and skipped, in the given
        processes or in all of them."""
        status = self.ask("status", *self.where)
        self.ask("flush", *self.where)
        used_s = Daemon(int(re.search(r"^daemon (\d+)$", status, re.M)[1])).cpu_s()
        self.stop()
        which = f"pid IN ({','.join(map(str, pids))})" if pids else "1"
        said = self.ask("sql", "--db", self.database, "--format", "json",
                        "SELECT sum(calls) AS calls, sum(stored) AS stored, sum(lost) AS lost, sum(skipped) AS skipped "
                        f"FROM totals JOIN processes USING (process_id) WHERE {which}")
        return json.loads(said)[0], used_s

    def stop(self):
        if self.serves:
            self.ask("stop", *self.where)
        self.serves = False

    def remove(self):
        for end in ("", "-wal", "-shm"):
            if os.path.exists(self.database + end):
                os.remove(self.database + end)
