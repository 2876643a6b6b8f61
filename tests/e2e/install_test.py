#!/usr/bin/env python3
"""Installs the built tree below a temporary prefix, moves the prefix, and builds and tests the
projects of docs/examples against it in an empty folder.

usage: install_test.py [--jobs] BUILD_DIR SOURCE_DIR

The move shows that nothing in the prefix knows where it was made. Every project is configured and
built with the two commands that its job file names, and its own tests run by ctest. A counter that
is started by hand says how it is started. With --jobs each also runs as a job of the installed
binary: counter and scoreboard are asked, scaled, killed, drained and looked into, and the reward
judges three steps of training.
"""
import contextlib
import json
import os
import pathlib
import re
import signal
import shutil
import subprocess
import sys
import tempfile
import time

EXAMPLES = ("counter", "scoreboard", "reward")
SECONDS = 500  # ends a hang; never measured


def run(*words, cwd=None, expect=0):
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != expect:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}, expected {expect}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_package(prefix, source, root):
    """Nothing that is meant for our own build is in the package."""
    files = list(prefix.rglob("*.cmake"))
    assert files, f"no package below {prefix}"
    for file in files:
        text = file.read_text()
        for word in ("-Werror", "-fsanitize", str(source), "precompile", str(root)):
            assert word not in text, f"{file} holds {word}"
    for header in prefix.glob("include/**/*.h"):
        for included in re.findall(r'#include "([^"]+)"', header.read_text()):
            assert (prefix / "include/tandem" / included).exists(), f"{header}: no {included}"


def check_pages(prefix):
    """What a person looks for after an installation is there, and the documents' links hold."""
    share = prefix / "share"
    for file in ("man/man1/tandem.1", "bash-completion/completions/tandem", "fish/vendor_completions.d/tandem.fish",
                 "zsh/site-functions/_tandem", "tandem/configs/arithmetic.yaml"):
        assert (share / file).stat().st_size > 200, f"{file} is nearly empty"
    assert ".TH TANDEM 1" in (share / "man/man1/tandem.1").read_text()
    pages = [share / "doc/tandem/README.md", *share.glob("doc/tandem/docs/guides/*.md")]
    assert len(pages) > 10, pages
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            target = (page.parent / link).resolve()
            source_file = target.suffix in (".h", ".py")  # stays in the repository
            assert source_file or target.exists(), f"{page} links to {link}, which is not installed"


def check_part(build, root):
    """A tree in which only the binary has been built, as by scripts/quickstart, is installed as far as it goes."""
    part = root / "part"
    for file in (build / "tandem", *build.rglob("*.cmake")):
        copy = part / file.relative_to(build)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        if file.suffix == ".cmake":
            copy.write_text(copy.read_text().replace(str(build), str(part)))
    said = run("cmake", "--install", part, "--prefix", root / "partial")
    assert "Not installed: the runtime library and its headers" in said, said
    assert "tandem" in run(root / "partial/bin/tandem", "--version")
    assert not (root / "partial/include").exists(), "headers without their library"
    shutil.rmtree(part)


def build_and_test(example, folder, prefix):
    run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=folder)
    run("cmake", "--build", "build", cwd=folder)
    print(run("ctest", "--test-dir", "build", "--output-on-failure", cwd=folder))


