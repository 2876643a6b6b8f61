"""A cluster of `tandem up` in a state folder of its own, with one job, for the scripts that disturb it."""
import atexit
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 120
JOB = "arithmetic-grpo-1"


class Cluster:
    """A cluster in a state folder of its own."""

    def __init__(self, tandem, small_disk=False, prefix="tandem-chaos-"):
        self.tandem = tandem
        self.home = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self.small_disk = small_disk
        if small_disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "tmpfs", self.home], check=True)
        atexit.register(self.end_what_is_left)
        self.run("up", "--port", "0")

    def run(self, *words, check=True):
        done = subprocess.run([self.tandem, *words], cwd=ROOT, text=True, capture_output=True,
                              env={**os.environ, "TANDEM_HOME": str(self.home)}, timeout=PATIENCE_S + 30)
        if check and done.returncode != 0:
            raise RuntimeError(f"tandem {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def get(self, *words):
        return json.loads(self.run("get", *words, "-o", "json"))

    def controller(self):
        """The pid of the controller that answers; none while there is none."""
        try:
            self.get("nodes")
            return json.loads((self.home / "controller.json").read_text())["pid"]
        except (RuntimeError, OSError, ValueError):
            return None

    def job(self):
        return self.get("jobs", JOB)

    def until(self, condition, what, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while not condition():
            if time.monotonic() > end:
                raise RuntimeError(f"waited {patience_s} s for {what}\n" + self.run("why", JOB))
            time.sleep(0.02)

    def submit(self, settings):
        words = [word for setting in settings for word in ("--set", setting)]
        self.run("submit", "configs/arithmetic.yaml", *words)

    def wait(self):
        self.until(lambda: self.job()["ended"], "the job to end")
        return json.loads((self.home / "runs" / JOB / "result.json").read_text())

    def processes(self):
        """The pids of the processes that were started with this state folder."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"TANDEM_HOME={self.home}\0".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                pass  # it has ended, or is none of ours
        return found

    def end(self):
        self.run("down")

    def end_what_is_left(self):
        """After an error of the script: the state folder stays for a look, and nothing else does."""
        if self.home.exists() and self.processes():
            self.run("down", check=False)

    def remove(self):
        if self.small_disk:
            subprocess.run(["umount", "-l", self.home], check=True)
        shutil.rmtree(self.home)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself
