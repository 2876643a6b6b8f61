#!/usr/bin/env python3
"""scripts/python/tandem_client.py against a real cluster: usage: python_client_test.py BUILD SOURCE."""
import ast
import http.client
import http.server
import importlib.util
import inspect
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

BUILD, SOURCE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "scripts/python"))
import tandem_client  # noqa: E402
from tandem_client import Job, Run, Tandem, TandemError  # noqa: E402

STEPS = 6
GETTERS = ("_object", "_list")  # the client's own calls of GET
FEW_STEPS = {"learner": {"total_training_steps": STEPS, "save_freq": 0},
             "data": {"train_batch_size": 8, "train_files": ["data/train.jsonl"]},
             "model": {"path": "models/arithmetic", "init": "random"},
             "name": "small", "rollout": {"n": 4}}


def lines_of_calls():
    """The lines of each place in the client that calls the API, as (first, last)."""
    tree = ast.parse(inspect.getsource(tandem_client))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)
                 and node.name not in GETTERS]
    return {(call.lineno, call.end_lineno) for function in functions for call in ast.walk(function)
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in (*GETTERS, "_call")}


class RecordingTandem(Tandem):
    """Keeps each call: (line of the client, method, path, names of the query)."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def _call(self, method, path, query=None, *rest, **options):
        frame = sys._getframe(1)
        if frame.f_code.co_name in GETTERS:
            frame = frame.f_back
        names = {key for key, value in (query or {}).items() if value is not None}
        self.calls.append((frame.f_lineno, method, "/api/v1/" + "/".join(path), names))
        return super()._call(method, path, query, *rest, **options)


def called(call):
    """Calls it; the API may refuse it, since there is no such job, run or actor."""
    try:
        call()
    except TandemError as error:
        assert error.status in (400, 404), error


def operation_of(document, method, path):
    """The operation of a document for a call: of the path that has the most text in common with it."""
    fitting = [known for known in document["paths"]
               if re.fullmatch("/".join(".+" if part.startswith("{") else re.escape(part)
                                        for part in known.split("/")), path)]
    best = max(fitting, key=lambda known: len(re.sub(r"{.*?}", "", known)), default=None)
    return document["paths"].get(best, {}).get(method.lower())


class PythonClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.TemporaryDirectory()
        os.environ["TANDEM_HOME"] = cls.home.name
        os.environ.pop("TANDEM_ADDRESS", None)
        os.chdir(SOURCE / "configs")
        subprocess.run([BUILD / "tandem", "up", "--port", "0"], check=True, stdout=subprocess.DEVNULL)
        cls.tandem = Tandem()

    @classmethod
    def tearDownClass(cls):
        subprocess.run([BUILD / "tandem", "down"], check=True, stdout=subprocess.DEVNULL)
        cls.home.cleanup()

    def test_a_job_from_its_text_to_its_metrics(self):
        job = self.tandem.submit(FEW_STEPS)  # its paths start here
        steps = list(job.metrics(["actor/loss", "tandem/staleness/max"], first=1, follow=True, every=0.05))
        self.assertEqual([step["step"] for step in steps], list(range(1, STEPS + 1)))
        self.assertTrue(all("actor/loss" in step for step in steps))
        self.assertEqual(job.wait(timeout=60).state, "Succeeded")
        run = job.run
        self.assertEqual(run.config()["learner.total_training_steps"], str(STEPS))
        with open(pathlib.Path(run["run_dir"]) / "metrics.jsonl", encoding="utf-8") as lines:
            written = {line["step"]: line for line in map(json.loads, lines) if "actor/loss" in line}
        for step in run.metrics(["actor/loss"], first=1):
            self.assertEqual(step["actor/loss"], written[step["step"]]["actor/loss"])
        samples = run.samples(limit=3)
        self.assertEqual(len(samples), 3)
        older = run.samples(limit=3, before=samples[-1]["seq"])
        self.assertTrue(all(sample["seq"] < samples[-1]["seq"] for sample in older))
        self.assertIn(job.id, [one.id for one in self.tandem.runs()])
        self.assertTrue(self.tandem.events(job=job.id, limit=2))
        self.assertIn("learner_ended", self.tandem.logs(job.id + "/learner/0"))
        run.delete()
        with self.assertRaises(TandemError) as gone:
            self.tandem.run(job.id)
        self.assertEqual((gone.exception.code, gone.exception.status), ("not_found", 404))

    def test_what_reads_outlives_a_restart_of_the_controller(self):
        job = self.tandem.submit(SOURCE / "configs/arithmetic.yaml")
        steps = job.metrics(["actor/loss"], first=1, follow=True, every=0.05)
        self.assertEqual(next(steps)["step"], 1)
        epoch = self.tandem.status()["epoch"]
        told = json.loads((pathlib.Path(self.home.name) / "controller.json").read_text(encoding="utf-8"))
        os.kill(told["pid"], signal.SIGKILL)
        self.assertGreater(self.tandem.status()["epoch"], epoch)
        self.assertEqual(next(steps)["step"], 2)
        self.assertEqual(job.cancel().wait(timeout=60).state, "Cancelled")

    def test_a_job_is_scaled_and_cancelled(self):
        job = self.tandem.submit(SOURCE / "configs/arithmetic.yaml")
        self.assertEqual(job.scale(rollout=2)["actors"]["rollout"]["desired"], 2)
        with self.assertRaises(TandemError) as refused:
            job.scale(rollout=0)
        self.assertEqual(refused.exception.code, "invalid")
        self.assertEqual(job.cancel().wait(timeout=60).state, "Cancelled")

    def document(self):
        connection = http.client.HTTPConnection(self.tandem.address, timeout=30)
        connection.request("GET", "/api/v1/openapi.json",
                           headers={"Authorization": "Bearer " + self.tandem._token})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        document = json.load(answer)
        connection.close()
        return document

    def test_each_call_of_the_client_is_in_the_document_of_the_api(self):
        tandem = RecordingTandem()
        known = self.tandem.submit(FEW_STEPS).id
        job, run = Job(tandem, {"id": "none-1", "state": "Running"}), Run(tandem, {"id": "none-1"})
        for call in (tandem.status, tandem.nodes, tandem.actors, tandem.groups, tandem.jobs, tandem.runs,
                     lambda: tandem.events(since=1, limit=2), lambda: tandem.events(job=known),
                     tandem.wait_graph, lambda: tandem.wait_graph(job=known),
                     lambda: tandem.actor(known + "/rollout/9"), lambda: tandem.actors(known),
                     lambda: tandem.logs(known + "/rollout/9", tail=1, previous=True),
                     lambda: tandem.ask(known + "/counter/0", {}), lambda: tandem.job(known),
                     lambda: tandem.run(known), lambda: job.run,
                     lambda: tandem.submit(FEW_STEPS, resume="none-1"), job.refresh,
                     lambda: job.scale(rollout=1), job.cancel, run.refresh, run.config, run.metric_keys,
                     lambda: list(run._steps(["a"], 1, 2)), run.events, run.delete,
                     lambda: run.samples(step=1, evaluation=True, failed=True, before=1)):
            called(call)
        self.tandem.job(known).wait(timeout=60)
        lines = [line for line, *_ in tandem.calls]
        self.assertEqual({place for place in lines_of_calls()
                          if not any(place[0] <= line <= place[1] for line in lines)}, set(), "calls not made here")
        document = self.document()
        self.assertEqual(document["openapi"], "3.1.0")
        for _, method, path, names in tandem.calls:
            operation = operation_of(document, method, path)
            self.assertIsNotNone(operation, f"{method} {path}")
            known = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
            self.assertLessEqual(names, known, f"{method} {path}")
        self.assertIsNone(operation_of(document, "GET", "/api/v1/nonsense"))

    def test_figures_are_chosen_by_patterns_and_none_is_an_error(self):
        run = self.tandem.submit(FEW_STEPS).wait(timeout=60).run
        wanted = [key for key in run.metric_keys() if key.startswith("critic/")]
        self.assertTrue(wanted)
        for patterns in (["critic/*"], "critic/*", ["critic/?*"]):
            seen = set().union(*run.metrics(patterns)) - {"step"}
            self.assertEqual(seen, set(wanted), patterns)
        self.assertEqual(set().union(*run.metrics(["actor/los?", "none/*"])) - {"step"}, {"actor/loss"})
        with self.assertRaises(TandemError) as nothing:
            list(run.metrics(["kritik/*", "actor.loss"]))
        self.assertEqual(nothing.exception.code, "not_found")
        self.assertIn("kritik/*, actor.loss", str(nothing.exception))
        self.assertIn("metric_keys()", nothing.exception.help)
        with self.assertRaises(TandemError):
            list(run.metrics(["kritik/*"], first=2, last=3))

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "pandas is not installed")
    def test_a_frame_takes_patterns(self):
        run = self.tandem.submit(FEW_STEPS).wait(timeout=60).run
        frame = run.frame(["critic/*"])
        self.assertTrue(len(frame) >= STEPS and all(key.startswith("critic/") for key in frame.columns))
        with self.assertRaises(TandemError):
            run.frame(["kritik/*"])

    def test_jobs_and_runs_are_mappings(self):
        job = self.tandem.submit(FEW_STEPS).wait(timeout=60)
        for one in (job, job.run):
            self.assertIn("id", one)
            self.assertNotIn("nonsense", one)
            self.assertNotIn(0, one)
            self.assertEqual(dict(one), one.fields)
            self.assertEqual({**one}, dict(one.items()))
            self.assertEqual(list(one), list(one.keys()))
            self.assertEqual(len(one), len(list(one.values())))
            self.assertEqual(one.get("id"), one.id)
            self.assertEqual(one.get("nonsense", 7), 7)
            with self.assertRaises(KeyError):
                one["nonsense"]
        self.assertEqual(len({job, job, job.run}), 2)

    def test_a_name_stands_for_a_job_as_in_the_command_line(self):
        def named(**more):
            return self.tandem.submit({**FEW_STEPS, "name": "twice", **more})

        first = named().wait(timeout=60)
        self.assertEqual([self.tandem.job("twice").id, self.tandem.run("twice").id], [first.id, first.id])
        self.assertEqual(self.tandem.events(job="twice"), self.tandem.events(job=first.id))
        self.assertIn("learner_ended", self.tandem.logs("twice/learner/0"))
        long = named(learner={"total_training_steps": 10**6, "save_freq": 0})
        self.assertEqual(self.tandem.job("twice").id, long.id, "the one that has not ended")
        actors = [actor["name"] for actor in self.tandem.actors("twice")]
        self.assertIn(long.id + "/learner/0", actors)
        self.assertTrue(all(name.startswith(long.id + "/") for name in actors))
        self.assertEqual(self.tandem.actor("twice/learner/0")["name"], long.id + "/learner/0")
        self.tandem.wait_graph(job="twice")
        long.cancel().wait(timeout=60)
        with self.assertRaises(TandemError) as both:
            self.tandem.actors("twice")
        self.assertEqual(both.exception.code, "invalid")
        for id in (first.id, long.id):
            self.assertIn(id, both.exception.help)
        with self.assertRaises(TandemError) as none:
            self.tandem.actors("thrice")
        self.assertEqual((none.exception.code, none.exception.status), ("not_found", 404))

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_the_client_has_types_throughout(self):
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull,
                                  SOURCE / "scripts/python/tandem_client.py"], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_errors_say_what_and_how_to_mend(self):
        with self.assertRaises(TandemError) as refused:
            self.tandem.submit("name: x\nmodel: {}\n")
        self.assertEqual(refused.exception.code, "invalid")
        for missing in ("data.train_files", "model.path"):
            self.assertIn(missing, str(refused.exception))
        self.assertIn("help:", str(refused.exception))
        with self.assertRaises(TandemError) as unknown:
            Tandem(token="0" * 64).status()
        self.assertEqual(unknown.exception.status, 401)
        with self.assertRaises(TandemError) as nobody:
            Tandem(address="127.0.0.1:1").status()
        self.assertEqual(nobody.exception.code, "unreachable")
        with self.assertRaises(TandemError):
            Tandem(home="/nowhere")
        for wrong in ("localhost", "https://a:1", "a:b"):
            with self.assertRaises(ValueError):
                Tandem(address=wrong)

    def test_the_wheel_holds_the_module(self):
        made = subprocess.run([sys.executable, "-B", SOURCE / "scripts/python/make_wheel.py", self.home.name],
                              check=True, capture_output=True, text=True).stdout.strip()
        with zipfile.ZipFile(made) as wheel:
            self.assertIn("tandem_client/py.typed", wheel.namelist())  # type checkers believe it only then
            self.assertEqual(wheel.read("tandem_client/__init__.py"),
                             (SOURCE / "scripts/python/tandem_client.py").read_bytes())
            version = (SOURCE / "CMakeLists.txt").read_text().split("project(tandem VERSION ")[1].split()[0]
            self.assertIn(f"tandem_client-{version}.dist-info/RECORD", wheel.namelist())
        imported = subprocess.run(
            [sys.executable, "-c", "import tandem_client as t; print(t.__file__, t.Tandem)"],
            env={**os.environ, "PYTHONPATH": made}, check=True, capture_output=True, text=True)
        self.assertIn(made, imported.stdout)


class Handler(http.server.BaseHTTPRequestHandler):
    """Plays a controller with one job, which runs, or with `is_other` another program."""

    def answer(self):
        self.server.asked.append((self.command, self.path, self.headers.get("Authorization")))
        ready = self.path == "/readyz"
        body = b"ready\n" if ready else json.dumps({"id": "a-1", "state": "Running", "actors": {}}).encode()
        self.send_response(404 if self.server.is_other else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class FakeController:
    """Goes and comes back at one address."""

    def __init__(self, port=0, is_other=False):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.asked, self.server.is_other = [], is_other
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class WaitingTandem(Tandem):
    """Calls `on_wait` before each wait for a controller."""

    on_wait = staticmethod(lambda: None)
    waits = 0

    def _is_back(self, *options):
        self.waits += 1
        self.on_wait()
        return super()._is_back(*options)


class GivenAddress(unittest.TestCase):
    def setUp(self):
        os.environ.pop("TANDEM_ADDRESS", None)
        self.controllers = [FakeController()]
        self.tandem = WaitingTandem(address=f"127.0.0.1:{self.controllers[0].port}", token="t")
        self.tandem.on_wait = self.start

    def tearDown(self):
        for controller in self.controllers:
            controller.stop()

    def start(self, **options):
        self.controllers.append(FakeController(self.controllers[0].port, **options))

    def test_what_reads_outlives_a_restart_of_the_controller(self):
        job = Job(self.tandem, self.tandem._object("jobs", "a-1"))
        self.controllers[0].stop()
        self.assertEqual(job.refresh().state, "Running")
        self.assertEqual(self.tandem.waits, 1)
        self.assertIn(("GET", "/readyz", None), self.controllers[-1].server.asked)

    def test_one_that_never_answered_fails_at_once(self):
        self.controllers[0].stop()
        with self.assertRaises(TandemError) as nobody:
            self.tandem.status()
        self.assertEqual((nobody.exception.code, self.tandem.waits), ("unreachable", 0))

    def test_what_changes_anything_is_sent_once(self):
        job = Job(self.tandem, self.tandem._object("jobs", "a-1"))
        self.controllers[0].stop()
        with self.assertRaises(TandemError):
            job.cancel()
        self.assertEqual(self.tandem.waits, 0)

    def test_another_program_there_is_not_shown_the_token(self):
        self.tandem.status()
        self.controllers[0].stop()
        self.tandem.on_wait = lambda: self.start(is_other=True)
        self.assertFalse(self.tandem._is_back(time.monotonic() + 0.3))
        asked = self.controllers[-1].server.asked
        self.assertTrue(asked)
        self.assertEqual(set(asked), {("GET", "/readyz", None)})

    def test_the_time_of_a_wait_holds_without_a_controller(self):
        with tempfile.TemporaryDirectory() as home:
            told = pathlib.Path(home) / "controller.json"
            told.write_text(json.dumps({"pid": os.getpid(), "http": self.tandem.address}), encoding="utf-8")
            found = WaitingTandem(home=home, token="t")
            for tandem in (self.tandem, found):
                job = Job(tandem, tandem._object("jobs", "a-1"))
                self.controllers[-1].stop()
                tandem.on_wait = lambda: None
                told.unlink()
                begun = time.monotonic()
                with self.assertRaises(TimeoutError):
                    job.wait(timeout=0.2)
                self.assertLess(time.monotonic() - begun, 10)
                self.start()
                told.write_text("{}", encoding="utf-8")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