class Cluster:
    """A cluster of the installed binary with a state folder of its own."""

    def __init__(self, prefix, home):
        self.binary = prefix / "bin/tandem"
        self.home = home
        self.environment = {**os.environ, "TANDEM_HOME": str(home)}

    def __call__(self, *words, expect=0, cwd=None):
        done = subprocess.run([self.binary, *words], env=self.environment, cwd=cwd,
                              capture_output=True, text=True, timeout=SECONDS)
        if expect is not None and done.returncode != expect:
            sys.exit(f"tandem {' '.join(words)}: exit code {done.returncode}\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def ask(self, actor, question):
        return json.loads(self("ask", actor, json.dumps(question)))

    def get(self, kind, *words):
        return json.loads(self("get", kind, *words, "-o", "json"))

    def actor(self, name):
        return next(a for a in self.get("actors") if a["name"] == name)


@contextlib.contextmanager
def cluster_of(prefix, home):
    cluster = Cluster(prefix, home)
    cluster("up", "--port", "0")
    try:
        yield cluster
    finally:
        cluster("down", expect=None)


def eventually(condition, what):
    """Looks until the condition holds; the deadline only ends a hang."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if condition():  # asks a process of its own, which takes a while
            return
    sys.exit(f"it never came true that {what}")


def run_counter(cluster, folder):
    cluster("submit", "counter.yaml", cwd=folder)
    cluster("wait", "counter-demo-1", "--for", "Running", "--timeout", "60s")
    assert cluster.ask("counter-demo-1/counter/0", {"add": 2}) == 12
    assert cluster.ask("counter/0", {"add": {"amount": 1}}) == 13
    assert cluster.ask("counter/1", {"get_total": None}) == 10
    wrong = cluster("ask", "counter/0", '{"ad": 2}', expect=64)
    assert "the actor's messages are add, get_total" in wrong, wrong

    cluster("scale", "counter-demo-1", "counter=4", "--wait")
    assert cluster.ask("counter/3", {"add": 1}) == 11

    before = cluster.actor("counter-demo-1/counter/0")
    os.kill(before["pid"], signal.SIGKILL)
    eventually(lambda: cluster.actor(before["name"])["incarnation"] > before["incarnation"]
               and cluster.actor(before["name"])["state"] == "Ready", "counter/0 is back")
    assert cluster.ask("counter/0", {"get_total": {}}) == 10, "a fresh state"
    assert "counter-demo-1" in cluster("why", "counter-demo-1")
    assert "event=actor_started" in cluster("logs", "counter-demo-1/counter/0")

    cluster("scale", "counter-demo-1", "counter=1", "--wait")
    eventually(lambda: len(cluster.get("actors")) == 1, "three counters have been drained")
    cluster("cancel", "counter-demo-1")
    assert cluster.get("jobs", "counter-demo-1")["state"] == "Cancelled"


def run_scoreboard(cluster, folder):
    cluster("submit", "scoreboard.yaml", cwd=folder)
    cluster("wait", "scoreboard-1", "--for", "Running", "--timeout", "60s")

    def sums():
        return cluster.ask("scoreboard-1/board/0", {"get_standings": None})["sums"]
    eventually(lambda: sums().get("stumbler/0", 0) > 60, "the stumbler is past its fall")
    assert sums().keys() == {"player/0", "player/1", "stumbler/0"}
    assert cluster.actor("scoreboard-1/stumbler/0")["restarts"] == 1
    assert cluster.ask("scoreboard-1/player/0", {"get_standings": None})["sums"].keys() == {
        "player/0"}
    cluster("cancel", "scoreboard-1")


def run_reward(cluster, folder, source):
    """Three steps of the job, with the data of the repository."""
    configs = source / "configs"
    sets = {"model.path": configs / "models/arithmetic",
            "data.train_files": f"[{configs}/data/train.jsonl]",
            "data.val_files": f"[{configs}/data/val.jsonl]",
            "warm_start.train_files": f"[{configs}/data/warm.jsonl]",
            "warm_start.max_steps": 20, "learner.total_training_steps": 3}
    words = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    cluster("run", "reward.yaml", *words, cwd=folder)
    result = json.loads((cluster.home / "runs/own-reward-1/result.json").read_text())
    assert result["state"] == "Succeeded" and result["steps"] == 3, result
    assert result["ledger"]["discarded"] == {}, "no completion went unjudged"
    assert result["eval"]["final"] is not None, result


def main():
    jobs = "--jobs" in sys.argv
    build, source = map(pathlib.Path, sys.argv[-2:])
    with tempfile.TemporaryDirectory(prefix="tandem-install-") as name:
        root = pathlib.Path(name)
        run("cmake", "--install", build, "--prefix", root / "made")
        prefix = root / "moved"
        (root / "made").rename(prefix)
        check_package(prefix, source, root)
        check_pages(prefix)
        check_part(build.resolve(), root)
        assert "tandem" in run(prefix / "bin/tandem", "--version")
        for example in EXAMPLES:
            folder = root / example
            shutil.copytree(source / "docs/examples" / example, folder)
            build_and_test(example, folder, prefix)
        said = run(root / "counter/build/counter", expect=64)
        assert "this program is started by a Tandem job" in said, said
        if jobs:
            with cluster_of(prefix, root / "home") as cluster:
                run_counter(cluster, root / "counter")
                run_scoreboard(cluster, root / "scoreboard")
            run_reward(Cluster(prefix, root / "home"), root / "reward", source)


if __name__ == "__main__":
    main()
