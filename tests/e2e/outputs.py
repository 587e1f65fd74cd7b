"""Tests the files that `export` and `html` write. If the output is not a regular file, the command writes to it instead of replacing it. A
regular file is either written completely or left unchanged. A new file is readable only by its owner, and other users' links are not
followed.

The test does not use the machine's own device files, because a faulty command might replace them."""
import contextlib
import ctypes
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys

from cudatrace_test import CUDATRACE, DEADLINE_S, Session, WORKLOADS, can, check, equal, mount_namespace

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
from fault_test import promise  # noqa: E402: next to the table of promises

FORMATS = ("chrome", "perfetto", "pytorch", "jsonl", "csv", "nsys", "sqlite", "html")
IS_ROOT = os.geteuid() == 0
HAS_USERS = can("several users", "what is written as another user, and into what is another's", promises=["output-not-lured"])
ALICE, BOB = 12001, 12002


class Place:
    """A folder that belongs to one user, where the tool writes its output. `db` is the trace to export, and `long_db` is a longer trace,
    whose export takes some time."""

    long_db = None

    def __init__(self, folder, tool, db, uid=None, formats=("csv", "nsys")):
        self.folder, self.tool, self.db, self.uid, self.formats = folder, tool, db, uid, formats
        folder.mkdir()
        if uid is not None:
            os.chown(folder, uid, uid)

    def options(self, **options):
        if self.uid is not None:
            options.update(user=self.uid, group=self.uid, extra_groups=[])
        return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, "umask": 0, **options}

    def command(self, output, form, db=None):
        wanted = ["html"] if form == "html" else ["export", "--format", form]
        return [str(self.tool), *wanted, "--db", str(db or self.db), "--output", str(output)]

    def start(self, output, form="csv", db=None, **options):
        return subprocess.Popen(self.command(output, form, db), **self.options(**options))

    def write(self, output, form="csv", status=0, says="", **options):
        """Exports to `output`, and returns the command's standard output. Checks that at most one error line is printed, and that no
        other file is created."""
        before = set(os.listdir(self.folder))
        child = self.start(output, form, **options)
        out, error = child.communicate(timeout=DEADLINE_S)
        error = (error or b"").decode()
        check(child.returncode == status and says in error, output, form, "ended with", child.returncode, error)
        check(error.count("\n") == (1 if says else 0), "lines on standard error:", error)
        made = set(os.listdir(self.folder)) - before - {pathlib.Path(output).name}
        check(not made or os.path.islink(self.folder / output), "left beside it:", made)
        return out

    def make(self, name, kind, *arguments, owner=None, mode=0o666):
        """Creates a FIFO, link, file or device in the folder."""
        path = self.folder / name
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "link":
            os.symlink(*arguments, path)
        elif kind == "device":
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, *arguments))
        else:
            path.write_bytes(b"old\n")
        if kind != "link":
            path.chmod(mode)
        uid = self.uid if owner is None else owner
        if uid is not None:
            os.chown(path, uid, uid, follow_symlinks=False)
        return path


def facts(path):
    status = os.lstat(path)
    return status.st_ino, stat.S_IFMT(status.st_mode), status.st_mode & 0o7777, status.st_uid


def seen(path):
    return facts(path), path.read_bytes() if stat.S_ISREG(os.lstat(path).st_mode) else None


@contextlib.contextmanager
def unchanged(path):
    """Checks that the `with` block neither replaces the file nor changes its contents."""
    before = seen(path)
    yield
    equal(seen(path), before, path)


def same_rows(a, b):
    with contextlib.closing(sqlite3.connect(a)) as one, contextlib.closing(sqlite3.connect(b)) as other:
        equal(list(one.iterdump()), list(other.iterdump()), "rows of two databases")


def check_content(p, form, content):
    wanted = p.folder / f"plain.{form}"
    if form == "nsys":
        (p.folder / "got.nsys").write_bytes(content)
        same_rows(p.folder / "got.nsys", wanted)
        (p.folder / "got.nsys").unlink()
    else:
        equal(content == wanted.read_bytes(), True, f"{form} is what a file would have")


def plain(p):
    """Checks that new files are complete, and have mode 0600 although the umask is 0."""
    for form in p.formats:
        p.write(f"plain.{form}", form)
        equal(facts(p.folder / f"plain.{form}")[1:], (stat.S_IFREG, 0o600, os.geteuid() if p.uid is None else p.uid), form)
        check(os.path.getsize(p.folder / f"plain.{form}") > 1000, form)


