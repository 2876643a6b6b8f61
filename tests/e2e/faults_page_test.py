#!/usr/bin/env python3
"""Types the commands of docs/guides/faults.md into a shell, and compares what they print with the page.

An indented line that begins with "$ " is typed; the indented lines after it are what it prints. In them "…"
stands for any text, and a line that is "…" alone for any lines. The page is one session of a shell.

usage: faults_page_test.py BUILD_DIR SOURCE_DIR [SECTION [--show]]

SECTION is a part of one section's title: that section alone is typed, after the page's beginning. With --show all
that is printed is shown.
"""
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time

PATIENCE_S = 90  # for one command; it only ends a hang
MARK = "--- the command has ended ---"


class Step:
    """A command of the page, with what the page says that it prints."""

    def __init__(self, line_number, command):
        self.line_number, self.command, self.printed = line_number, command, []

    def pattern(self):
        lines = [".*" if line == "…" else ".*?".join(re.escape(part) for part in line.split("…"))
                 for line in self.printed]
        return re.compile("\n".join(lines), re.DOTALL)


def sections(page):
    """[(title, [Step])] of the page's text."""
    found = [("", [])]
    for number, line in enumerate(page.split("\n"), 1):
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("    $ "):
            found[-1][1].append(Step(number, line[6:]))
        elif line.startswith("    ") and found[-1][1]:
            found[-1][1][-1].printed.append(line[4:])
    return [(title, steps) for title, steps in found if steps]


class Shell:
    def __init__(self, build, source):
        environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}"}
        environment.pop("TANDEM_HOME", None)
        self.process = subprocess.Popen(["bash"], cwd=source, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def type(self, command):
        """What the command prints, without the last newline."""
        self.process.stdin.write(f"{command}\nprintf '\\n%s\\n' '{MARK}'\n".encode())
        self.process.stdin.flush()
        out, end = b"", time.monotonic() + PATIENCE_S
        mark = f"\n{MARK}\n".encode()
        while not out.endswith(mark):
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"it has not ended after {PATIENCE_S} s; so far it printed:\n{out.decode()}")
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                raise EOFError(f"the shell has ended; it printed:\n{out.decode()}")
            out += part
        return out[:-len(mark)].decode().rstrip("\n")

    def end(self):
        """Ends the cluster; returns the processes of its state folder that are left."""
        home = self.type("echo $TANDEM_HOME")
        self.type("tandem down")
        self.process.stdin.close()
        self.process.wait()
        left = [folder.name for folder in pathlib.Path("/proc").glob("[0-9]*") if of_home(folder, home)]
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["rm", "-rf", home], check=True)
        return left


def of_home(folder, home):
    try:
        return f"TANDEM_HOME={home}\0".encode() in (folder / "environ").read_bytes()
    except OSError:
        return False  # it has ended


def main():
    build, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    only = sys.argv[3] if len(sys.argv) > 3 else None
    page = source / "docs/guides/faults.md"
    if not shutil.which("jq"):
        print("jq is not installed")
        return 77
    shell, failures = Shell(build, source), 0
    parts = sections(page.read_text())
    for title, steps in parts:
        if only and title != parts[0][0] and only not in title:
            continue
        began = time.monotonic()
        for step in steps:
            try:
                printed = shell.type(step.command)
            except (TimeoutError, EOFError) as error:
                print(f"{page}:{step.line_number}: {step.command}\n{error}")
                os.killpg(shell.process.pid, signal.SIGKILL)
                return 1
            if "--show" in sys.argv:
                print(f"$ {step.command}\n{printed}", flush=True)
            if not step.pattern().fullmatch(printed):
                failures += 1
                expected = "\n".join(step.printed)
                print(f"{page}:{step.line_number}: {step.command}\nprinted:\n{printed}\nthe page says:\n{expected}\n")
                break
        print(f"{time.monotonic() - began:5.1f} s  {title}", flush=True)
    left = shell.end()
    if left:
        print(f"processes are left: {left}")
    return 1 if failures or left else 0


if __name__ == "__main__":
    sys.exit(main())
