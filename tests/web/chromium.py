"""Drives Debian's Chromium without a window, over a pair of pipes (--remote-debugging-pipe)."""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

ARGUMENTS = ["--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--mute-audio", "about:blank"]


class Gone(Exception):
    pass


class Browser:
    """One browser with one page. Every wait has a deadline; messages of the page's console, its
    uncaught errors and breaches of its content policy are collected in `complaints`."""

    def __init__(self, deadline_s=120):
        self.deadline_s = deadline_s
        self.complaints = []
        self.folder = tempfile.mkdtemp(prefix="tandem-chromium-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()
        # Chromium reads 3 and writes 4, which bash makes of numbers that cannot be these.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_browser, from_browser)]
        arguments = ["chromium", f"--user-data-dir={self.folder}", *ARGUMENTS]
        if os.geteuid() == 0:
            arguments.insert(1, "--no-sandbox")  # which root cannot have
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, env={**os.environ, "HOME": self.folder}, pass_fds=ends)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self.number, self.unread, self.session = 0, b"", None
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Page.setDownloadBehavior", behavior="allow", downloadPath=self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.killpg(self.process.pid, signal.SIGKILL)  # its own session: all of its processes
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.deadline_s
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.take(answer)

    def receive(self, deadline):
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise Gone(f"chromium did not answer within {self.deadline_s} s")
            piece = os.read(self.into, 1 << 16)
            if not piece:
                raise Gone("chromium has ended")
            self.unread += piece
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def take(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Log.entryAdded":
            entry = parameters["entry"]
            if entry["level"] == "error":
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in (
                "error", "assert"):
            self.complaints.append(json.dumps(parameters["args"]))

    def size(self, width, height, phone=False, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Until the expression is true in the page; the page itself watches, frame by frame."""
        deadline = time.monotonic() + self.deadline_s
        while time.monotonic() < deadline:
            if self.becomes(expression):
                return
        raise AssertionError(f"never became true: {expression}\n"
                             f"the page says: {self.value('document.body.innerText')[:2000]}")

    def becomes(self, expression):
        """Whether the expression becomes true within five seconds, in this page."""
        watch = ("new Promise((done) => { const end = performance.now() + 5000; "
                 "const look = () => { let is = false; "
                 f"try {{ is = Boolean({expression}); }} catch {{}}"
                 " if (is || performance.now() > end) done(is); else setTimeout(look, 20); };"
                 " look(); })")
        try:
            return self.value(watch)
        except RuntimeError:
            return False  # the page was left for another while it watched

    def downloaded(self, name):
        """The bytes of a file that the page has saved, once it is there whole."""
        path = pathlib.Path(self.folder) / name
        deadline = time.monotonic() + self.deadline_s
        while time.monotonic() < deadline:
            if path.exists() and not path.with_name(name + ".crdownload").exists():
                return path.read_bytes()
            self.becomes("false")  # five seconds at most, in which downloads go on
        raise AssertionError(f"never saved: {name}; there are {os.listdir(self.folder)}")

    def screenshot(self, path, whole=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))
