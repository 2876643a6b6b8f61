"""A client of Tandem's HTTP API: jobs, actors, runs, metrics and samples from Python.

    from tandem_client import Tandem

    tandem = Tandem()                        # the controller of TANDEM_HOME, or of TANDEM_ADDRESS
    job = tandem.submit("configs/arithmetic.yaml")
    for step in job.metrics(follow=True):    # one dict for each step, as it is trained
        print(step["step"], step.get("critic/rewards/mean"))
    print(job.wait()["state"])               # "Succeeded"

One file without dependencies, for Python 3.9 and later; it may be copied beside your own code. Paths,
objects and errors of the API are described in docs/design/contract.md. All calls block, and every
wait has a bound: `timeout` is the longest silence of the server, in seconds. An object may be used
by several threads, since each call opens a connection of its own.
"""

from __future__ import annotations

import http.client
import importlib
import json
import math
import os
import pathlib
import re
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

__all__ = ["Tandem", "Job", "Run", "TandemError"]
__version__ = "0.1.0"

Json = Any
Object = Dict[str, Any]

FINAL_STATES = ("Succeeded", "Failed", "Cancelled")
_POINTS_MAX = 5000  # steps that one question about metrics may be answered for
_ANSWER_BYTES_MAX = 256 << 20
_RESTART_SECONDS, _RESTART_PAUSE, _RESTART_PAUSE_MAX = 15.0, 0.1, 1.0
_LEAST_TIMEOUT = 1.0  # of a request, also where the time of a wait is nearly over


class TandemError(Exception):
    """What the API answered instead: `code` and `help` as docs/reasons.md has them, `status` of HTTP.

    `code` is "unreachable" where there was no answer at all. A job file may have several faults: this
    describes the first one, and `others` has one dict for each further one, with `message`, `help` and
    `where`.
    """

    def __init__(self, message: str, code: str, help: str = "", where: str = "", status: int = 0,
                 others: Sequence[Mapping[str, str]] = ()):
        super().__init__(message)
        self.message, self.code, self.help, self.where, self.status = message, code, help, where, status
        self.others = [dict(one) for one in others]

    def __str__(self) -> str:
        first = {"message": self.message, "help": self.help, "where": self.where}
        text = ""
        for one in [first] + self.others:
            place, help = one.get("where"), one.get("help")
            text += ("\n" if text else "") + (place + ": " if place else "") + one["message"]
            text += "\nhelp: " + help if help else ""
        return text


def _home(home: Union[str, os.PathLike[str], None]) -> pathlib.Path:
    return pathlib.Path(home or os.environ.get("TANDEM_HOME") or "~/.tandem").expanduser()