def as_it_is(p):
    for form in p.formats:
        # A FIFO. Its reader gets everything.
        path = p.make("fifo", "fifo")
        with promise("output-as-it-is"), unchanged(path), open(p.folder / "read", "w+b") as read:
            reader = subprocess.Popen(["cat", path], stdout=read)
            p.write("fifo", form)
            equal(reader.wait(DEADLINE_S), 0, "the reader")
            read.seek(0)
            check_content(p, form, read.read())
        path.unlink()
        # Write to a pipe by each of its names. Then write to an open file, which must continue at the file's current offset.
        for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            check_content(p, form, p.write(name, form))
    with open(p.folder / "open", "w+b") as file:
        file.write(b"head\n")
        file.flush()
        p.write("/dev/stdout", stdout=file)
        file.write(b"tail\n")
        file.seek(0)
        check_content(p, "csv", file.read().removeprefix(b"head\n").removesuffix(b"tail\n"))
    script = 'exec "$@" --output >(cat >&3)'
    command = p.command("", "csv")[:-2]
    done = subprocess.run(["bash", "-c", script.replace(">&3", "; echo end"), "bash", *command], timeout=DEADLINE_S, **p.options())
    equal((done.returncode, done.stderr), (0, b""), "process substitution")
    check_content(p, "csv", done.stdout.removesuffix(b"end\n"))
    # Write to a FIFO without a reader. The command waits for a reader for a while before it fails.
    if p.uid is None:
        path = p.make("fifo", "fifo")
        with unchanged(path):
            p.write("fifo", status=1, says="'fifo': it is a FIFO without a reader")
        path.unlink()
    # Close the pipe before the command has written everything.
    for ignore in (False, True):
        child = p.start("-", restore_signals=not ignore)
        child.stdout.read(10)
        child.stdout.close()
        equal(child.stderr.read(), b"", "what is said of a reader that went away")
        equal(child.wait(DEADLINE_S), 1 if ignore else -signal.SIGPIPE, "the status then")
        child.stderr.close()


def standard_output(s):
    """Tests commands that write to standard output. A full disk must be reported once, and a closed pipe must not be reported. If a
    standard descriptor is closed, no file that the command opens may take its number."""
    for command in (["sql", "SELECT * FROM calls"], ["report"], ["timeline"], ["top", "--once"], ["export"], ["html", "--output", "-"]):
        command[1:1] = ["--db", s.db]
        with open("/dev/full", "w") as full:
            done = s.run(CUDATRACE, *command, preload=False, status=1, stdout=full)
        equal(done.stderr.count("\n"), 1, done.stderr)
        check("standard output" in done.stderr, command, done.stderr)
        for ignore in (False, True):
            ends = os.pipe()
            os.close(ends[0])
            done = s.run(CUDATRACE, *command, preload=False, status=None, stdout=ends[1], restore_signals=not ignore)
            os.close(ends[1])
            equal((done.returncode, done.stderr), (1 if ignore else -signal.SIGPIPE, ""), f"{command} of whom nobody reads")
    for descriptor in (0, 1, 2):
        done = subprocess.run([CUDATRACE, "html", "--db", s.db, "--output", s.dir / "page", "--pid", "1"], capture_output=True,
                              preexec_fn=lambda: os.close(descriptor), timeout=DEADLINE_S)
        equal((done.returncode, (s.dir / "page").exists()), (1, False), f"a failure with descriptor {descriptor} closed")
    done = subprocess.run([CUDATRACE, "export", "--db", s.db], capture_output=True, preexec_fn=lambda: os.close(1), timeout=DEADLINE_S)
    equal((done.returncode, done.stderr), (1, b"cudatrace: export: cannot write standard output: Bad file descriptor\n"), "closed")


def devices(p):
    null = p.make("null", "device", 3)
    full = p.make("full", "device", 7)
    for form in p.formats:
        with promise("output-as-it-is"), unchanged(null), unchanged(full):
            p.write("null", form)
            p.write("full", form, status=1, says="'full'")
            p.write("full", form, status=1, says="No space left on device")
    link = p.make("link", "link", "null")
    with unchanged(null), unchanged(link):
        p.write("link")


