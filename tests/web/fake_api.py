#!/usr/bin/env python3
"""Serves the web page and made data in the shape of the HTTP API: usage: fake_api.py [--port N]

For looking at the page while changing it, and for its test. The data: 50 actors, a live run with
100,000 steps of history that goes on, ended runs to compare it with, a job of actors alone, one in its
warm start, and texts that try to escape from where they are shown. Counts the bytes that it sends.
"""
import argparse
import functools
import hashlib
import http.server
import json
import math
import os
import pathlib
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "actors/api/web"))
import embed  # noqa: E402

KEY = "one-time-key"
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
HISTORY = 100_000
LIVE = "arithmetic-grpo-7"
HOSTILE = ("<img src=x onerror=\"document.title='PWNED'\"><script>document.title='PWNED'</script> "
           "\x1b[31mred\x1b[0m \u202egnp.exe\u202c \x07 end")
TOTAL = 150_000
WARM, SERVICE = "warm-1", "counter-demo-2"
BUCKET_LOOKS = 24  # at most so many steps of a bucket are looked at


@functools.lru_cache(maxsize=None)
def seed_of(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def noise(key, step):
    x = (step * 2654435761 ^ seed_of(key)) & 0xffffffff
    x ^= x >> 16
    x = x * 0x45d9f3b & 0xffffffff
    return ((x >> 8) & 0xffff) / 65536 - 0.5


def grown(step, half, top):
    return top * step / (step + half)


SERIES = {  # key -> value(noise, step, speed of the run)
    "critic/rewards/mean": lambda n, s, v: 0.3 + grown(s * v, 9000, 0.68) + 0.12 * n,
    "val/reward/mean": lambda n, s, v: 0.31 + grown(s // 500 * 500 * v, 9500, 0.66),
    "tandem/staleness/max": lambda n, s, v: 2 if n > -0.3 else 1,
    "tandem/staleness/p99": lambda n, s, v: 2 if n > 0.2 else 1,
    "tandem/staleness/p50": lambda n, s, v: 1 if n > 0.1 else 0,
    "actor/ppo_kl": lambda n, s, v: 2.5e-4 * (1.4 + math.sin(s / 4000) + n),
    "actor/entropy": lambda n, s, v: 1.9 / (1 + s * v / 22000) + 0.08 * n,
    "tandem/tokens_generated_per_s": lambda n, s, v: 21000 * v + 3000 * n,
    "perf/throughput": lambda n, s, v: 19500 * v + 2500 * n,
    "tandem/trainer_idle_fraction": lambda n, s, v: 0.12 + 0.06 * n + 0.05 * math.sin(s / 9000),
    "tandem/recent/trainer_idle_fraction": lambda n, s, v: 0.2 + 0.1 * math.sin(s / 3000),
    "tandem/predicted/trainer_idle_fraction": lambda n, s, v: 0.18,
    "tandem/rollout_idle_fraction": lambda n, s, v: 0.07 + 0.05 * n,
    "tandem/oldest_sample_age_steps": lambda n, s, v: 1 + (n > 0.3),
    "tandem/queue_depth": lambda n, s, v: round(96 + 60 * n),
    "tandem/wall_seconds": lambda n, s, v: s * 0.41 / v,
    "actor/loss": lambda n, s, v: 0.02 * n,
    "actor/grad_norm": lambda n, s, v: 0.8 + 0.4 * n,
    "actor/lr": lambda n, s, v: 1e-3 * (1 - s / TOTAL),
    "response_length/mean": lambda n, s, v: 28 + 6 * n,
    "response_length/max": lambda n, s, v: 64,
    "timing_s/step": lambda n, s, v: 0.41 / v + 0.05 * n,
    "tandem/ledger/live": lambda n, s, v: round(190 + 60 * n),
}


class Run:
    def __init__(self, name, state, steps, speed, created, message="", trains=True):
        self.name, self.state, self.first, self.speed = name, state, steps, speed
        self.trains = trains
        self.created, self.message = created, message
        self.started = time.time()
        self.rollouts, self.autoscaled = 48, True

    @property
    def live(self):
        return self.state in ("Running", "WarmStart")

    @property
    def step(self):
        return self.first + (int((time.time() - self.started) * 5) if self.state == "Running"
                             and self.trains else 0)

    def value(self, key, step):
        return SERIES[key](noise(self.name + key, step), step, self.speed)

    def series(self, key, first, last, points):
        width = max(1, math.ceil((last - first + 1) / points))
        out = {"steps": [], "min": [], "max": [], "mean": []}
        for begin in range(first, last + 1, width):
            end = min(begin + width, last + 1)
            stride = max(1, (end - begin) // BUCKET_LOOKS)
            values = [self.value(key, step) for step in range(begin, end, stride)]
            out["steps"].append(begin)
            out["min"].append(round(min(values), 6))
            out["max"].append(round(max(values), 6))
            out["mean"].append(round(sum(values) / len(values), 6))
        return out


class World:
    def __init__(self, empty=False):
        now = int(time.time() * 1000)
        self.scales, self.cancels = [], []
        self.alerts = []  # as /api/v1/status has them
        runs = [] if empty else [
            Run(LIVE, "Running", HISTORY, 1.0, now - 41_000_000),
            Run("arithmetic-grpo-6", "Succeeded", 100_000, 0.72, now - 90_000_000),
            Run("staleness-8", "Failed", 61_200, 0.55, now - 190_000_000,
                "learner/0: out of memory: killed at 61.8 GiB, the second time in a row"),
            Run("arithmetic-grpo-5", "Cancelled", 23_456, 0.9, now - 260_000_000, "by a user"),
            Run(WARM, "WarmStart", 0, 1.0, now - 42_000_000),
            Run(SERVICE, "Running", 0, 1.0, now - 43_000_000, trains=False),
            Run("seeds-3", "Succeeded", 9_000, 0.6, now - 300_000_000),
            Run("seeds-2", "Succeeded", 9_000, 0.5, now - 301_000_000),
            Run("seeds-1", "Failed", 4_000, 0.55, now - 302_000_000, "by a user"),
            *(Run(f"rates-{n}", "Succeeded", 6_000, 0.5 + n / 20, now - 310_000_000 - n)
              for n in (4, 3, 2, 1)),
            Run("hostile-" + HOSTILE[:24], "Interrupted", 900, 1.1, now - 400_000_000, HOSTILE),
        ]
        self.runs = {run.name: run for run in runs}
        self.events = [self.event(i) for i in range(1, 301)] if runs else []

    def event(self, number):
        kinds = [("run", LIVE, "evaluated final=0.913 scored=800 failed=0", "info"),
                 ("actor", f"{LIVE}/reward/0", "exit status 1: " + HOSTILE, "warning"),
                 ("job", LIVE, "scale rollout=48", "info"),
                 ("node", "node-3", "its power is off", "error")]
        kind, subject, message, level = kinds[number % 4 if number % 9 else 1]
        return {"seq": number, "time": int(time.time() * 1000) - (300 - number) * 47_000,
                "kind": kind, "subject": subject, "message": message, "level": level}

    def run_json(self, run):
        ended = None if run.live else run.created + int(run.first * 410 / run.speed)
        return {"id": run.name, "name": run.name.rsplit("-", 1)[0], "state": run.state,
                "reason": "" if run.live or run.state == "Succeeded" else "ActorFailed",
                "message": run.message, "step": run.step, "trains": run.trains,
                "total_steps": TOTAL if run.live else 100_000,
                "created": run.created, "started": run.created + 900, "ended": ended,
                "reward_mean": run.value("critic/rewards/mean", run.step),
                "eval_final": run.value("val/reward/mean", run.step),
                "staleness": None if run.live else {"bound": 2, "max": 1, "mean": 0.4},
                "trainer_idle_fraction": None if run.live else 0.237,
                "rollout_idle_fraction": None if run.live else 0.051,
                "cost": None if run.live else {
                    "goodput_tokens_per_device_second": 1204.6,
                    "device_seconds": {"rollout": 7200.0, "learner": 1800.0}},
                "wall_seconds": run.step * 0.41 / run.speed,
                "run_dir": "/home/user/.tandem/runs/" + run.name, "live": run.live,
                **self.labels(run)}

    @staticmethod
    def labels(run):
        if run.name.startswith("hostile"):
            return {"run_name": HOSTILE, "group": HOSTILE, "tags": [HOSTILE], "notes": HOSTILE}
        if run.name.startswith("rates"):
            return {"run_name": "", "group": "rates-sweep", "tags": [], "notes": ""}
        if not run.name.startswith("seeds"):
            return {"run_name": "", "group": "", "tags": [], "notes": ""}
        return {"run_name": "seeds seed=" + run.name[-1], "group": "seeds-sweep",
                "tags": ["small", "cpu"], "notes": "how much seeds differ"}

    def jobs(self):
        return [self.job(run) for run in self.runs.values() if run.live]

    @staticmethod
    def config(run):
        """The keys of its job file; two runs differ in a rate, a seed and a key that one lacks. Those
        of the group seeds-sweep differ in the seed alone, those of rates-sweep in two rates as well."""
        number = seed_of(run.name) % 1000
        rate = {"seeds": 0.001, "rates": 0.001 if run.name < "rates-3" else 0.003}.get(
            run.name.split("-")[0], 0.001 * run.speed)
        keys = {"name": run.name.rsplit("-", 1)[0], "seed": number,
                "model.path": "models/tiny", "rollout.n": 8, "async.max_staleness": 2,
                "learner.optimizer.lr": rate, "reward.command": f'["{HOSTILE}"]'}
        if run.name.startswith(("seeds", "rates")):
            keys["tracking.run_name"] = run.name
        if run.name == "arithmetic-grpo-6":
            keys["algorithm.kl_coef"] = 0.05
        return [{"key": key, "value": str(value)} for key, value in keys.items()]

    def job(self, run):
        if not run.trains:
            return self.service(run)
        job = self.training(run)
        if run.state == "WarmStart":
            job["warm_start"] = {"step": 120, "max_steps": 500, "metric": 0.31,
                                 "steps_per_second": 12.5, "eta_seconds": 30.4}
        return job

    @staticmethod
    def service(run):
        return {"id": run.name, "name": run.name.rsplit("-", 1)[0], "state": run.state,
                "trains": False, "reason": "Working", "message": "", "step": None,
                "total_steps": None, "policy_version": None, "reward_mean": None, "eval": None,
                "actors": {"counter": {"desired": 3, "ready": 3}}, "staleness": None,
                "queue_depth": None, "trainer_idle_fraction": None, "tokens_per_second": None,
                "eta_seconds": None, "cost": None, "run_dir": "/home/user/.tandem/runs/" + run.name,
                "created": run.created, "age_s": time.time() - run.created / 1000}

    def training(self, run):
        ready = min(run.rollouts, 48) - 3
        return {"id": run.name, "name": run.name.rsplit("-", 1)[0], "state": run.state,
                "reason": "Training", "message": "learner/0 trains step %d" % run.step,
                "step": run.step, "total_steps": TOTAL, "policy_version": run.step,
                "actors": {"rollout": {"desired": run.rollouts, "ready": ready},
                           "learner": {"desired": 1, "ready": 1},
                           "reward": {"desired": 1, "ready": 1}},
                "reward_mean": run.value("critic/rewards/mean", run.step), "eval": 0.913,
                "eval_figures": {"mean": 0.913, "pass@1": 0.913, "pass@8": 0.985, "greedy": 0.92,
                                 "sources": {"math": {"mean": 0.91, "scored": 800, "failed": 0},
                                             HOSTILE: {"mean": None, "scored": 0, "failed": 9}}},
                "staleness": {"bound": 2, "max": 2, "mean": 0.71}, "queue_depth": 97,
                "trainer_idle_fraction": 0.116,
                "rates": {"steps": 16, "trainer_idle_fraction": 0.312},
                "predicted": {"trainer_idle_fraction": 0.29, "rollout_idle_fraction": 0.0,
                              "rollouts_matched": run.rollouts + 9, "rollouts": ready},
                "autoscale": {"on": run.autoscaled, "min": 1, "max": 64, "target_trainer_idle": 0.05,
                              "wanted": run.rollouts, "matched": run.rollouts + 9, "at_limit": run.autoscaled,
                              "hold": "at_limit", "last": None if not run.autoscaled else
                              {"at": run.created + 60000, "from": 40, "to": run.rollouts, "reason": ""},
                              "reason": "trainer idle 31 % over 64 steps, 57 would match" if run.autoscaled else None},
                "tokens_per_second": {"generated": 20911.4, "trained": 19377.8},
                "cost": {"currency": "USD", "per_step": 0.0312, "total": 12.4,
                         "goodput_tokens_per_device_second": 1204.6,
                         "device_seconds": {"rollout": 18000.0, "learner": 1708.0}},
                "eta_seconds": (TOTAL - run.step) * 0.41,
                "run_dir": "/home/user/.tandem/runs/" + run.name,
                "created": run.created, "age_s": time.time() - run.created / 1000}

    def actors(self):
        out = []
        for run in (run for run in self.runs.values() if run.live):
            if not run.trains:
                out += [self.actor(run, "counter", i) for i in range(3)]
                continue
            if run.state == "WarmStart":
                continue
            roles = [("learner", 0), ("reward", 0)] + [("rollout", i) for i in range(run.rollouts)]
            out += [self.actor(run, role, i) for role, i in roles]
        return out

    def actor(self, run, role, index):
        state, reason, message = "Busy", "Working", ""
        if role == "rollout" and index in (3, 17):
            state, reason, message = "Backoff", "Restarting", "restart 2 of 5 in 4 s: " + HOSTILE
        elif role == "rollout" and index == 21:
            state, reason, message = "Starting", "LoadingModel", "loads 14.2 GiB from the arena"
        elif role == "rollout" and index % 5 == 0:
            state, reason = "Ready", "Idle"
        wobble = noise(role + str(index), int(time.time() / 2))
        return {"name": f"{run.name}/{role}/{index}", "job": run.name, "role": role,
                "state": state, "reason": reason, "message": message,
                "since": int(time.time() * 1000) - 1000 * (40 + 97 * index),
                "node": f"node-{index % 4}", "pid": None if state == "Backoff" else 4100 + index,
                "gpus": [], "incarnation": 100 + index, "restarts": 2 if state == "Backoff" else 0,
                "policy_version": run.step - index % 2,
                "load": (f"{int(160 + 60 * wobble)}/256" if role == "rollout"
                         else "step %d" % run.step),
                "cpu_percent": None if state == "Backoff" else 88 + 20 * wobble,
                "memory_bytes": None if state == "Backoff" else int((1.9 + 0.3 * wobble) * 2**30),
                "ranks": [], "why": []}

    def nodes(self):
        return [{"name": f"node-{i}", "state": "Lost" if i == 3 else "Ready", "cpus": 64,
                 "memory_bytes": 256 * 2**30, "gpus": [], "pid": 1000 + i,
                 "leased": {"cpus": 12.5 + i, "memory_bytes": 0}} for i in range(4)]

    def wait_graph(self, job):
        now = int(time.time() * 1000)
        nodes, edges = [{"id": job + "/exchange", "kind": "exchange", "state": "Running"}], []
        if job not in self.runs or not self.runs[job].live:
            return {"nodes": [], "edges": []}
        for actor in self.actors():
            name = actor["name"]
            nodes.append({"id": name, "kind": actor["role"], "state": actor["state"]})
            if actor["role"] != "rollout":
                continue
            if actor["state"] == "Ready":
                edges.append({"from": name, "to": job + "/learner/0", "until": now + 61_000,
                              "since": now - 8000 - actor["pid"],
                              "what": f"version {self.runs[job].step + 1} to be published"})
            elif actor["state"] != "Busy":
                edges.append({"from": name, "to": "controller", "since": now - 30_000,
                              "until": now + 4000, "what": "a restart"})
        nodes.append({"id": "controller", "kind": "controller", "state": "Ready"})
        edges.append({"from": job + "/learner/0", "to": job + "/reward/0", "since": now - 2100,
                      "until": now + 57_900, "what": "61 of 64 scored groups",
                      "detail": "no group is due"})
        edges.append({"from": job + "/reward/0", "to": "the program", "since": now - 1700,
                      "until": now + 8300, "what": "python3 reward.py: line 4 of 8, " + HOSTILE})
        return {"nodes": nodes, "edges": edges}

    def samples(self, run, query):
        evaluation, failed = query.get("eval") == "1", query.get("failed") == "1"
        last = int(query.get("before", 4001)) - 1
        limit = min(int(query.get("limit", 64)), 200)
        out = []
        for number in range(last, max(0, last - limit), -1):
            step = run.step - (4000 - number) * 8
            if query.get("step"):
                step = int(query["step"])
            kind = number % 8
            text = {0: HOSTILE, 1: "x" * 100_000, 2: "46\n" * 3}.get(kind, f"12+34={40 + kind}")
            sample = {"seq": number, "step": step, "group": 900_000 + number,
                      "prompt": f"12+34=  ({number})", "completion": text,
                      "versions": [step - kind % 3, step][: 1 + (kind % 3 > 0)],
                      "finish_reason": "length" if kind == 1 else "stop"}
            if evaluation:
                sample |= {"eval": "periodic", "sample": kind, "greedy": False,
                           "data_source": HOSTILE if kind == 0 else "math"}
            if failed:
                sample["error"] = "the program ended with status 1: " + HOSTILE
            else:
                sample |= {"reward": float(kind == 6), "advantage": (kind - 3) / 2}
            out.append(sample)
        return out

    def log(self, actor):
        lines = [f"12:00:{i % 60:02} info actor={actor} step={99_000 + i} groups=8 tokens=4096"
                 for i in range(380)]
        return "\n".join(lines + ["warn " + HOSTILE, "x" * 100_000, "info last line"]) + "\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/json", headers=()):
        if not isinstance(body, bytes):
            body = body.encode() if isinstance(body, str) else (json.dumps(
                body, separators=(",", ":"), ensure_ascii=False) + "\n").encode()
        with self.server.lock:  # counted before a page can have drawn it
            path = self.path.split("?")[0]
            self.server.sent[path] = self.server.sent.get(path, 0) + len(body)
            self.server.calls[path] = self.server.calls.get(path, 0) + 1
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))),
                            ("Content-Security-Policy", POLICY), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def asset(self, path, status=200):
        asset = embed.assets_by_path()[path]
        if self.headers.get("If-None-Match") == asset.etag:
            return self.answer(304, b"", asset.content_type, [("ETag", asset.etag)])
        headers = [("ETag", asset.etag), ("Cache-Control", "no-cache")]
        body = asset.content
        if asset.packed and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = asset.packed
            headers.append(("Content-Encoding", "gzip"))
        self.answer(status, body, asset.content_type, headers)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        parts = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        if url.path == "/" and query.get("key") == KEY:
            return self.answer(303, b"", headers=[
                ("Location", "/"),
                ("Set-Cookie", "tandem_test=secret; HttpOnly; SameSite=Strict; Path=/")])
        signed_in = "tandem_test=secret" in self.headers.get("Cookie", "")
        if url.path.startswith("/assets/") or url.path == "/licences.txt":
            if url.path in embed.assets_by_path():
                return self.asset(url.path)
        elif url.path == "/":
            return self.asset("/") if signed_in else self.asset("/unauthorized", 401)
        elif not signed_in:
            return self.refuse(401, "not authorised")
        elif parts[:2] == ["api", "v1"]:
            return self.api(parts[2:], query)
        self.refuse(404, "there is no " + url.path)

    def refuse(self, status, message, help_text=""):
        self.answer(status, {"error": {"code": "x", "message": message, "help": help_text}})

    def api(self, parts, query):
        world = self.server.world
        if self.server.broken:
            return self.connection.close()
        lists = {"jobs": world.jobs, "actors": world.actors, "nodes": world.nodes,
                 "status": lambda: {"version": "0.1.0", "state": "Ready", "alerts": world.alerts},
                 "runs": lambda: [world.run_json(run) for run in world.runs.values()]}
        if len(parts) == 1 and parts[0] in lists:
            return self.answer(200, lists[parts[0]]())
        if parts == ["wait_graph"]:
            return self.answer(200, world.wait_graph(query.get("job", LIVE)))
        if parts == ["events"]:
            return self.answer(200, self.new_events(world, query))
        if parts[0] == "runs" and len(parts) > 1:
            run = world.runs.get(parts[1])
            return self.of_run(world, run, parts[2:], query) if run else self.refuse(
                404, "there is no run " + parts[1], "tandem get runs lists them")
        self.refuse(404, "there is no " + self.path)

    @staticmethod
    def new_events(world, query):
        since = int(query.get("since", 0))
        return [e for e in world.events if e["seq"] > since][-int(query.get("limit", 1000)):]

    def of_run(self, world, run, parts, query):
        if not parts:
            actors = [{"name": name, "incarnations": [3, 7]} for name in ("learner/0", "rollout/0")]
            return self.answer(200, world.run_json(run) | {"actors": actors})
        if parts[0] == "config":
            return self.answer(200, {"id": run.name, "config": world.config(run)})
        if parts[0] == "metrics":
            return self.answer(200, self.metrics(run, query))
        if parts[0] == "samples":
            return self.answer(200, world.samples(run, query))
        if parts[0] == "events":
            return self.answer(200, self.new_events(world, query))
        if parts[0] == "logs":
            return self.answer(200, world.log("/".join(parts[1:])), "text/plain; charset=utf-8")
        return self.refuse(404, "there is no " + self.path)

    @staticmethod
    def metrics(run, query):
        first = max(int(query.get("from", 1)), 1)
        last = min(int(query.get("to", run.step)), run.step)
        points = min(max(int(query.get("points", 500)), 1), 5000)
        keys = [key for key in query.get("keys", "").split(",") if key in SERIES] or list(SERIES)
        series = {key: run.series(key, first, last, points) for key in keys} if run.step else {}
        return {"id": run.name, "step_min": 1, "step_max": run.step, "keys": sorted(SERIES),
                "series": series, "live": run.live}

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        parts = self.path.split("/")[3:]
        world = self.server.world
        own = "http://" + self.headers.get("Host", "")
        if self.headers.get("Origin") != own:
            return self.refuse(403, "this call comes from another page")
        if parts[0] != "jobs" or parts[1] not in world.runs:
            return self.refuse(404, "there is no " + self.path)
        if parts[2] == "cancel":
            world.cancels.append(parts[1])
            return self.answer(200, {"id": parts[1]})
        if body.get("rollout", 0) > 49:
            return self.refuse(400, "rollout=%d does not fit" % body["rollout"],
                               "at most 49 fit on 4 nodes")
        world.scales.append(body["rollout"])  # before a page can have drawn it
        world.runs[parts[1]].rollouts, world.runs[parts[1]].autoscaled = body["rollout"], False
        self.answer(200, {"id": parts[1]})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port=0, empty=False):
        super().__init__(("127.0.0.1", port), Handler)
        self.world = World(empty)
        self.sent, self.calls, self.broken = {}, {}, False
        self.lock = threading.Lock()

    def handle_error(self, request, client_address):
        pass  # a browser that goes away in the middle of an answer

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def bytes_sent(self):
        with self.lock:
            return sum(self.sent.values())

    def traffic(self, path):
        """How often the path was asked for, and the bytes of its answers."""
        with self.lock:
            return self.calls.get(path, 0), self.sent.get(path, 0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--empty", action="store_true", help="a cluster without runs")
    arguments = parser.parse_args()
    server = Server(arguments.port, arguments.empty)
    print(f"{server.address}/?key={KEY}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        os._exit(130)


if __name__ == "__main__":
    main()
