#!/usr/bin/env python3
"""Runs a job of Tandem on nodes that a Ray cluster gives: Ray is the allocator, Tandem the runtime.

    tandem_launch.py submit --program TANDEM --home TANDEM_HOME --name JOBNAME --nodes N [--address auto]
        [--min-nodes M] [--cpus-per-node C] [--gpus-per-node G] [--ports LOW-HIGH] [--wait-s S] [--save-s S]
        [--resume RUN]
        -- [JOB.yaml] [--set KEY=VALUE ...]
    tandem_launch.py exec --name JOB [--address auto] -- get actors
    tandem_launch.py list [--address auto]

`tandem ray` starts this program. `submit` asks Ray for a placement group with a bundle for each node. A Ray actor
(Host) in each bundle starts one process: `tandem run --cluster DIR` on the first node, `tandem node --cluster DIR` on
each other one. `submit` prints what the first one prints, and returns its exit code. The words after `--` are those of
`tandem run`; for `exec` they are a command of tandem's, which the job's first node runs. All hosts see TANDEM_HOME.

  RL-1  No process of a job outlives its Ray worker, its raylet or `submit` by more than a job needs to save.
  RL-2  A node that is lost costs its actors alone. Where it is the first one, the job goes on from its newest
        checkpoint, on the nodes that are left and on those that Ray gives meanwhile.
  RL-3  Three starts in a row without a newer checkpoint end the job.

The words of `submit` are checked by `tandem ray`, and not here. Nothing waits without a limit except a node that the
job can do without.
"""
import argparse
import asyncio
import fcntl
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

try:
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except ImportError:
    ray = None

NAMESPACE = "tandem"  # of the named actors, which are JOB/1, JOB/2, …
WAIT_S = 600  # for Ray to give nodes
SAVE_S = 180  # for a run that was told to end: it saves a checkpoint
END_S = 20  # for a process that was told to end at once
RELEASE_S = 120  # for the locks of a lost host to go; file servers hold them for 90 seconds
ASK_S = 600  # for a command of `exec`
ANSWER_S = 10  # for an actor that tells what it knows
LOOK_S = 0.2  # between two looks at a log, at a lock, or at an actor that Ray does not reach
LOOK_AGAIN_S = 5  # at an agent that the next one waits for
HEALTHY_S = 60  # a process that has lived so long did not fail at its start
STARTS_MAX = 3
FAILED, INFEASIBLE, NOT_FOUND, TIMED_OUT, UNREACHABLE, INTERRUPTED = 1, 2, 3, 5, 69, 130
KINDS = {FAILED: "failed", INFEASIBLE: "infeasible", NOT_FOUND: "not_found", TIMED_OUT: "timed_out",
         UNREACHABLE: "unreachable"}
LOCKED = 75  # of a guard: a process that was started before this one is not gone yet
KILLED = 128 + signal.SIGKILL