def refused(p):
    (p.folder / "folder").mkdir()
    for path in ("folder", "folder/", ".", "..", "/"):
        p.write(path, status=1, says="it is a directory" if not path.endswith("r/") and path != "/" else "Is a directory")
    for path in ("none/file", "none/", "plain.csv/x", "x" * 300, "/".join(["x" * 200] * 25), "loop"):
        if path == "loop":
            p.make("loop", "link", "loop")
        p.write(path, status=1, says="cannot write '")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(p.folder / "socket"))
        with unchanged(p.folder / "socket"):
            p.write("socket", status=1, says="it is a socket")
    p.write("", status=2, says="invalid value '' for --output: expected a file name")
    with open(os.devnull, "rb") as reading:
        p.write("/dev/fd/0", status=1, says="Bad file descriptor", stdin=reading)
    p.write("/dev/fd/77", status=1, says="cannot write '/dev/fd/77'")
    p.write("new\nline/x", status=1, says="'new\\nline/x'")
    p.write("new\nline")
    check((p.folder / "new\nline").exists(), "a name with a newline")


def itself(p):
    """An output that is the trace, or one of SQLite's logs of it, is refused, whatever its name. The trace stays as it was."""
    trace = p.folder / "own.db"
    shutil.copy(p.db, trace)
    (p.folder / "own.lnk").symlink_to("own.db")
    os.link(trace, p.folder / "hard")
    before = trace.read_bytes()
    for form in p.formats:
        for name in "own.db", "./own.db", "own.lnk", "hard", "own.db-wal", "own.db-shm", "own.db-journal":
            done = subprocess.run(p.command(name, form, trace), **p.options())
            equal(done.returncode, 1, name)
            check(f"cannot write '{name}': the file is the trace itself" in done.stderr.decode(), done.stderr)
    equal(trace.read_bytes(), before, "the trace")


def replaced(p):
    """Checks that a file keeps its mode and owner when it is replaced, and that the command replaces the target of a link instead of the
    link itself."""
    file = p.make("file", "file", mode=0o640)
    before = facts(file)
    p.write("file")
    equal(facts(file)[1:], before[1:], "kind, mode and owner")
    check_content(p, "csv", file.read_bytes())
    real, link = p.make("real", "file"), p.make("link2", "link", "real")
    with unchanged(link):
        p.write("link2")
    check_content(p, "csv", real.read_bytes())
    dangling = p.make("dangling", "link", "target")
    with unchanged(dangling):
        p.write("dangling")
    check_content(p, "csv", (p.folder / "target").read_bytes())
    equal(facts(p.folder / "target")[2], 0o600, "the mode of what a link led to")
    # Write to a file in a folder where the user cannot create new files.
    if IS_ROOT and p.uid is None:
        return
    (p.folder / "shut").mkdir()
    inside, closed = p.make("shut/inside", "file", mode=0o646), p.make("shut/closed", "file", mode=0o444)
    os.chmod(p.folder / "shut", 0o555)
    for form in p.formats:
        before = facts(inside)
        p.write("shut/inside", form)
        equal(facts(inside), before, "what is written in its place")
        check_content(p, form, inside.read_bytes())
    with unchanged(closed):
        p.write("shut/closed", status=1, says="Permission denied")
    p.write("shut/new", status=1, says="Permission denied")
    os.chmod(p.folder / "shut", 0o755)


