"""Tandem's runner of a reward that is a Python function (reward.type: python). It is compiled into
the program and given to the user's interpreter as the first line of its input, with the settings
(python_program.h). Then it reads one JSON object per line,

    {"id", "prompt", "completion", "answer", "data", "data_source", "truncated"}

and writes {"id", "score", "extra"} or {"id", "error"} for each. A blank line says beforehand that
the function is loaded. Standard library only, Python 3.8 and later.

Descriptors 0 and 1 are copied for the protocol and replaced, so that nothing that the user's code
prints or reads can disturb it: its output is in the actor's log.
"""
import asyncio
import collections
import importlib
import importlib.util
import inspect
import json
import math
import os
import select
import signal
import sys
import traceback

HERE = "<tandem reward runner>"  # the name of this text in tracebacks
TEXT_MAX = 300                   # characters of a reason


class Wrong(Exception):
    """The function's result is no score; the text says why."""


class Lines:
    """Lines of a descriptor, as many as are there without a wait."""

    def __init__(self, source, held):
        self.source, self.held, self.ended = source, held, False

    def read(self):
        data = os.read(self.source, 1 << 16)
        self.held += data
        self.ended = not data

    def batch(self, most):
        """At least one line and at most `most`; none at the end of the input."""
        while b"\n" not in self.held and not self.ended:
            self.read()
        while (self.held.count(b"\n") < most and not self.ended
               and select.select([self.source], [], [], 0)[0]):
            self.read()
        *lines, self.held = self.held.split(b"\n", most)
        return [line for line in lines if line.strip()]


def load(function):
    """The function that "FILE.py:NAME", "FOLDER/MODULE:NAME" or "MODULE:NAME" names."""
    # Python's cache takes a file of equal size, edited within the same second, for the old one.
    sys.dont_write_bytecode = True
    place, _, name = function.rpartition(":")
    folder, module = os.path.split(place)
    if folder:
        sys.path.insert(0, folder)
    if module.endswith(".py"):
        module = module[:-3]
        spec = importlib.util.spec_from_file_location(module, place)
        found = importlib.util.module_from_spec(spec)
        sys.modules[module] = found
        spec.loader.exec_module(found)
    else:
        found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{function} is not a function, it is {type(found).__name__}")
    return found


def column(items, name):
    return [item["data"].get(name) for item in items]


def ground_truth(item):
    if item["answer"] is None and isinstance(item["data"].get("reward_model"), dict):
        return item["data"]["reward_model"].get("ground_truth")  # verl's data files
    return item["answer"]


def of_tandem(item):
    return {**item["data"], **{key: item[key] for key in item if key != "id"}}


def of_verl(item):
    return {"data_source": item["data_source"], "solution_str": item["completion"],
            "ground_truth": ground_truth(item), "extra_info": item["data"].get("extra_info") or {}}


def of_verl_batch(items):
    singles = [of_verl(item) for item in items]
    return {name + "s": [single[name] for single in singles] for name in singles[0]}


def of_trl(items):
    """A conversation has the messages of its completion, a text is a text. Columns are lists."""
    names = dict.fromkeys(name for item in items for name in item["data"])
    given = {name: column(items, name) for name in names}
    chats = [item["data"].get("messages") for item in items]
    given["prompts"] = [chat if isinstance(chat, list) else item["prompt"]
                        for item, chat in zip(items, chats)]
    given["completions"] = [[{"role": "assistant", "content": item["completion"]}]
                            if isinstance(chat, list) else item["completion"]
                            for item, chat in zip(items, chats)]
    for name in ("prompt", "completion", "messages", "trainer_state"):
        given.pop(name, None)
    return {**given, "trainer_state": None}


def of_openrlhf(items):
    return {"queries": [item["prompt"] + item["completion"] for item in items],
            "prompts": [item["prompt"] for item in items],
            "labels": [item["answer"] for item in items]}


# A form's arguments, whether a call takes a list of completions, and the parameter by which a
# function of this form is recognised; the first that fits counts.
Form = collections.namedtuple("Form", "arguments batched mark")
FORMS = {"verl": Form(of_verl, False, "solution_str"),
         "verl_batch": Form(of_verl_batch, True, "solution_strs"),
         "trl": Form(of_trl, True, "completions"),
         "openrlhf": Form(of_openrlhf, True, "queries"),
         "tandem": Form(of_tandem, False, "completion")}


def form_of(parameters, signature):
    if signature != "auto":
        return FORMS[signature]
    for form in FORMS.values():
        if form.mark in parameters:
            return form
    raise TypeError(f"the function's parameters ({', '.join(parameters)}) are of no known form: it "
                    "needs one of " + ", ".join(form.mark for form in FORMS.values()) +
                    ", or the key `signature`")


def chosen(parameters, given):
    """The arguments that the function takes; all, where it has **columns."""
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return given
    for name, p in parameters.items():
        if p.default is p.empty and p.kind is not p.VAR_POSITIONAL and name not in given:
            raise Wrong(f"the function needs `{name}`, which the record does not have")
    return {name: given[name] for name in parameters if name in given}