# The guard is the parent of a process of Tandem, and sends it each byte of its standard input as a signal. When that
# input ends, the Ray worker is gone. A process that was not told yet gets SIGTERM then: a run saves and ends, and an
# agent ends with its run or when its actors have moved. One that is there after PATIENCE seconds gets SIGINT, which
# ends both at once. The guard is not a child of the Ray worker, since a worker kills its children when it ends, and it
# has a session of its own, since a raylet kills process groups. Where the guard itself is killed, the kernel sends LAST
# (PR_SET_PDEATHSIG). It sends that once for each thread of the guard that ends, and a run that is told twice does not
# save: so the guard has one thread. The log is locked as long as a process has it for its output.
GUARD = f"END_S, LOCKED = {END_S}, {LOCKED}" + """
import ctypes, fcntl, os, select, signal, subprocess, sys
if os.fork():
    os._exit(0)
last, patience, log, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
guard, libc, PR_SET_PDEATHSIG, NOT_STARTED = os.getpid(), ctypes.CDLL(None), 1, 127

def follow_guard():
    libc.prctl(PR_SET_PDEATHSIG, last)
    if os.getppid() != guard:
        os._exit(1)

def attend(child, child_ended):
    inputs, wait, told = [0, child_ended], None, False
    ends = [(signal.SIGTERM, patience), (signal.SIGINT, END_S), (signal.SIGKILL, None)]
    while child.poll() is None:
        ready = select.select(inputs, [], [], wait)[0]
        if child_ended in ready:
            os.read(child_ended, 64)
        elif 0 in ready and (number := os.read(0, 1)):
            child.send_signal(number[0])
            told = True
        else:
            inputs = [child_ended]
            number, wait = ends.pop(0)
            if not (told and number == signal.SIGTERM):
                child.send_signal(number)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode

def run(log):
    child_ended, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = subprocess.Popen(sys.argv[5:], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
                                 start_new_session=True, preexec_fn=follow_guard)
    except BlockingIOError:
        return LOCKED
    except OSError as failure:
        log.write(f"error[failed]: {sys.argv[5]} cannot be started: {failure}\\n".encode())
        return NOT_STARTED
    return attend(child, child_ended)

with open(log, "ab", buffering=0) as output:
    code = run(output)
try:
    os.write(1, str(code).encode())
except BrokenPipeError:
    pass  # the Ray worker is gone
"""


class Failure(Exception):
    """An error that a person reads: the message, the place, and how to mend it."""

    def __init__(self, code, message, where="", mend=""):
        super().__init__(message)
        self.code, self.where, self.mend = code, where, mend

    def text(self):
        lines = [f"error[{KINDS[self.code]}]: {self}", f"  --> {self.where}", f"  help: {self.mend}"]
        return "\n".join(line for line, part in zip(lines, ("message", self.where, self.mend)) if part)


class Lost(Exception):
    """A node's Ray actor has ended, or the `tandem run` on it was killed."""