def broken_off(p):
    """Checks that if an export fails or is stopped by a signal, the old file is unchanged, and no other file is left."""
    file = p.make("kept", "file")
    for form in p.formats:
        with promise("output-whole"), unchanged(file):
            p.write("kept", form, status=1, says="'kept'",
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    listing = set(os.listdir(p.folder))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for output in ("kept", "unborn"):
            with promise("output-whole"):
                stop_while_writing(p, file, output, number)
            equal(set(os.listdir(p.folder)), listing, f"the folder after signal {number}")


def stop_while_writing(p, kept, output, number):
    """Sends a signal to the export as soon as its temporary file appears. Repeats this until a signal arrives in time. After that, the
    old file must be unchanged."""
    # The test sleeps until the export creates a file (IN_CREATE). It then runs at once, because the export has the lowest priority. If the
    # test polled for the file instead, it would not be scheduled in time.
    created, libc = 0x100, ctypes.CDLL(None)
    for _ in range(100):
        before = seen(kept)
        watch = libc.inotify_init1(os.O_CLOEXEC)
        libc.inotify_add_watch(watch, os.fsencode(p.folder), created)
        child = p.start(output, "chrome", p.long_db, preexec_fn=lambda: os.nice(19))
        check(select.select([watch], [], [], DEADLINE_S)[0], "no file was made")
        child.send_signal(number)
        os.close(watch)
        child.communicate(timeout=DEADLINE_S)
        if child.returncode == -number:
            equal(seen(kept), before, kept)
            return
        (p.folder / "unborn").unlink(missing_ok=True)
        kept.write_bytes(b"old\n")
    check(False, "no signal came in time")


def laid_by_others(p):
    """Tests outputs that another user has put into a world-writable folder. Runs the export as root and as an ordinary user."""
    p.folder.chmod(0o1777)
    os.chown(p.folder, 0, 0)
    victim = p.folder.parent / f"victim-{p.uid}"
    victim.write_bytes(b"precious\n")
    os.chmod(victim, 0o666)
    link = p.make("laid", "link", str(victim), owner=BOB)
    chain = p.make("chain", "link", "laid")
    around = p.make("around", "link", str(p.folder.parent), owner=BOB)
    file, fifo = p.make("laid-file", "file", owner=BOB), p.make("laid-fifo", "fifo", owner=BOB)
    for form in p.formats:
        with promise("output-not-lured"), contextlib.ExitStack() as stack:
            for path in (victim, link, chain, around, file, fifo):
                stack.enter_context(unchanged(path))
            for name in ("laid", "chain", f"around/{victim.name}"):
                culprit = p.folder / name.split("/")[0].replace("chain", "laid")
                p.write(name, form, status=1, says=f"'{culprit}' is a link of user {BOB} in a directory writable by all; remove it")
            for name, kind in (("laid-file", "file"), ("laid-fifo", "FIFO")):
                p.write(name, form, status=1, says=f"'{p.folder / name}' is a {kind} of user {BOB} in a directory writable by others; remove it")
            p.write(p.make("hole", "link", str(p.folder.parent / "hole"), owner=BOB).name, form, status=1, says=f"link of user {BOB}")
            check(not (p.folder.parent / "hole").exists(), "a link of another user's was followed")
            (p.folder / "hole").unlink()
    # Links that belong to the user or to the folder's owner are followed.
    for owner in (p.uid, 0):
        own = p.make("own", "link", "mine", owner=owner)
        p.write("own")
        own.unlink()
    # If root replaces a file in a user's folder, the file still belongs to the user.
    if p.uid is None:
        (p.folder / "home").mkdir()
        os.chown(p.folder / "home", ALICE, ALICE)
        for form in p.formats:
            theirs = p.make("home/theirs", "file", owner=ALICE, mode=0o640)
            before = facts(theirs)
            p.write("home/theirs", form)
            equal(facts(theirs)[1:], before[1:], "a user's file that root has replaced")
            check_content(p, form, theirs.read_bytes())


def mounted(p):
    """Checks that a file that is a mount point, as is common in containers, is not replaced but written in place."""
    target = p.make("mount", "file")
    script = 'mount --bind source mount && "$@" && cat source'
    (p.folder / "source").write_bytes(b"old\n")
    done = subprocess.run([*mount_namespace(), "bash", "-c", script, "bash", *p.command("mount", "csv")], timeout=DEADLINE_S, **p.options())
    equal(done.stderr, b"", "what was said")
    check_content(p, "csv", done.stdout)
    equal(target.read_bytes(), b"old\n", "what lies below the mount")


signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and no child would end by it
with Session() as s:
    s.trace(WORKLOADS / "calls", "--calls", 4000, "--mix", "training")
    Place.long_db = s.dir / "long.db"
    shutil.copy(s.db, Place.long_db)
    s.cudatrace("run", "--db", Place.long_db, "--", WORKLOADS / "calls", "--calls", 400000, "--mix", "training")
    s.dir.chmod(0o755)
    for db in (s.db, Place.long_db):
        db.chmod(0o644)
    tool = s.dir / "cudatrace"
    shutil.copy(CUDATRACE, tool)  # the build may be in a home directory
    for uid in (None, ALICE) if HAS_USERS else (None,):
        p = Place(s.dir / f"as-{uid}", tool, s.db, uid, **({} if uid else {"formats": FORMATS}))
        for part in (plain, as_it_is, devices, refused, itself, replaced, broken_off):
            if part != devices or can("device files", "what is written to devices"):
                part(p)
        if HAS_USERS:
            laid_by_others(p)
    standard_output(s)
    if can("mount namespaces", "a file that is a mount"):
        p = Place(s.dir / "mounts", tool, s.db)
        p.write("plain.csv")
        mounted(p)
