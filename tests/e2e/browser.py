"""Runs a headless Chromium through chromedriver, using the WebDriver protocol (https://www.w3.org/TR/webdriver2/)."""
import base64
import json
import pathlib
import subprocess
import tempfile
import urllib.request

from cudatrace_test import DEADLINE_S, check

PAGE_LOAD_MS = 60000
MARGIN = 4  # around a part of a page, in pixels of the page
# A script that waits until a page made by `cudatrace html` reports that it is drawn, or why it cannot be drawn, and then passes on the
# report.
SHOWN = """
const [tell] = arguments, { dataset } = document.body, problem = document.getElementById("problem"), watch = new MutationObserver(look);
function look() {
  if (dataset.ready || problem.textContent) {
    watch.disconnect();
    tell([dataset.ready, problem.textContent]);
  }
}
watch.observe(document.body, { attributes: true });
watch.observe(problem, { childList: true });
look();
"""


class Browser:
    """A browser with one window, which gives pages the specified size. The browser's profile is removed at the end."""

    def __init__(self, width=1400, height=1000):
        self.width, self.height = width, height

    def __enter__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="cudatrace-browser-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            self.begin()
        except BaseException:
            self.end()
            raise
        return self

    def begin(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.url = f"http://127.0.0.1:{line.rstrip().rstrip('.').rpartition(' ')[2]}"
                break
        else:
            raise AssertionError(f"chromedriver ended with {self.driver.wait()}")
        # Use a pipe. Do not pass a port, because chromedriver would then resolve "localhost", which fails on a machine without
        # /etc/hosts.
        arguments = ["--remote-debugging-pipe",
                     "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                     "--disable-background-networking", "--proxy-server=127.0.0.1:1",  # every network access fails
                     f"--user-data-dir={self.profile.name}", f"--window-size={self.width},{self.height}"]
        made = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"}, "timeouts": {"pageLoad": PAGE_LOAD_MS, "script": int(DEADLINE_S * 1000)},
            "goog:chromeOptions": {"args": arguments}}}})
        self.session = f"/session/{made['sessionId']}"
        self.resize(self.width, self.height)

    def __exit__(self, *_):
        try:
            self.ask("DELETE", self.session)
        finally:
            self.end()

    def end(self):
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:2000]}") from None

    def command(self, name, **values):
        """Sends a Chrome DevTools Protocol command (https://chromedevtools.github.io/devtools-protocol/)."""
        return self.ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": name, "params": values})

    def resize(self, width, height, colours="light", scale=1):
        """Sets the size of the page itself, because a Chromium window is at least 500 pixels wide. A screenshot has `scale` pixels for
        each pixel of the page."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])

    def open(self, path):
        self.ask("POST", f"{self.session}/url", {"url": pathlib.Path(path).resolve().as_uri()})

    def show(self, page):
        """Opens a page made by `cudatrace html`, and waits until it is drawn. Returns how many milliseconds this took."""
        self.open(page)
        ready, problem = self.ask("POST", f"{self.session}/execute/async", {"script": SHOWN, "args": []})
        check(ready, problem)
        return float(ready)

    def run(self, script, *arguments):
        """Runs a script, given as the body of a function, and returns the function's result."""
        return self.ask("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return next(iter(self.ask("POST", f"{self.session}/element", {"using": "css selector", "value": selector}).values()))

    def click(self, selector):
        self.ask("POST", f"{self.session}/element/{self.find(selector)}/click", {})

    def type(self, selector, text):
        self.ask("POST", f"{self.session}/element/{self.find(selector)}/value", {"text": text})

    def act(self, *actions):
        """Sends WebDriver actions for one pointer or one wheel."""
        kind = "wheel" if actions[0]["type"] == "scroll" else "pointer"
        self.ask("POST", f"{self.session}/actions", {"actions": [{"type": kind, "id": kind, "actions": list(actions)}]})

    def errors(self):
        """Returns the errors and warnings in the browser's console."""
        entries = self.ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [e["message"] for e in entries if e["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path, first=None, last=None):
        """Takes a screenshot of the window, or of the part from the top of the first element to the bottom of the last element."""
        if first:
            top, bottom, width = self.run(
                "const [first, last] = [...arguments].map((s) => document.querySelector(s).getBoundingClientRect()); "
                "return [first.top + scrollY, last.bottom + scrollY, document.documentElement.clientWidth]", first, last)
            clip = {"x": 0, "y": top - MARGIN, "width": width, "height": bottom - top + 2 * MARGIN, "scale": 1}
            data = base64.b64decode(self.command("Page.captureScreenshot", clip=clip)["data"])
        else:
            data = base64.b64decode(self.ask("GET", f"{self.session}/screenshot"))
        check(data[:4] == b"\x89PNG", "no picture")
        pathlib.Path(path).write_bytes(data)