def _read(path: pathlib.Path, help: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TandemError(f"cannot read {path}: {error.strerror}", "unreachable", help) from error


def _address_in(folder: pathlib.Path, help: str) -> str:
    try:
        return str(json.loads(_read(folder / "controller.json", help))["http"])
    except (ValueError, KeyError, TypeError) as error:
        raise TandemError(f"{folder / 'controller.json'} has no address", "unreachable", help) from error


class Tandem:
    """A running controller.

    Without arguments it is the one that `tandem up` started with the same TANDEM_HOME, whose address
    and token are read from there. `address` is "HOST:PORT" or "http://HOST:PORT"; TANDEM_ADDRESS stands
    in for it, as in the command line. `token` is the text of TANDEM_HOME/token.

    A node starts a controller that has died again. What only reads waits for it, up to 15 seconds, once it has
    answered this object; what changes anything (submit, scale, cancel, ask …) is sent once, and raises TandemError
    instead, since it may have been done.
    """

    def __init__(self, address: Optional[str] = None, token: Optional[str] = None,
                 home: Union[str, os.PathLike[str], None] = None, timeout: float = 30):
        self.timeout = float(timeout)
        if not (0 < self.timeout < math.inf):
            raise ValueError(f"timeout is a number of seconds above 0, not {timeout!r}")
        folder = _home(home)
        start = "is a controller running? `tandem up` starts one"
        address = address or os.environ.get("TANDEM_ADDRESS")
        self._folder = None if address else folder  # where a controller that is started again says its address
        self.address = _address(address or _address_in(folder, start))
        self._answered = False
        self._token = (token if token is not None else _read(folder / "token", start)).strip()
        if not self._token.isprintable():
            raise ValueError("the token has a character that no token has")

    # -- the cluster

    def status(self) -> Object:
        """Version, epoch, addresses, and how many nodes, jobs and runs there are."""
        return self._object("status")

    def nodes(self) -> List[Object]:
        return self._list("nodes")

    def actors(self, job: Optional[str] = None) -> List[Object]:
        """The actors of all jobs, or of one, by its id or its name."""
        if job is None:
            return self._list("actors")
        id = self._id(job)
        return [actor for actor in self._list("actors") if actor["job"] == id]

    def actor(self, name: str) -> Object:
        """An actor by its full name, "JOB/rollout/0", whose JOB is an id or a name."""
        return self._object("actors", self._actor(name))

    def groups(self) -> List[Object]:
        """The groups that are under way."""
        return self._list("groups")

    def wait_graph(self, job: Optional[str] = None) -> Object:
        """Who waits for whom, as `nodes` and `edges`."""
        return self._object("wait_graph", query={"job": job and self._id(job)})

    def events(self, job: Optional[str] = None, since: Optional[int] = None,
               limit: Optional[int] = None) -> List[Object]:
        """Events, oldest first; `since` is the `seq` of the last one that you have."""
        return self._list("events", query={"job": job and self._id(job), "since": since, "limit": limit})

    def ask(self, actor: str, question: Mapping[str, Any], timeout: int = 10) -> Json:
        """Asks an actor of the section `actors`, at most once, and returns its answer."""
        return self._call("POST", ("actors", self._actor(actor), "ask"), {"timeout_s": int(timeout)},
                          json.dumps(dict(question)), wait=int(timeout) + self.timeout)

    def logs(self, actor: str, tail: Optional[int] = None, previous: bool = False) -> str:
        """The log of an actor: of its present life, or of the one before."""
        text: str = self._call("GET", ("actors", self._actor(actor), "logs"),
                               {"tail": tail, "previous": int(previous) or None}, text=True)
        return text

    # -- jobs

    def submit(self, job: Union[str, os.PathLike[str], Mapping[str, Any]], resume: Optional[str] = None) -> "Job":
        """Submits a job: the path of a job file, its text, or the same as a dict.

        Its relative paths start at the folder of the file, or for a text or dict at the present one;
        the controller reads them on its own machine. `resume` is the run that goes on. Raises
        TandemError, code "invalid", for a job that is not accepted.
        """
        text, folder = _job_text(job)
        return Job(self, self._call("POST", ("jobs",), {"resume": resume, "folder": str(folder)}, text))

    def jobs(self) -> List["Job"]:
        return [Job(self, one) for one in self._list("jobs")]

    def job(self, id: str) -> "Job":
        """A job by its id, or by its name where one job has it; of several the one that has not ended."""
        return Job(self, self._object("jobs", self._id(id, runs=False)))

    # -- runs, also those that have ended

    def runs(self) -> List["Run"]:
        """The runs below TANDEM_HOME/runs, newest first."""
        return [Run(self, one) for one in self._list("runs")]

    def run(self, id: str) -> "Run":
        """A run by its id, or by the name of its job, as job() takes it."""
        return Run(self, self._object("runs", self._id(id)))

    # -- names

    def _id(self, wanted: str, runs: bool = True) -> str:
        """The id that a name means, as the command line takes it; with `runs` also of past runs."""
        found: Dict[str, Object] = {}
        for kind in ("jobs", "runs") if runs else ("jobs",):
            for one in self._list(kind):
                found.setdefault(one["id"], one)  # a job of this controller says more than its run
            if wanted in found:
                return wanted
        named = {id: one for id, one in found.items() if one.get("name") == wanted}
        alive = [id for id, one in named.items() if one.get("state") not in FINAL_STATES]
        ids = alive or list(named)
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise TandemError(f"the name `{wanted}` is not unique", "invalid", "use an id: " + ", ".join(ids))
        kind = "run" if runs else "job"
        raise TandemError(f"no {kind} `{wanted}`", "not_found", f"`tandem get {kind}s` lists them",
                          status=404)

    def _actor(self, name: str) -> str:
        """The full name of an actor whose first part may be a job's name."""
        job, slash, rest = name.partition("/")
        return self._id(job) + slash + rest if "/" in rest else name

    # -- the wire

    def _object(self, *path: str, query: Optional[Mapping[str, Any]] = None,
                until: Optional[float] = None) -> Object:
        answer = self._call("GET", path, query, until=until)
        if not isinstance(answer, dict):
            raise TandemError(f"{self.address} did not answer /{'/'.join(path)} with an object", "invalid",
                              "is it of another version?")
        return answer

    def _list(self, *path: str, query: Optional[Mapping[str, Any]] = None) -> List[Object]:
        answer = self._call("GET", path, query)
        if not isinstance(answer, list):
            raise TandemError(f"{self.address} did not answer /{'/'.join(path)} with a list", "invalid",
                              "is it of another version?")
        return answer

    def _call(self, method: str, path: Sequence[str], query: Optional[Mapping[str, Any]] = None,
              body: Optional[str] = None, text: bool = False, wait: Optional[float] = None,
              until: Optional[float] = None) -> Json:
        # `until`: a time.monotonic() that bounds the request and the wait for a controller.
        # The name of an actor has slashes of its own, which are part of the path.
        target = "/api/v1/" + "/".join(urllib.parse.quote(part, safe="/") for part in path)
        given = {key: value for key, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urllib.parse.urlencode(given)
        give_up = None
        while True:
            timeout = wait or self.timeout
            if until is not None:
                timeout = min(timeout, max(_LEAST_TIMEOUT, until - time.monotonic()))
            try:
                answer = self._answer_of(method, target, body, text, timeout)
                self._answered = True
                return answer
            except TandemError as error:
                self._answered = self._answered or error.status != 0
                lost = error.code == "unreachable" and error.status == 0
                if not (lost and method == "GET" and self._answered):
                    raise
                if give_up is None:
                    give_up = time.monotonic() + _RESTART_SECONDS
                    give_up = give_up if until is None else min(give_up, until)
                if not self._is_back(give_up):
                    raise

    def _is_back(self, give_up: float) -> bool:
        """Whether a controller runs again before `give_up`, which is then asked: no other program gets the token."""
        pause = _RESTART_PAUSE
        while time.monotonic() < give_up:
            time.sleep(max(0.0, min(pause, give_up - time.monotonic())))
            if self._folder is None:
                if self._is_ready(max(_LEAST_TIMEOUT, give_up - time.monotonic())):
                    return True
                pause = min(2 * pause, _RESTART_PAUSE_MAX)
                continue
            try:
                told = json.loads((self._folder / "controller.json").read_text(encoding="utf-8"))
                os.kill(int(told["pid"]), 0)
                self.address = _address(str(told["http"]))
                return True
            except (OSError, ValueError, KeyError, TypeError):
                continue  # it has died, or has not said its address yet
        return False

    def _is_ready(self, timeout: float) -> bool:
        """Whether a controller listens at the address that was given; asked without the token."""
        connection = http.client.HTTPConnection(self.address, timeout=min(timeout, self.timeout))
        try:
            connection.request("GET", "/readyz", headers={"Connection": "close"})
            answer = connection.getresponse()
            return answer.status == 200 and answer.read(16) == b"ready\n"
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _answer_of(self, method: str, target: str, body: Optional[str], text: bool, timeout: float) -> Json:
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            connection.request(method, target, None if body is None else body.encode("utf-8"),
                               {"Authorization": "Bearer " + self._token, "Connection": "close"})
            answer = connection.getresponse()
            data = answer.read(_ANSWER_BYTES_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise TandemError(f"no answer from {self.address}: {error or type(error).__name__}", "unreachable",
                              "is the controller running? `tandem status` says so") from error
        finally:
            connection.close()
        if len(data) > _ANSWER_BYTES_MAX:
            raise TandemError(f"the answer has more than {_ANSWER_BYTES_MAX >> 20} MiB", "invalid",
                              "ask for less of it")
        if answer.status >= 400:
            raise _error_of(answer.status, data)
        if text:
            return data.decode("utf-8", "replace")
        try:
            return json.loads(data)
        except ValueError as error:
            raise TandemError(f"{self.address} did not answer with JSON", "invalid",
                              "is that the address of a Tandem controller?", status=answer.status) from error

    def __repr__(self) -> str:
        return f"Tandem({self.address!r})"


class _Named(Mapping[str, Json]):
    """An object of the API with a name: a mapping of its fields as they were last read.

    Two of them are equal where they are the same one, since their fields change.
    """

    def __init__(self, tandem: Tandem, fields: Object):
        self._tandem = tandem
        self.fields = fields
        self.id: str = fields["id"]

    def __getitem__(self, key: str) -> Json:
        return self.fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, state={self.get('state')!r})"


class Run(_Named):
    """A run directory: what a job left or leaves there."""

    def refresh(self) -> "Run":
        self.fields = self._tandem._object("runs", self.id)
        return self

    @property
    def live(self) -> bool:
        return bool(self.get("live"))

    def config(self) -> Dict[str, str]:
        """The effective job file: each key, as `learner.optimizer.lr`, with its value as YAML."""
        rows = self._tandem._object("runs", self.id, "config")["config"]
        return {row["key"]: row["value"] for row in rows}

    def metric_keys(self) -> List[str]:
        return list(self._metrics({})["keys"])

    def metrics(self, keys: Union[str, Sequence[str], None] = None, first: Optional[int] = None,
                last: Optional[int] = None, follow: bool = False, every: float = 1.0) -> Iterator[Object]:
        """One dict per step, {"step": 3, "actor/loss": 0.1, …}, oldest first, without unknown values.

        `keys` are names or patterns, as of `tandem metrics --keys`: `*` stands for any characters, `?`
        for one. Where the run has figures and none of them is meant, TandemError "not_found" is raised at
        the end. `first` and `last` bound the steps, both included. Step -1 has the evaluation before a
        warm start. With `follow` it waits, asking `every` so many seconds, until the run has ended.
        """
        at = first
        while True:
            live = self.refresh().live if follow else False
            about = self._metrics({})
            wanted = self._matching(keys, about["keys"])
            if about["complete"] and about["step_max"] is not None:
                begin = about["step_min"] if at is None else max(at, about["step_min"])
                end = about["step_max"] if last is None else min(last, about["step_max"])
                # Evaluations are recorded after their step, so that the newest step is not whole yet.
                if live and (last is None or end < last):
                    end -= 1
                for line in self._steps(wanted, begin, end):
                    yield line
                at = max(begin, end + 1)
                if last is not None and at > last:
                    break
            if not live and about["complete"]:
                break
            time.sleep(every)
        if keys and about["keys"] and not wanted:
            raise self._no_such_figures(keys, about["keys"])

    def frame(self, keys: Union[str, Sequence[str], None] = None) -> Any:
        """The metrics as a pandas.DataFrame whose index is the step; needs pandas. `keys` as of metrics()."""
        pandas = importlib.import_module("pandas")  # only here, since the rest does without

        rows = list(self.metrics(keys))
        return pandas.DataFrame(rows, columns=["step"] + sorted(set().union(*rows) - {"step"} if rows else [])
                                ).set_index("step")

    def samples(self, step: Optional[int] = None, limit: int = 64, evaluation: Union[bool, str, None] = None,
                failed: bool = False, before: Optional[int] = None) -> List[Object]:
        """Prompts and completions, newest first. `evaluation`: True for those of evaluations alone, "any"
        for all; `before` is the `seq` of the oldest one that you have."""
        wanted = evaluation if isinstance(evaluation, str) else 1 if evaluation else None
        return self._tandem._list("runs", self.id, "samples", query={
            "step": step, "limit": limit, "eval": wanted, "failed": 1 if failed else None, "before": before})

    def events(self) -> List[Object]:
        return self._tandem._list("runs", self.id, "events")

    def delete(self) -> None:
        """Removes the directory of a run that has ended."""
        self._tandem._call("DELETE", ("runs", self.id))

    def _metrics(self, query: Mapping[str, Any]) -> Object:
        return self._tandem._object("runs", self.id, "metrics", query=query)

    @staticmethod
    def _matching(keys: Union[str, Sequence[str], None], known: Sequence[str]) -> List[str]:
        """Those of the known keys that are meant, in the order of the run."""
        if keys is None:
            return list(known)
        patterns = [_pattern(key) for key in ([keys] if isinstance(keys, str) else keys)]
        return [key for key in known if any(pattern.fullmatch(key) for pattern in patterns)]

    def _no_such_figures(self, keys: Union[str, Sequence[str], None], known: Sequence[str]) -> TandemError:
        asked = keys if isinstance(keys, str) else ", ".join(keys or ())
        some = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
        return TandemError(f"{self.id} has no figures `{asked}`", "not_found",
                           f"metric_keys() lists those that it has: {some}")

    def _steps(self, keys: List[str], first: int, last: int) -> Iterator[Object]:
        # A range of no more steps than buckets has one step in each: the mean is the value.
        for begin in range(first, last + 1, _POINTS_MAX):
            end = min(last, begin + _POINTS_MAX - 1)
            rows: Dict[int, Object] = {step: {"step": step} for step in range(begin, end + 1)}
            for some in range(0, len(keys), 32):  # keys, so that an address does not become too long
                answer = self._metrics({"keys": ",".join(keys[some:some + 32]), "from": begin, "to": end,
                                        "points": _POINTS_MAX})
                for key, series in answer["series"].items():
                    for step, value in zip(series["steps"], series["mean"]):
                        if value is not None and step in rows:
                            rows[step][key] = value
            for row in rows.values():
                if len(row) > 1:
                    yield row


class Job(_Named):
    """A job of the cluster. Its run has the same id."""

    @property
    def state(self) -> str:
        return str(self.fields["state"])

    @property
    def done(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def warnings(self) -> List[str]:
        """What submit() was told beside the id."""
        return list(self.get("warnings") or [])

    @property
    def run(self) -> Run:
        return Run(self._tandem, self._tandem._object("runs", self.id))

    def refresh(self) -> "Job":
        return self._refresh(None)

    def _refresh(self, until: Optional[float]) -> "Job":
        self.fields = self._tandem._object("jobs", self.id, until=until)
        return self

    def wait(self, timeout: Optional[float] = None, every: float = 0.5) -> "Job":
        """Waits until the job has ended, whatever its state is then; raises TimeoutError after `timeout`.

        A wait for a controller that is started again is part of the time.
        """
        until = None if timeout is None else time.monotonic() + timeout
        try:
            while not self._refresh(until).done:
                if until is not None and time.monotonic() >= until:
                    raise TimeoutError(f"{self.id} is {self.state} after {timeout} s")
                time.sleep(every)
        except TandemError as error:
            if until is None or time.monotonic() < until or (error.code, error.status) != ("unreachable", 0):
                raise
            raise TimeoutError(f"{self.id} was {self.state}, and no controller answers after {timeout} s") from error
        return self

    def scale(self, **replicas: int) -> "Job":
        """Changes how many actors a role has: `job.scale(rollout=4)`."""
        self._tandem._call("POST", ("jobs", self.id, "scale"), body=json.dumps(replicas))
        return self.refresh()

    def cancel(self) -> "Job":
        self._tandem._call("POST", ("jobs", self.id, "cancel"))
        return self.refresh()

    def actors(self) -> List[Object]:
        return self._tandem.actors(self.id)

    def metrics(self, keys: Union[str, Sequence[str], None] = None, **options: Any) -> Iterator[Object]:
        """As Run.metrics()."""
        return self.run.metrics(keys, **options)

    def frame(self, keys: Union[str, Sequence[str], None] = None) -> Any:
        return self.run.frame(keys)

    def samples(self, **options: Any) -> List[Object]:
        return self.run.samples(**options)


def _pattern(glob: str) -> "re.Pattern[str]":
    """`*` and `?` stand for characters, slashes among them, as in `tandem metrics --keys`."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(letter) or re.escape(letter) for letter in glob), re.DOTALL)


def _address(text: str) -> str:
    """HOST:PORT of an address as people write it."""
    parsed = urllib.parse.urlsplit(text if "//" in text else "//" + text)
    try:
        port = parsed.port
    except ValueError:
        port = None
    if parsed.scheme not in ("", "http") or not parsed.hostname or not port:
        raise ValueError(f"an address is HOST:PORT or http://HOST:PORT, not {text!r}")
    host = parsed.hostname
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _job_text(job: Union[str, os.PathLike[str], Mapping[str, Any]]) -> Tuple[str, pathlib.Path]:
    """The text of a job, and the folder at which its relative paths start."""
    if isinstance(job, Mapping):
        return json.dumps(dict(job)), pathlib.Path.cwd()  # JSON is YAML
    if isinstance(job, str) and "\n" in job:
        return job, pathlib.Path.cwd()
    path = pathlib.Path(job).expanduser().absolute()
    try:
        return path.read_text(encoding="utf-8"), path.parent
    except OSError as error:
        raise TandemError(f"cannot read the job file {path}: {error.strerror}", "invalid",
                          "give a path, the text of a job file, or a dict") from error


def _error_of(status: int, data: bytes) -> TandemError:
    try:
        error = json.loads(data)["error"]
        return TandemError(str(error["message"]), str(error["code"]), str(error.get("help", "")),
                           str(error.get("where", "")), status, error.get("errors", ()))
    except (ValueError, KeyError, TypeError):
        return TandemError(f"HTTP {status} without a reason", "failed", status=status)