def plain(value):
    """A value that JSON does not know, as a number or a text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)[:TEXT_MAX]


def score_of(value):
    """(score, extra) of what the function returned for one completion."""
    extra = None
    if isinstance(value, dict):
        if "score" not in value:
            raise Wrong('the function returned a dict without "score": ' + repr(value)[:80])
        extra = {str(key): item for key, item in value.items() if key != "score"}
        value = value["score"]
    if value is None:
        raise Wrong("the function returned None")
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise Wrong(f"the function returned no number, but {type(value).__name__}: "
                    + repr(value)[:80])
    number = float(value)
    if not math.isfinite(number):
        raise Wrong(f"the function returned {number}; a score must be a finite number")
    return number, extra


def listed(values, count):
    """What the function returned for `count` completions, as that many values."""
    logs = {}
    if isinstance(values, dict):  # OpenRLHF's
        if "rewards" not in values:
            raise Wrong('the function returned a dict without "rewards": ' + repr(values)[:80])
        logs, values = values.get("extra_logs") or {}, values["rewards"]
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        raise Wrong(f"the function returned no list, but {type(values).__name__}: "
                    + repr(values)[:80])
    if len(values) != count:
        raise Wrong(f"the function returned {len(values)} scores for {count} completions")
    if not isinstance(logs, dict) or not logs:
        return values
    logs = {key: log.tolist() if hasattr(log, "tolist") else log for key, log in logs.items()}
    logs = {key: log for key, log in logs.items() if isinstance(log, list) and len(log) == count}
    return [{"score": value, **{key: log[i] for key, log in logs.items()}}
            for i, value in enumerate(values)]


def shortened(error):
    """The error with the place in the user's code where it was raised."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if frame.filename != HERE]
    if frames:
        text = (text[:TEXT_MAX] + f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
                f" in {frames[-1].name})")
    return text


def reason(error):
    if isinstance(error, Wrong):
        return str(error)
    trace = error.__traceback__
    while trace and trace.tb_next and trace.tb_frame.f_code.co_filename == HERE:
        trace = trace.tb_next  # the user's part alone
    traceback.print_exception(type(error), error, trace)
    return "the function raised " + shortened(error)


class Runner:
    def __init__(self, function, signature):
        self.function = function
        self.parameters = inspect.signature(function).parameters
        self.form = form_of(self.parameters, signature)
        call = function if inspect.isroutine(function) else type(function).__call__
        self.loop = asyncio.new_event_loop() if inspect.iscoroutinefunction(call) else None

    def call(self, given):
        result = self.function(**chosen(self.parameters, given))
        return self.loop.run_until_complete(result) if self.loop else result

    def together(self, items):
        """Calls of an asynchronous function for one completion each; errors are values."""
        async def all_of():
            async def one(item):
                return await self.function(**chosen(self.parameters, self.form.arguments(item)))
            return await asyncio.gather(*map(one, items), return_exceptions=True)
        return self.loop.run_until_complete(all_of())

    def results(self, items):
        """(item, value or error) for each item, as they come."""
        if self.form.batched:
            try:
                values = listed(self.call(self.form.arguments(items)), len(items))
            except (Exception, SystemExit) as error:
                values = [error] * len(items)
            if len(items) > 1 and isinstance(values[0], BaseException) \
                    and not isinstance(values[0], Wrong):
                # One completion may have made the call fail: each is tried alone.
                for item in items:
                    yield from self.results([item])
            else:
                yield from zip(items, values)
        elif self.loop:
            yield from zip(items, self.together(items))
        else:
            for item in items:
                try:
                    yield item, self.call(self.form.arguments(item))
                except (Exception, SystemExit) as error:
                    yield item, error

    def answers(self, items):
        for item, value in self.results(items):
            answer = {"id": item["id"]}
            try:
                if isinstance(value, BaseException):
                    raise value
                answer["score"], extra = score_of(value)
                if extra:
                    answer["extra"] = extra
                text = json.dumps(answer, default=plain)
            except (Exception, SystemExit) as error:
                text = json.dumps({"id": item["id"], "error": reason(error)})
            yield text.encode() + b"\n"


def write_all(out, data):
    while data:
        data = data[os.write(out, data):]


def main(settings, held):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for our parent, which ends us
    lines, out = Lines(os.dup(0), held), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    try:
        runner = Runner(load(settings["function"]), settings["signature"])
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)  # threads that the module has started do not keep us
    write_all(out, b"\n")
    while True:
        batch = lines.batch(settings["batch_size"])
        if not batch:
            break
        for answer in runner.answers([json.loads(line) for line in batch]):
            write_all(out, answer)
    sys.stderr.flush()
    os._exit(0)


main(start, held)  # both are the bootstrap's (python_program.cc)
