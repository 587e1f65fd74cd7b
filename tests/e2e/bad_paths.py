"""Tests every option that takes a path, of every command and of the daemon, with unsuitable paths. The paths include a FIFO, a device, a
folder, a dangling link, an unreadable file, an empty string, a newline, and names with a special meaning to SQLite. The command must exit
at once, print one line, and change nothing. The options are read from the help texts, so that new options are tested as well."""
import os
import re
import shutil
import socket
import stat
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, HOOK, Session, WORKLOADS, can, check, equal

PATH_VALUES = {"FILE", "DIR"}
OTHER_VALUES = {"NAME", "T", "PID", "LIST", "F", "N", "S", "SIZE", "DURATION", "SPAN", "CALL", "WHEN", "COLUMN", "TEXT", "LEVEL", "METHOD", "PATTERN", "INTERVAL",
                "ORDER", "FORM", "LINE"}
# Arguments that the commands require besides the option under test.
ARGUMENTS = {"run": ["--", "true"], "sql": ["SELECT 1"], "set": ["--calls", "*"], "top": ["--once"], "diff": ["plain.db", "plain.db"],
             "import": ["recording"], "attach": ["--new", "--for", "1s"],
             "probe": ["--all", "--for", "1s"]}
DEADLINE_S = 60  # for commands that take milliseconds
IS_ROOT = os.geteuid() == 0
NOBODY = 65534


def path_options(text):
    """Returns the options in a help text that take a path. Fails if the help text contains a kind of value listed in neither PATH_VALUES
    nor OTHER_VALUES."""
    found = re.findall(r"^  (--[\w-]+) ([A-Z]+)\b", text, re.M)
    equal({value for _, value in found} - PATH_VALUES - OTHER_VALUES, set(), "kinds of values")
    return [(option, value) for option, value in found if value in PATH_VALUES]


