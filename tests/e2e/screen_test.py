"""Runs `cudatrace top` on a tmux screen."""
import itertools
import subprocess

from cudatrace_test import CUDATRACE, wait_for


def findable(s, program):
    """Creates a link to the program in the session's folder. With the path of the link, --find selects only this test's programs. It could
    not select them by pid, because other numbers may contain the same digits."""
    link = s.dir / program.name
    link.symlink_to(program)
    return link


class Screen:
    """A `cudatrace top` on a tmux screen."""

    numbers = itertools.count()

    def __init__(self, s, width, height, *options):
        # Each screen has its own tmux server, because a new tmux must not find the socket of a server that is exiting.
        self.tmux = ["tmux", "-S", str(s.dir / f"screen.{next(self.numbers)}"), "-f", "/dev/null"]
        self.s = s
        subprocess.run([*self.tmux, "new-session", "-d", "-x", str(width), "-y", str(height), CUDATRACE, "top", "--session", s.name,
                        "--interval", "0.1", *options], check=True, env=s.env(preload=False, TERM="screen"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self.tmux, "kill-server"], check=False, stderr=subprocess.DEVNULL)

    def lines(self):
        return subprocess.run([*self.tmux, "capture-pane", "-p"], capture_output=True, text=True).stdout.splitlines()

    def press(self, *keys):
        subprocess.run([*self.tmux, "send-keys", *keys], check=True)

    def resize(self, width, height):
        subprocess.run([*self.tmux, "resize-window", "-x", str(width), "-y", str(height)], check=True)

    def wait(self, what, condition):
        """Waits until the lines on the screen satisfy the condition, and returns these lines."""
        return wait_for(what, lambda: (lines := self.lines()) and condition(lines) and lines)

    def wait_for_text(self, *texts):
        return self.wait(f"{texts} on the screen", lambda lines: all(any(text in line for line in lines) for text in texts))

    def wait_for_sentence(self, text):
        """Waits for text that may be wrapped, and therefore be on several lines."""
        return self.wait(f"{text} on the screen", lambda lines: text.replace(" ", "") in "".join(lines).replace(" ", ""))

    def has_ended(self):
        return subprocess.run([*self.tmux, "has-session"], capture_output=True).returncode != 0
