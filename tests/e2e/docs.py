"""Tests that the targets of links in the documents (files, headings, pictures) exist, and that each command has its own page. The README's
commands must print the output shown in the README, and the changelog must contain the current version."""
import lzma
import pathlib
import re
import shlex
import shutil
import subprocess

from cudatrace_test import CUDATRACE, DAEMON, HungCall, Session, WORKLOADS, check, equal

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def anchors(path):
    """Returns the anchors of a document's headings, in the form that Markdown viewers generate."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", path.read_text(), re.M)}


documents = [path for path in SOURCE.rglob("*.md") if not path.relative_to(SOURCE).parts[0].startswith(("build", "."))]
check(len(documents) > 20, "documents", documents)
links = 0
for document in documents:
    text = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        check(path.exists(), document.relative_to(SOURCE), "points at", target, "which is not there")
        check(not anchor or anchor in anchors(path), document.relative_to(SOURCE), "points at", target, "which has no such heading")
        links += 1
check(links > 40, "links", links)
decisions = SOURCE / "docs" / "decisions"
equal(dict(re.findall(r"^- \[(.+?)\]\((\d{4}-[^)]+)\)", (decisions / "README.md").read_text(), re.M)),
      {path.read_text().partition("\n")[0].removeprefix("# "): path.name for path in decisions.glob("[0-9]*.md")}, "the list of decisions")

help_text = subprocess.run([CUDATRACE, "--help"], capture_output=True, text=True, check=True).stdout
commands = set(re.findall(r"^  ([a-z]+) +[a-z]", help_text, re.M)) - {"cudatrace"}
pages = SOURCE / "docs" / "commands"
equal({path.stem for path in pages.glob("*.md")} - {"README"}, commands, "pages of commands")
equal(set(re.findall(r"\[(\w+)\]\(\1\.md\)", (pages / "README.md").read_text())), commands, "commands in the list")
for command in commands:
    text = (pages / f"{command}.md").read_text()
    options = subprocess.run([CUDATRACE, command, "--help"], capture_output=True, text=True, check=True).stdout
    for line in re.findall(rf"^    .*\bcudatrace {command}\b(.*)$", text, re.M):
        for option in re.findall(r"(?<=\s)--[a-z-]+", line.partition(" -- ")[0].partition("#")[0].partition("&&")[0].partition("|")[0]):
            check(option in options, f"docs/commands/{command}.md uses", option, "which the command does not have")

# Only meson.build contains the version. In the changelog, the current version is the first heading after Unreleased.
versions = re.findall(r"^## \[(.*?)\](?: - \d{4}-\d\d-\d\d)?$", (SOURCE / "CHANGELOG.md").read_text(), re.M)
for program in CUDATRACE, DAEMON:
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    equal(printed.split(), [program.name, versions[1]], "the version, by the changelog")
equal(versions[0], "Unreleased", "the first heading of the changelog")

def examples(heading):
    """Returns [(command, lines of its output)] for the examples below a heading of the README. A command that contains quotes may extend
    over several lines, and ends at the last quote."""
    section = (SOURCE / "README.md").read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", section, re.M | re.S):
        for example in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = example.splitlines()
            length = next(n for n in range(1, len(lines) + 1) if "\n".join(lines[:n]).count('"') % 2 == 0)
            found.append((shlex.split("\n".join(lines[:length])), lines[length:]))
    check(found, "the README has no example below", heading)
    return found


def pattern(line, numbers):
    """Returns a regular expression for a line of output. `…` matches the rest of a line or, on a line of its own, any number of lines. If
    `numbers` is false, any number matches any other, and a call shown as open for 0.0 seconds may be missing, because it may have
    returned."""
    if line == "…":
        return r"(?:.*\n)*?"
    text = re.escape(line.removesuffix("…").rstrip())
    if not numbers:
        text = re.sub(r"0\\\.0(\\ )+cu\w+", lambda call: f"(?:{call[0]})?", text)
        for one, any_of_its_kind in ((r"(?<!\w)\d+(\\\.\d+)?(?!\w)", r"[\\d.]+"), (r"(\\-)+", "-+"), (r"(\\ )+", " *")):
            text = re.sub(one, any_of_its_kind, text)
    return text + (r".*\n" if line.endswith("…") else r" *\n")


def check_examples(s, heading, numbers=True):
    """Runs the examples, checks their output, and returns it."""
    printed = []
    for command, lines in examples(heading):
        equal(command[0], "cudatrace", "the command of an example")
        printed.append(s.run(CUDATRACE, *command[1:], preload=False, cwd=s.dir).stdout)
        check(re.fullmatch("".join(pattern(line, numbers) for line in [*lines, "…"]), printed[-1]),
              "README.md shows:", "\n".join(["", *lines]), "\nand the command prints:\n" + printed[-1])
    return printed


with Session() as s:
    s.db.write_bytes(lzma.decompress((SOURCE / "tests/fixtures/h200-training.db.xz").read_bytes()))
    check_examples(s, "Where does the time go")

# Four workers repeatedly wait for the GPU, and one worker's wait never returns. Once the other workers have begun later calls, the hanging
# call is the oldest open call.
with Session() as s:
    s.start_daemon()
    shutil.copy(WORKLOADS / "bottlenecks", s.dir / "worker")
    job = ("--launches", 1 << 40, "--sync-every", 8)
    workers = [s.start("./worker", *job, cwd=s.dir, env={"SIMCUDA_LAUNCH_NS": 1000000}) for _ in range(3)]
    with HungCall(s, *job, program="./worker", cwd=s.dir, env={"SIMCUDA_BLOCK": "cuStreamSynchronize"}) as hung:
        s.flush_until("later calls of the other workers", lambda: s.value(
            "SELECT count(DISTINCT process_id) FROM calls WHERE name = 'cuStreamSynchronize' AND start_ns > "
            "(SELECT start_ns FROM open_calls JOIN processes USING (process_id) WHERE pid = ?)", hung.pid) == len(workers))
        for printed in check_examples(s, "My job hangs", numbers=False):
            check(re.search(rf"^ *{hung.pid} .*cuStreamSynchronize", printed, re.M), "the process that hangs is not in", printed)
    for worker in workers:
        worker.kill()
        worker.wait()
