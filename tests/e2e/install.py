"""Tests `meson install`: an installed tree works wherever it was put, with no file of the build or of the source."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from cudatrace_test import BUILD, SOURCE, Session, WORKLOADS, check, equal, needs

needs("meson")


def install(folder):
    """Installs below the folder, as packagers do. Returns the build's prefix below the folder, and the prefix itself."""
    # Restore the list of installed files: `ninja uninstall` removes what the user's last installation wrote into it.
    listed = BUILD / "meson-logs/install-log.txt"
    before = listed.read_bytes() if listed.exists() else None
    try:
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
    finally:
        if before is not None:
            listed.write_bytes(before)
        else:
            listed.unlink(missing_ok=True)
    [command] = folder.rglob("bin/cudatrace")
    prefix = command.parents[1]
    return prefix, pathlib.Path("/", prefix.relative_to(folder))


def files_of(prefix):
    """Returns the names of all installed files. The folder of libraries is called lib in them."""
    [library] = (path.parent for path in prefix.rglob("libcudatrace.so") if not path.is_symlink())
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    return {name.replace(f"{library.relative_to(prefix)}/", "lib/", 1) for name in names}


def check_units(prefix, final):
    for unit in prefix.glob("lib/systemd/*/*.service"):
        [program] = re.findall(r"^ExecStart=(\S+)", unit.read_text(), re.M)
        equal(program, str(final / "bin/cudatraced"), unit)


def check_commands(prefix):
    """Traces a program with the installed command, library and daemon, and reads the trace with the command."""
    with Session() as s:
        def cudatrace(command, *arguments):
            return s.run(prefix / "bin/cudatrace", command, *arguments, preload=False, cwd=s.dir).stdout

        # The traced shell prints its libraries and the programs of all processes, the daemon's among them.
        told = cudatrace("run", "--", "sh", "-c", "cat /proc/$$/maps; readlink /proc/[0-9]*/exe; exec \"$@\"", "sh", WORKLOADS / "demo", "--rounds", 3)
        [library] = {path for path in re.findall(r"(/\S+/libcudatrace\.so)$", told, re.M)}
        check(pathlib.Path(library).is_relative_to(prefix), "the library is", library)
        check(str(prefix / "bin/cudatraced") in told.splitlines(), "the daemon is none of", told)
        calls = int(cudatrace("sql", "--format", "csv", "SELECT sum(calls) FROM totals").splitlines()[-1])
        equal(calls, sum(s.truth().values()), "calls in the trace")
        check("Functions by total time" in cudatrace("report"), "the report")
        cudatrace("html", "--output", "page.html")
        check((s.dir / "page.html").stat().st_size > 10000, "the page")


WANTED = """bin/cudatrace bin/cudatraced lib/libcudatrace.so
share/man/man1/cudatrace.1 share/man/man1/cudatraced.1 share/doc/cudatrace/LICENSE share/doc/cudatrace/logrotate
share/bash-completion/completions/cudatrace share/bash-completion/completions/cudatraced
lib/systemd/user/cudatraced.service lib/systemd/system/cudatraced@.service""".split()

with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as name:
    installed, final = install(pathlib.Path(name).resolve())
    files = files_of(installed)
    equal(sorted(set(WANTED) - files), [], "what is not installed")
    links = {f"lib/cudatrace/{place}libcudatrace.so" for place in ("", "lib/", "lib64/", "lib/x86_64-linux-gnu/", "lib32/", "lib/i386-linux-gnu/")}
    equal(sorted(files - set(WANTED) - links - {"lib/libcudatrace-32.so"}), [], "what is installed that this test does not know")
    equal([str(path) for path in installed.rglob("*") if not path.exists()], [], "links that lead nowhere")
    check_units(installed, final)
    text = (installed / "share/doc/cudatrace/LICENSE").read_text()
    equal(text, (SOURCE / "LICENSE").read_text(), "the licence")
    # A folder whose name is in no installed file.
    moved = pathlib.Path(name).resolve() / "elsewhere"
    shutil.move(installed, moved)
    for variable in ("CUDATRACE_HOOK", "CUDATRACE_DAEMON"):
        os.environ.pop(variable, None)
    check_commands(moved)