class Host:
    """A Ray actor, one on each node. It has one process of Tandem at a time, which it starts through a guard."""

    def __init__(self, home, gpus, save_s):
        self.home, self.gpus, self.save_s = home, gpus, save_s
        self.cluster = None  # the folder of the `tandem run` that runs here; None for an agent
        self.ended = None  # a future of the process's exit code

    def runs(self):
        return self.ended is not None and not self.ended.done()

    async def about(self):
        return {"host": socket.gethostname(), "address": ray.util.get_node_ip_address(),
                "node": ray.get_runtime_context().get_node_id(), "cluster": self.cluster if self.runs() else None}

    async def lacks(self, paths):
        """The first of these paths that this host does not see."""
        return next((path for path in paths if not os.path.exists(path)), None)

    async def start(self, words, last, log, folder, cluster=None):
        """Starts a process, which gets the signal `last` where its guard is killed. Asked twice, it starts one."""
        if self.runs():
            return
        open(log, "ab").close()
        self.printed = open(log, "rb")
        self.printed.seek(0, os.SEEK_END)
        self.program, self.cluster = words[0], cluster
        guard = subprocess.Popen([sys.executable, "-I", "-c", GUARD, str(int(last)), str(self.save_s), log, folder,
                                  *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                                 env=self.environment(), start_new_session=True)
        guard.wait()  # returns at once: the guard goes on as a grandchild
        self.to_guard, self.from_guard = guard.stdin, guard.stdout
        self.ended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(self.from_guard, self.take_end)

    def environment(self):
        """The environment of the Ray node, without Ray's own variables: an engine of the job may use Ray by itself."""
        variables = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        variables.pop("TANDEM_ADDRESS", None)
        variables["TANDEM_HOME"] = self.home
        if not self.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        return variables

    def take_end(self):
        code = os.read(self.from_guard.fileno(), 16)
        asyncio.get_running_loop().remove_reader(self.from_guard)
        self.from_guard.close()
        self.to_guard.close()
        self.ended.set_result(int(code) if code else KILLED)

    async def wait(self):
        """The exit code of the process; 128 and the number of the signal that ended it, as a shell has it."""
        return await asyncio.shield(self.ended)

    async def read(self):
        """What the process has printed since the last call, at least a byte; nothing when it has ended. It prints
        into a file, since a pipe to this worker would break while a run saves."""
        while True:
            over = not self.runs()
            text = self.printed.read(1 << 16)
            if text or over:
                return text
            await asyncio.wait([self.ended], timeout=LOOK_S)

    async def tell(self, number):
        if self.runs():
            os.write(self.to_guard.fileno(), bytes([number]))

    async def end(self):
        """Ends the process, and returns when it is gone."""
        for number in (signal.SIGINT, signal.SIGKILL):
            if self.runs():
                await self.tell(number)
                await asyncio.wait([self.ended], timeout=END_S)

    async def ask(self, words):
        """(exit code, stdout, stderr) of a command of tandem's that asks the run on this host."""
        try:
            with open(os.path.join(self.cluster or "", "controller.json"), encoding="utf-8") as file:
                address = json.load(file)["http"]
        except (OSError, ValueError, KeyError):
            return UNREACHABLE, b"", b"error[unreachable]: the job is starting\n  help: try again\n"
        environment = dict(self.environment(), TANDEM_ADDRESS=address)
        try:
            done = await asyncio.to_thread(subprocess.run, [self.program, *words], env=environment,
                                           stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_S)
        except subprocess.TimeoutExpired as late:
            return TIMED_OUT, late.stdout or b"", f"error[timed_out]: it took over {ASK_S} s\n".encode()
        return done.returncode, done.stdout, done.stderr


class Slot:
    """The place of one node: a bundle of Ray's and, while it lives, the actor in it."""

    def __init__(self, number):
        self.number = number
        self.group, self.bundle = None, 0  # of Ray's; None: not asked for yet
        self.host = None  # the actor; it waits for its bundle until `about` is there
        self.about = None

    async def call(self, method, *arguments):
        """The actor's answer. Raises Lost where the actor has ended."""
        host = self.host
        while True:
            try:
                return await getattr(host, method).remote(*arguments)
            except ray.exceptions.ActorUnavailableError:
                await asyncio.sleep(LOOK_S)  # Ray does not know yet whether it lives
            except ray.exceptions.RayActorError as gone:
                if self.host is host:
                    self.host = self.about = None
                raise Lost(str(gone)) from gone
            except ray.exceptions.RayTaskError as failed:
                raise Failure(FAILED, str(failed.cause), self.about["host"] if self.about else "") from failed


class Launch:
    """A job: its slots, and its starts one after the other."""

    def __init__(self, options, words, output):
        self.options, self.output = options, output
        self.words = (["--resume", options.resume] if options.resume else []) + words
        self.ports = ["--ports", options.ports] if options.ports else []
        self.least = options.min_nodes or options.nodes
        self.bundle = {"CPU": options.cpus_per_node or cpus_of_nodes(options.nodes), "GPU": options.gpus_per_node}
        self.folder = new_folder(pathlib.Path(options.home), options.name)
        self.log = f"{self.folder}.log"
        self.slots = [Slot(number) for number in range(options.nodes)]
        self.hosts = itertools.count(1)
        self.growing = asyncio.Lock()
        self.starts, self.told = 0, 0
        self.first = None  # the slot whose run can be told
        self.task = asyncio.current_task()

    def note(self, text):
        print(f"{self.folder.name}: {text}", file=sys.stderr, flush=True)

    def tell(self):
        """A signal: the first one lets the run save and end, the second one ends it at once."""
        self.told += 1
        if self.first is None:
            self.task.cancel()
            return
        late = self.options.save_s
        for seconds, number in (0, signal.SIGTERM), (late, signal.SIGTERM), (late + END_S, signal.SIGKILL):
            asyncio.ensure_future(self.tell_run(self.first, number, seconds))

    @staticmethod
    async def tell_run(slot, number, seconds):
        await asyncio.sleep(seconds)
        try:
            await slot.call("tell", number)
        except Lost:
            pass  # the one that waits for the run hears of it

    # The nodes.

    def ask_for_nodes(self):
        """The job begins with these, all at once; further ones are asked for one by one."""
        group = placement_group([self.bundle_of_ray()] * self.least, strategy="STRICT_SPREAD")
        for slot in self.slots[:self.least]:
            slot.group, slot.bundle = group, slot.number

    def bundle_of_ray(self):
        return {name: amount for name, amount in self.bundle.items() if amount}

    async def ready(self, slot):
        """Returns when the slot's actor has answered. Ray itself places a bundle anew whose node is lost."""
        while slot.about is None:
            if slot.host is None:
                slot.host = ray.remote(Host).options(
                    name=f"{self.folder.name}/{next(self.hosts)}", num_cpus=self.bundle["CPU"],
                    num_gpus=self.bundle["GPU"], max_restarts=0,
                    scheduling_strategy=PlacementGroupSchedulingStrategy(slot.group, slot.bundle)).remote(
                        self.options.home, self.bundle["GPU"], self.options.save_s)
            try:
                slot.about = await slot.call("about")
            except Lost:
                pass

    async def given(self, slot):
        """Returns when Ray has given the slot's node, and its actor has answered. A further node is to be none of
        those that the job has."""
        if slot.group is not None:
            await self.ready(slot)
            return
        async with self.growing:
            taken = ",".join(other.about["node"] for other in self.slots if other.about)
            slot.group = placement_group([self.bundle_of_ray()],
                                         bundle_label_selector=[{"ray.io/node-id": f"!in({taken})"}])
            await self.ready(slot)

    def lose(self, slot):
        """A further node is asked for anew: the job may have others by now than when it was asked for first."""
        if slot.number >= self.least and slot.group is not None:
            remove_placement_group(slot.group)
            slot.group = None

    async def have_nodes(self):
        """Returns when as many actors answer as the job begins with."""
        late = time.monotonic() + self.options.wait_s
        for slot in self.slots:
            slot.about = None  # one that has answered before may have died meanwhile
        while sum(slot.about is not None for slot in self.slots) < self.least:
            waits = [asyncio.ensure_future(self.ready(slot)) for slot in self.slots if slot.group and not slot.about]
            ended, others = await asyncio.wait(waits, timeout=max(0, late - time.monotonic()),
                                               return_when=asyncio.FIRST_COMPLETED)
            for wait in others:
                wait.cancel()
            for wait in ended:
                wait.result()
            if not ended:
                raise self.shortage()

    def shortage(self):
        asked = " and ".join(f"{amount:g} {name}" for name, amount in self.bundle_of_ray().items())
        large = sum(all(node["Resources"].get(name, 0) >= amount for name, amount in self.bundle_of_ray().items())
                    for node in nodes_alive())
        free = " and ".join(f"{ray.available_resources().get(name, 0):g} {name}" for name in self.bundle_of_ray())
        return Failure(INFEASIBLE, f"Ray has not given the nodes within {self.options.wait_s} s: {self.least} of "
                       f"{asked} each are asked for, and the cluster has {large} so large; {free} are free in all",
                       mend="ask for fewer or smaller ones, begin with fewer by --min-nodes, wait longer by --wait-s")

    def name_of(self, slot):
        """The name of a node for Tandem: that of the host, where no other node of Ray's has it or had it. An agent may
        live a while longer than its Ray node."""
        host, address, node = (slot.about[key] for key in ("host", "address", "node"))
        alike = sum(other["NodeManagerHostname"] == host for other in ray.nodes())
        name = host if alike == 1 else f"{address.replace(':', '-')}-{node[:6]}"
        shared = any(other is not slot and other.about and other.about["node"] == node for other in self.slots)
        return f"{name}-{slot.number}" if shared else name

    # One start of the job.

    def run_words(self, slot, cluster):
        again = ["--resume-linked"] if self.starts > 1 else []
        return [self.options.program, "run", *self.words, *again, *self.ports, "--link", str(self.folder / "run"),
                "--cluster", cluster, "--bind", slot.about["address"], "--node-name", self.name_of(slot),
                "--min-nodes", str(self.least), "--nodes", str(self.options.nodes)]

    async def start_process(self, slot, words, last, log, folder, cluster=None):
        lacking = await slot.call("lacks", [self.options.program, str(self.folder), folder])
        if lacking:
            raise Failure(FAILED, f"{slot.about['host']} does not see {lacking}", lacking,
                          "all hosts of the cluster need TANDEM_HOME, the binary and this folder at the same paths")
        await slot.call("start", words, last, log, folder, cluster)

    async def start_run(self, slot, cluster):
        await self.start_process(slot, self.run_words(slot, cluster), signal.SIGTERM, self.log, os.getcwd(), cluster)
        self.first = slot
        self.note(f"runs on {self.name_of(slot)}; start {self.starts}, output in {self.log}")

    async def have_agent(self, slot, cluster):
        try:
            await self.keep_agent(slot, cluster)
        except Failure as failure:  # the job may do without
            print(failure.text(), file=sys.stderr)

    async def keep_agent(self, slot, cluster):
        """Has an agent in the slot as long as the run needs it, wherever Ray gives the node."""
        failures, joined = 0, None
        while failures < STARTS_MAX:
            await self.given(slot)
            name, began = self.name_of(slot), time.monotonic()
            log = self.folder / f"{name}.log"
            words = [self.options.program, "node", "--cluster", cluster, "--name", name, "--cpus",
                     f"{self.bundle['CPU']:g}", *self.ports]
            try:
                await self.start_process(slot, words, signal.SIGINT, str(log), self.options.home)
                if name != joined:
                    self.note(f"{name} joins")
                joined = name
                code = await slot.call("wait")
                reason = f"its agent has ended with {code}; see {log}"
            except Lost:
                self.lose(slot)
                code, reason = None, "Ray has lost it; another one is asked for"
            if code == 0 or self.first is None:
                return
            if code == LOCKED:  # only the Ray worker of an agent was lost, whose actors are moving
                await asyncio.sleep(LOOK_AGAIN_S)
                continue
            self.note(f"{name}: {reason}")
            joined = None
            failures = failures + 1 if time.monotonic() - began < HEALTHY_S else 0
        self.note(f"the node is given up after {STARTS_MAX} starts in a row; the job goes on with the others")

    async def print_output(self, slot):
        while True:
            text = await slot.call("read")
            if not text:
                return
            self.output.buffer.write(text)
            self.output.flush()

    async def end_of_run(self, slot):
        code = await slot.call("wait")
        if code == LOCKED:
            raise Lost("the run before this one has not ended")
        if code > 128 and code != INTERRUPTED and not self.told:
            raise Lost(f"signal {code - 128} has ended the run")
        return code

    async def start(self):
        """One start; the exit code of `tandem run`. Raises Lost where the first node is lost, once that run has
        ended."""
        self.starts += 1
        await self.have_nodes()
        first, *others = sorted(self.slots, key=lambda slot: slot.about is None)
        cluster, tasks = str(self.folder / f"cluster-{self.starts}"), []
        try:
            await self.start_run(first, cluster)
            output = asyncio.ensure_future(self.print_output(first))
            tasks = [output, *(asyncio.ensure_future(self.have_agent(slot, cluster)) for slot in others)]
            code = await self.end_of_run(first)
            await asyncio.wait([output], timeout=END_S)
            return code
        except Lost:
            self.first = None
            await self.released()
            raise
        finally:
            self.first = None
            for task in tasks:
                task.cancel()
            await self.end_processes()

    async def end_processes(self):
        for ended in await asyncio.gather(*(slot.call("end") for slot in self.slots if slot.about),
                                          return_exceptions=True):
            if isinstance(ended, Exception) and not isinstance(ended, Lost):
                raise ended

    # The starts.

    def run_directory(self):
        link = self.folder / "run"
        return link.resolve() if link.is_symlink() else None

    def newest_checkpoint(self):
        run = self.run_directory()
        steps = [path.name[len("step-"):] for path in run.glob("checkpoints/step-*")] if run else []
        return max((int(step) for step in steps if step.isdigit()), default=-1)

    async def released(self):
        """Returns when no process of the run is left: on a host that only Ray has lost it saves before it ends."""
        late = time.monotonic() + max(RELEASE_S, self.options.save_s)
        while is_locked(self.log) and time.monotonic() < late:
            await asyncio.sleep(LOOK_S)

    async def run(self):
        self.note(f"asks Ray for {self.options.nodes} nodes, and begins with {self.least}")
        self.ask_for_nodes()
        in_vain = 0
        while True:
            before = self.newest_checkpoint()
            try:
                return await self.start()
            except Lost as lost:
                newest = self.newest_checkpoint()
                resume = f"`tandem ray submit --resume {self.run_directory()}` goes on"
                if self.told:
                    raise Failure(FAILED, "the first node was lost while the job was ending", str(lost), resume)
                in_vain = in_vain + 1 if newest <= before else 0
                if in_vain == STARTS_MAX:
                    raise Failure(FAILED, f"{STARTS_MAX} starts in a row have ended without a newer checkpoint than "
                                          f"that of step {newest}", self.log, resume)
                self.note(f"the first node is lost; the job is started anew from step {max(newest, 0)}")

    async def close(self):
        try:
            await self.end_processes()
        finally:
            for group in {slot.group for slot in self.slots if slot.group is not None}:
                remove_placement_group(group)
            for cluster in self.folder.glob("cluster-*"):
                shutil.rmtree(cluster, ignore_errors=True)


def nodes_alive():
    return [node for node in ray.nodes() if node["Alive"]]


def cpus_of_nodes(count):
    """The most CPUs that so many nodes have."""
    cpus = sorted((node["Resources"].get("CPU", 0) for node in nodes_alive()), reverse=True)
    return next((most for most in reversed(cpus[:count]) if most), 1)


def new_folder(home, name):
    """TANDEM_HOME/ray/NAME.NUMBER, which no job had before."""
    try:
        (home / "ray").mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = home / "ray" / f"{name}.{number}"
            try:
                folder.mkdir(mode=0o700)
                return folder
            except FileExistsError:
                pass
    except OSError as failure:
        raise Failure(FAILED, f"cannot make the job's folder: {failure.strerror}", failure.filename,
                      "set TANDEM_HOME to a folder that you can write, and that all hosts see") from failure


def is_locked(path):
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def connect(address):
    if ray is None:
        raise Failure(FAILED, "this Python has no Ray", sys.executable,
                      "install it there (`pip install ray`), in the version of the cluster")
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if "://" in address:
        raise Failure(UNREACHABLE, "a Ray cluster is reached from its hosts only, and not by Ray Client", address,
                      "run it there, or by `ray job submit`")
    try:
        host, _, port = address.rpartition(":")
        if port.isdigit():  # Ray itself tries for a quarter of an hour
            socket.create_connection((host, int(port)), timeout=ANSWER_S).close()
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except (RuntimeError, ValueError, OSError, ray.exceptions.RayError) as failure:
        why = getattr(failure, "strerror", None) or str(failure).strip().partition("\n")[0]
        raise Failure(UNREACHABLE, f"no Ray cluster is reached: {why}", address,
                      "`ray start` starts one; --address HOST:PORT names one on another host") from failure
    if __name__ != "__main__":
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other hosts need not have this file


async def submit(options, words, output):
    launch = Launch(options, words, output)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, launch.tell)
    try:
        return await launch.run()
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        await launch.close()


