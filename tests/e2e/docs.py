"""Tests that the documents point at things that exist (files, headings, pictures), and that each command has its page."""
import pathlib
import re
import subprocess

from cudatrace_test import CUDATRACE, check, equal

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def anchors(path):
    """Returns the anchors of a document's headings, as Markdown viewers make them."""
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
