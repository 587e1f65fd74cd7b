"""Checks of an installed tree, shared by the tests of `meson install` and tools/release."""
import os
import pathlib
import re
import subprocess
import tempfile

from cudatrace_test import SOURCE, Session, WORKLOADS, can, check, equal

WANTED = """bin/cudatrace bin/cudatraced lib/libcudatrace.so lib/libcudatrace-gpu.so
share/man/man1/cudatrace.1 share/man/man1/cudatraced.1 share/doc/cudatrace/CHANGELOG.md share/doc/cudatrace/LICENSE share/doc/cudatrace/logrotate
share/bash-completion/completions/cudatrace share/bash-completion/completions/cudatraced share/zsh/site-functions/_cudatrace
share/fish/vendor_completions.d/cudatrace.fish share/fish/vendor_completions.d/cudatraced.fish
share/cudatrace/hooks/driver.hooks share/cudatrace/hooks/inference.hooks share/cudatrace/hooks/libraries.hooks share/cudatrace/hooks/scheduling.hooks
share/cudatrace/hooks/uvm.hooks
lib/systemd/user/cudatraced.service lib/systemd/system/cudatraced@.service""".split()


def files_of(prefix):
    """Returns the names of all installed files. Replaces the name of the library folder with `lib`."""
    [library] = (path.parent for path in prefix.rglob("libcudatrace.so") if not path.is_symlink())
    names = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    return {name.replace(f"{library.relative_to(prefix)}/", "lib/", 1) for name in names}


def check_files(prefix, *more):
    """Checks that exactly the files in WANTED and `more` are installed."""
    files = files_of(prefix)
    links = {f"lib/cudatrace/{place}libcudatrace.so" for place in ("", "lib/", "lib64/", "lib/x86_64-linux-gnu/", "lib32/", "lib/i386-linux-gnu/")}
    equal(sorted({*WANTED, *more} - files), [], "files that are missing")
    optional = {"lib/libcudatrace-32.so", "bin/cudatrace-probe"}
    equal(sorted(files - {*WANTED, *more} - links - optional), [], "files that this test does not know")
    equal([str(path) for path in prefix.rglob("*") if not path.exists()], [], "links that lead nowhere")
    equal((prefix / "share/doc/cudatrace/LICENSE").read_text(), (SOURCE / "LICENSE").read_text(), "the licence")


def check_commands(prefix):
    """Traces a program with the installed command, library and daemon, and reads the trace with the installed command."""
    with Session() as s:
        def cudatrace(command, *arguments):
            return s.run(prefix / "bin/cudatrace", command, *arguments, preload=False, cwd=s.dir).stdout

        # The traced shell prints the libraries that it has loaded, and the programs of all processes, including the daemon.
        told = cudatrace("run", "--", "sh", "-c", "cat /proc/$$/maps; readlink /proc/[0-9]*/exe; exec \"$@\"", "sh", WORKLOADS / "demo", "--rounds", 3)
        [library] = {path for path in re.findall(r"(/\S+/libcudatrace\.so)$", told, re.M)}
        check(pathlib.Path(library).is_relative_to(prefix), "the library is", library)
        check(str(prefix / "bin/cudatraced") in told.splitlines(), "the daemon is none of", told)
        calls = int(cudatrace("sql", "--format", "csv", "SELECT sum(calls) FROM totals").splitlines()[-1])
        equal(calls, sum(s.truth().values()), "calls in the trace")
        check("Functions by total time" in cudatrace("report"), "the report")
        cudatrace("html", "--output", "page.html")
        check((s.dir / "page.html").stat().st_size > 10000, "the page")


# Replacements for zsh's completion functions that only print their arguments.
ZSH = """fpath=($1 $fpath); autoload -Uz _cudatrace; shift
_describe() { print -rl -- "${(@P)argv[-1]}" }
_files() { print -r -- files "$@" "$PREFIX" }
_normal() { print -r -- command "${(@)words[1,CURRENT]}" }
compset() { PREFIX=${PREFIX#*=} }
words=("$@") CURRENT=$# PREFIX=$argv[-1]; _cudatrace"""
# (command line, completions in zsh, completions in fish)
TYPED = (
    ("cudatrace repo", ["report:show where the time was spent\\: phases"], ["report\tshow where the time was spent: phases"]),
    ("cudatrace report bottl", ["bottleneck:What bounds the run"], ["bottleneck\tWhat bounds the run"]),
    ("cudatrace report --format=c", ["csv"], ["--format=csv"]),
    ("cudatrace report --db=here", ["files here"], ["--db=here.db"]),
    ("cudatrace report --db here", ["files here"], ["here.db"]),
    ("cudatrace run --shm-dir fold", ["files -/ fold"], ["folder/"]),
    ("cudatrace run --db=x.db -- complete-me her", ["command complete-me her"], ["here.db"]),
    ("cudatraced --log-l", ["--log-level:log error, warning"], ["--log-level\tlog error, warning"]),
)


def check_completions(prefix):
    """Checks that zsh and fish offer the same completions as bash. The completions that bash offers have their own test, `completion`."""
    share = prefix / "share"
    with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as folder:
        pathlib.Path(folder, "here.db").touch()
        pathlib.Path(folder, "folder").mkdir()
        env = {"PATH": f"{prefix / 'bin'}:{os.environ['PATH']}", "HOME": folder, "LC_ALL": "C.UTF-8"}

        def offered(*command):
            return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=env).stdout.splitlines()

        for command in "cudatrace", "cudatraced":
            file = share / "bash-completion/completions" / command
            check(offered("bash", "-c", f". {file}; complete -p {command}"), "bash completes", command)
        zsh, fish = can("zsh", "completion in zsh"), can("fish", "completion in fish")
        for typed, by_zsh, by_fish in TYPED:
            if zsh:
                seen = offered("zsh", "-f", "-c", ZSH, "zsh", share / "zsh/site-functions", *typed.split())
                check(len(seen) == len(by_zsh) and all(map(str.startswith, seen, by_zsh)), typed, "in zsh:", seen)
            if fish:
                file = share / "fish/vendor_completions.d" / f"{typed.split()[0]}.fish"
                seen = offered("fish", "--no-config", "-c", f"source {file}; complete -C '{typed}'")
                check(len(seen) == len(by_fish) and all(map(str.startswith, seen, by_fish)), typed, "in fish:", seen)