def actor_called(name):
    """None where it has ended."""
    try:
        return ray.get_actor(name)
    except ValueError:
        return None


def answers(names):
    """What the actors of these names tell about themselves in time, by name."""
    asked = {actor.about.remote(): name for name in names if (actor := actor_called(name))}
    ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ANSWER_S) if asked else ([], [])
    found = {}
    for answer in ready:
        try:
            found[asked[answer]] = ray.get(answer)
        except ray.exceptions.RayActorError:
            pass  # it has ended meanwhile
    return found


def live_jobs():
    """By job: what its actors tell."""
    jobs = {}
    for name, about in answers(ray.util.list_named_actors()).items():
        jobs.setdefault(name.rpartition("/")[0], {})[name] = about
    return jobs


def list_jobs(options, words, output):
    jobs = live_jobs()
    rows = [("JOB", "NODES", "FIRST NODE", "FOLDER")] if jobs else []
    for job, hosts in sorted(jobs.items()):
        first = next((about for about in hosts.values() if about["cluster"]), None)
        rows.append((job, str(len(hosts)), first["host"] + " " + first["address"] if first else "-",
                     os.path.dirname(first["cluster"]) if first else "-"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip(), file=output)
    if not jobs:
        print("no job of Tandem runs on this Ray cluster", file=sys.stderr)
    return 0


def execute(options, words, output):
    jobs = live_jobs()
    named = [job for job in jobs if options.name in (job, job.rpartition(".")[0])]
    if not named:
        raise Failure(NOT_FOUND, f"no live job is called {options.name}", ", ".join(sorted(jobs)),
                      "`tandem ray list` lists them")
    newest = max(named, key=lambda job: int(job.rpartition(".")[2]))
    first = next((name for name, about in jobs[newest].items() if about["cluster"]), None)
    actor = actor_called(first) if first else None
    if actor is None:
        raise Failure(UNREACHABLE, f"{newest} is waiting for nodes, or starting", mend="try again")
    try:
        code, out, err = ray.get(actor.ask.remote(words))
    except ray.exceptions.RayActorError as gone:
        raise Failure(UNREACHABLE, f"{newest} has ended, or has lost its first node", mend="try again") from gone
    output.buffer.write(out)
    sys.stderr.buffer.write(err)
    return code


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def parse(arguments):
    parser = argparse.ArgumentParser(prog="tandem_launch.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    submits = actions.add_parser("submit")
    for option in ("--program", "--home", "--name"):
        submits.add_argument(option, required=True)
    submits.add_argument("--nodes", type=positive, required=True)
    submits.add_argument("--min-nodes", type=positive)
    submits.add_argument("--cpus-per-node", type=float)
    submits.add_argument("--gpus-per-node", type=float, default=0)
    submits.add_argument("--ports", help="where hosts listen for each other, as 7420-7499")
    submits.add_argument("--resume")
    submits.add_argument("--wait-s", type=positive, default=WAIT_S, help="how long to wait for nodes")
    submits.add_argument("--save-s", type=positive, default=SAVE_S, help="how long the job may take to save at its end")
    executes = actions.add_parser("exec")
    executes.add_argument("--name", required=True)
    for action in (submits, executes, actions.add_parser("list")):
        action.add_argument("--address", default="auto")
    options = parser.parse_args(arguments)
    if options.action == "submit" and (options.min_nodes or 1) > options.nodes:
        parser.error("--min-nodes is more than --nodes: the job would never begin")
    return options


def main():
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, words = parse(sys.argv[1:end]), sys.argv[end + 1:]
    output, sys.stdout = sys.stdout, sys.stderr  # Ray prints what becomes of its nodes
    try:
        connect(options.address)
        if options.action == "submit":
            return asyncio.run(submit(options, words, output))
        return {"exec": execute, "list": list_jobs}[options.action](options, words, output)
    except Failure as failure:
        print(failure.text(), file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