class Folder:
    """A folder, owned by one user, that contains the paths for the options. Commands may create only the files in `made`, and may change
    no other file."""

    def __init__(self, s, uid):
        self.s, self.uid, self.path = s, uid, s.dir / f"of-{uid}"
        self.path.mkdir()
        here = self.path
        os.mkfifo(here / "fifo")
        (here / "folder").mkdir()
        (here / "dangling").symlink_to("nowhere/file")
        (here / "to-fifo").symlink_to("fifo")
        (here / "shut").write_text("shut")
        (here / "text").write_text("no database\n" * 100)
        shutil.copy(s.db, here / "plain.db")
        self.listener = socket.socket(socket.AF_UNIX)
        os.chdir(here)  # the path of a socket must be short
        self.listener.bind("socket")
        self.kinds = ["fifo", "folder", "dangling", "to-fifo", "text", "socket", "", "none/file", "plain.db/x", "x" * 300]
        if can("device files", "a device in place of a file"):
            os.mknod(here / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
            self.kinds.append("device")
        for name in os.listdir(here):
            if uid is not None:
                os.chown(here / name, uid, uid, follow_symlinks=False)
        if uid is not None:
            os.chown(here, uid, uid)
        (here / "shut").chmod(0)
        if uid is not None or not IS_ROOT:
            self.kinds.append("shut")
        self.before = self.state()

    def state(self):
        return {name: (os.lstat(self.path / name).st_ino, os.lstat(self.path / name).st_mode, os.lstat(self.path / name).st_size)
                for name in os.listdir(self.path)}

    def run(self, *command, stdin=subprocess.DEVNULL):
        user = {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        env = self.s.env(preload=False, CUDATRACE_DAEMON=self.s.dir / "cudatraced", CUDATRACE_HOOK=self.s.dir / "libcudatrace.so")
        return subprocess.run([str(c) for c in command], cwd=self.path, env=env, stdin=stdin, capture_output=True,
                              timeout=DEADLINE_S, **user)

    def check(self, path, *command, made=()):
        """Checks that the command either fails and prints one line that names the path, or succeeds and creates only the files in
        `made`."""
        done = self.run(*command)
        what = f"{command} as {self.uid}: {done.returncode} {done.stderr}"
        lines = done.stderr.decode().splitlines()
        if done.returncode:
            check(done.returncode in (1, 2), what)
            if command[1] != "doctor":  # doctor prints a paragraph for everything
                sessions = ("cudatrace:   session", "cudatrace: select one with --session")  # lines about sessions of other tests
                equal(len([line for line in lines if not line.startswith(sessions)]), 1, f"lines of {what}")
                names = {path.replace("\n", "\\n"), path.replace("\n", "\\x0a"), path.removeprefix("to-")}
                is_read_later = "cudatrace-probe not found" in lines[0]  # it reads the table of --hooks, and hook_tables.py tests that
                check("session" in lines[0] or is_read_later or any(name in lines[0] for name in names), "the path in", what)
        for name in made:
            if done.returncode == 0 and name not in self.before and os.path.lexists(self.path / name):
                os.unlink(self.path / name)
        equal(self.state(), self.before, f"the folder after {what}")
        return done


def try_databases(f, tool, daemon, commands):
    for command, options in commands.items():
        for option, value in options:
            for path in f.kinds:
                arguments = ARGUMENTS.get(command, [])
                if command in ("attach", "probe") and (option, path) in (("--shm-dir", "folder"), ("--output", "device")):
                    continue  # this works, and would record other tests' programs
                if option == "--output" and path in ("fifo", "to-fifo", "text"):
                    continue  # outputs.py tests these, with a reader and without one
                if (option == "--output" and command not in ("run", "attach")) or (option == "--shm-dir" and command in ("html", "export")):
                    arguments = ["--db", "plain.db", *arguments]
                done = f.check(path, tool, command, option, path, *arguments,
                               made={"html": ["trace.html"], "run": ["trace.db"]}.get(command, []))
                works = (option, path) in (("--shm-dir", "folder"), ("--output", "device")) or command == "doctor"
                check(works or done.returncode, command, option, path, "did not fail:", done)
    for option, value in path_options(f.run(daemon, "--help").stdout.decode()):
        for path in f.kinds:
            if option == "--shm-dir" and path == "folder":
                continue
            done = f.check(path, daemon, "--session", f.s.name, option, path, *(["--db", "new.db"] if option != "--db" else []))
            check(done.returncode, "cudatraced", option, path, "did not fail")
    for place in range(2):
        for path in f.kinds:
            traces = ["plain.db", "plain.db"]
            traces[place] = path
            check(f.check(path, tool, "diff", *traces).returncode, "diff of", traces)


def try_names(f, tool):
    """Tests that traces, and files exported from traces, can have unusual names, such as `:memory:` or `--db`."""
    for name in ("new\nline.db", ":memory:", "file:x.db?mode=memory", "file::memory:", "a?b#c%41.db", "-", "--db", " ", "\x1b[31m.db",
                 "größe.db", "\udcff.db"):
        done = f.run(tool, "run", f"--db={name}", "--", WORKLOADS / "calls", "--calls", "10") if f.uid is None else None
        if done:
            equal(done.returncode, 0, f"run --db {name!r}: {done.stderr}")
        else:
            shutil.copy(f.path / "plain.db", f.path / name)
            os.chown(f.path / name, f.uid, f.uid)
        done = f.run(tool, "sql", f"--db={name}", "--format", "csv", "SELECT count(*) > 10 FROM calls")
        equal((done.returncode, done.stdout.splitlines()[-1:]), (0, [b"1"]), f"sql --db {name!r}: {done.stderr}")
        equal(f.run(tool, "diff", "--", name, name).returncode, 0, f"diff of {name!r}")
        if name != "-":
            equal(f.run(tool, "export", f"--db={name}", "--format", "nsys", f"--output={name}.out").returncode, 0, name)
            os.unlink(f.path / f"{name}.out")
        os.unlink(f.path / name)
        equal(f.state(), f.before, f"the folder after {name!r}")


with Session() as s:
    s.trace(WORKLOADS / "calls", "--calls", 100)
    s.dir.chmod(0o755)
    for binary in (CUDATRACE, DAEMON, HOOK):  # the build may be in a home directory
        shutil.copy(binary, s.dir)
    tool, daemon = s.dir / CUDATRACE.name, s.dir / DAEMON.name
    listed = re.findall(r"^  (\w+) +\S", s.run(tool, "--help", preload=False).stdout, re.M)
    names = [name for name in listed if name != "cudatrace"]
    check({"run", "sql", "export", "gc"} <= set(names), "commands of the help:", names)
    commands = {name: path_options(s.run(tool, name, "--help", preload=False).stdout) for name in names}
    check(sum(map(len, commands.values())) > 25, "options:", commands)
    for uid in (None, NOBODY) if can("several users", "paths as an ordinary user meets them") else (None,):
        folder = Folder(s, uid)
        try_databases(folder, tool, daemon, commands)
        try_names(folder, tool)
        folder.listener.close()
    os.chdir("/")
