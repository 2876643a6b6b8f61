"""TensorRT-LLM for Tandem: its AsyncLLM behind those routes of vLLM's server that rollouts use.

usage: python -m tandem_trtllm --port N --served-model-name NAME --llm JSON [--host HOST]

JSON has the settings of the LLM, by TensorRT-LLM's names; `model`, `max_seq_len` and `max_batch_size` are needed.
Tandem starts this program; it can run by itself too, for a job with `rollout.engine.url`.

`trtllm-serve` has no routes for reinforcement learning, and AsyncLLM needs Ray; it is started as verl does. A pause
ends what runs at the engine. Each completion keeps the tokens that it has, and goes on behind them after the pause,
so that every token is of one known version. Weights come over TCP (tandem_vllm.Feed), once for each rank.
"""
import argparse
import asyncio
import inspect
import itertools
import json
import math
import os
import signal
import subprocess
import sys
import traceback

from tandem_vllm import Feed

QUIET_MAX_S = 120
BODY_BYTES_MAX = 64 << 20
BUCKET_BYTES = 1 << 30  # of tensors that are loaded at once
BROKEN = "broken"  # the label while the weights are not whole


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def __getattr__(name):
    """Worker, the class that TensorRT-LLM puts into each of its Ray workers: made only where it is asked for."""
    if name != "Worker":
        raise AttributeError(name)
    import torch
    from tensorrt_llm._torch.utils import get_device_uuid
    from tensorrt_llm.llmapi.rlhf_utils import WorkerExtension

    class Worker(WorkerExtension):
        def tandem_receive(self, host, port, token, names, dtype_names, shapes):
            """Loads a version. update_weights() takes tensors as functions that make them, by the device's uuid."""
            feed = Feed(host, port, token, getattr(self, "rank", 0))
            device = get_device_uuid(self.device_id)
            bucket, size = [], 0

            def load():
                if bucket:
                    self.update_weights({device: list(bucket)})
                    bucket.clear()

            for name, dtype_name, shape in zip(names, dtype_names, shapes):
                dtype = getattr(torch, dtype_name)
                data = feed.tensor(math.prod(shape) * dtype.itemsize)
                tensor = torch.frombuffer(data, dtype=dtype).reshape(shape).to(f"cuda:{self.device_id}")
                # The seventh argument is replaced by the device.
                bucket.append((name, (lambda made, *_: made, (tensor,) + (None,) * 6)))
                size += len(data)
                if size >= BUCKET_BYTES:
                    load()
                    size = 0
            load()
            feed.finish()
            self.update_weights(None)  # the end of an update; it empties the prefix cache, too

    return Worker


class Request:
    """n completions of one prompt."""

    def __init__(self, count):
        self.completions = [Completion() for _ in range(count)]
        self.aborted = asyncio.Event()


class Completion:
    """One completion of a request. Its stream at the engine is another one after each pause."""

    def __init__(self):
        self.tokens, self.logprobs, self.versions = [], [], []
        self.end = None
        self.stream, self.cut = None, False  # the stream at the engine, and whether it was ended from here

    def take(self, tokens, logprobs, label):
        begin = len(self.tokens)
        self.tokens += tokens
        self.logprobs += logprobs
        if not tokens:
            return
        if self.versions and self.versions[-1]["version"] == label:
            self.versions[-1]["end"] = len(self.tokens)
        else:
            self.versions.append({"start": begin, "end": len(self.tokens), "version": label})


class Server:
    def __init__(self, llm, sampling_params, name, kwargs):
        self.llm, self.sampling_params, self.name, self.kwargs = llm, sampling_params, name, kwargs
        self.label = "initial"
        self.requests = {}  # by id
        self.streams = set()  # completions at the engine
        # The engine never answers for one that is ended while it waits in there: none has to.
        self.places = asyncio.Semaphore(kwargs["max_batch_size"])
        self.numbers = itertools.count()
        takes = inspect.signature(llm.generate_async).parameters
        self.salts = "cache_salt" in takes
        self.resumed, self.quiet = asyncio.Event(), asyncio.Event()
        self.resumed.set()
        self.quiet.set()
        self.feed = self.updating = self.received = None
        self.counts = {"generation_tokens_total": 0, "prompt_tokens_total": 0}

    # Completions.

    def params(self, sampling, index, done):
        given = {"max_tokens": sampling["max_tokens"] - done, "logprobs": 1, "end_id": -1, "pad_id": 0,
                 # Not the texts of `stop`, for which the engine would need its own tokenizer: Tandem ends a
                 # completion at them.
                 "stop_token_ids": sampling.get("stop_token_ids", []), "detokenize": False,
                 # A stream that goes on draws anew.
                 "seed": (sampling.get("seed", 0) + index + 1000003 * done) % (1 << 63)}
        if sampling.get("temperature", 1) == 0:
            given["top_k"] = 1
        else:
            given.update(temperature=sampling.get("temperature", 1), top_p=sampling.get("top_p", 1))
            if sampling.get("top_k", 0) > 0:
                given["top_k"] = sampling["top_k"]
            if sampling.get("min_p", 0) > 0:
                given["min_p"] = sampling["min_p"]
        return self.sampling_params(**given)

    async def complete(self, request, prompt, sampling, index):
        completion = request.completions[index]
        while completion.end is None:
            await either(self.resumed, request.aborted)
            async with self.places:
                if request.aborted.is_set():
                    completion.end = "abort"
                elif self.resumed.is_set():
                    await self.follow(completion, prompt, sampling, index)

    async def follow(self, completion, prompt, sampling, index):
        """Until the stream ends, by itself or by a pause."""
        done, label = len(completion.tokens), self.label
        completion.cut = False
        completion.stream = self.llm.generate_async(
            prompt + completion.tokens, sampling_params=self.params(sampling, index, done), streaming=True)
        self.streams.add(completion)
        self.quiet.clear()
        reason = None
        try:
            async for output in completion.stream:
                said = output.outputs[0]
                at = len(completion.tokens) - done
                # One that was ended may have fewer log-probabilities than tokens: these come anew.
                logprobs = list(said.logprobs[at:])
                fresh = list(said.token_ids[at:at + len(logprobs)])
                completion.take(fresh, [of_token(*pair) for pair in zip(logprobs, fresh)], label)
                self.counts["generation_tokens_total"] += len(fresh)
                reason = said.finish_reason
        except asyncio.CancelledError:  # whoever asked is gone
            completion.stream.abort()
            raise
        finally:
            self.streams.discard(completion)
            completion.stream = None
            if not self.streams:
                self.quiet.set()
        if reason in ("stop", "length"):
            completion.end = reason
        elif len(completion.tokens) >= sampling["max_tokens"]:
            completion.end = "length"
        elif not completion.cut:
            raise Refused(500, f"the engine ended a completion: {reason}")

    async def generate(self, body):
        sampling = body.get("sampling_params", {})
        prompt = body.get("token_ids", [])
        if not isinstance(sampling, dict) or not isinstance(prompt, list):
            raise Refused(400, "sampling_params is an object, and token_ids a list")
        room = self.kwargs["max_seq_len"] - len(prompt)
        if not prompt or sampling.get("max_tokens", 16) > room:
            raise Refused(400, f"{len(prompt)} tokens and {sampling.get('max_tokens', 16)} more do not fit in "
                               f"{self.kwargs['max_seq_len']} positions")
        if "prompt_logprobs" in sampling:
            return await self.score(prompt)
        name = "generate-tokens-" + str(body.get("request_id", "none"))
        request = Request(sampling.get("n", 1))
        self.requests[name] = request
        self.counts["prompt_tokens_total"] += len(prompt)
        try:
            await asyncio.gather(*(self.complete(request, prompt, sampling, i)
                                   for i in range(len(request.completions))))
        finally:
            # Also those beside one that failed, and all where whoever asked is gone.
            request.aborted.set()
            self.end_streams(request.completions)
            del self.requests[name]
        return {"request_id": name, "prompt_token_ids": prompt, "choices": [
            {"index": i, "finish_reason": one.end, "token_ids": one.tokens, "weight_versions": one.versions,
             "logprobs": {"content": [{"token_id": token, "logprob": logprob}
                                      for token, logprob in zip(one.tokens, one.logprobs)]}}
            for i, one in enumerate(request.completions)]}

    async def score(self, prompt):
        """The log-probability of each token of the prompt but the first, from the logits of all of it."""
        import torch
        params = self.sampling_params(max_tokens=1, top_k=1, end_id=-1, pad_id=0, detokenize=False,
                                      return_context_logits=True)
        # Logits are of what is computed alone: nothing of it may be in the prefix cache.
        salt = {"cache_salt": f"tandem-score-{next(self.numbers)}"} if self.salts else {}
        output = await self.llm.generate_async(prompt, sampling_params=params, **salt)
        logprobs = torch.log_softmax(output.context_logits.float(), dim=-1)
        scores = [{str(token): {"logprob": float(logprobs[at, token])}} for at, token in enumerate(prompt[1:])]
        return {"request_id": "generate-tokens-score", "choices": [], "prompt_token_ids": prompt,
                "prompt_logprobs": [None] + scores}

    def end_streams(self, completions):
        for completion in completions:
            if completion.stream is not None:
                completion.cut = True
                completion.stream.abort()

    async def abort(self, body):
        for name in body.get("request_ids", []):
            if name in self.requests:
                self.requests[name].aborted.set()
                self.end_streams(self.requests[name].completions)
        return {}

    # Updates.

    async def pause(self, _):
        self.resumed.clear()
        self.end_streams(self.streams)
        try:
            await asyncio.wait_for(self.quiet.wait(), QUIET_MAX_S)
        except asyncio.TimeoutError:
            raise Refused(500, f"the engine did not end what runs in {QUIET_MAX_S} s") from None
        return {"status": "paused"}

    async def resume(self, _):
        if self.updating:
            raise Refused(409, "an update is under way")
        if self.label == BROKEN:
            raise Refused(409, "the weights are not whole: an update has broken off")
        self.resumed.set()
        return {"status": "resumed"}

    async def connect(self, body):
        self.feed = body["init_info"]
        return {"message": "connected"}

    async def start_update(self, _):
        if self.resumed.is_set() or self.streams:
            raise Refused(409, "an update needs a pause before it, and nothing may run")
        if self.updating:
            raise Refused(409, "an update is under way")
        self.updating, self.received = True, False
        return {"message": "started"}

    async def update(self, body):
        if not self.updating or self.feed is None:
            raise Refused(409, "no update has been started")
        info = body["update_info"]
        self.label = BROKEN  # until it is finished
        await self.llm.collective_rpc("tandem_receive", args=(
            self.feed["host"], self.feed["port"], self.feed["token"], info["names"], info["dtype_names"],
            info["shapes"]))
        self.received = True
        return {"message": "updated"}

    async def finish_update(self, body):
        """Without a version it abandons an update that broke off."""
        updating, self.updating = self.updating, False
        if not updating:
            raise Refused(409, "no update has been started")
        if "weight_version" in body:
            if not self.received:
                raise Refused(409, "no weights have come")
            self.label = body["weight_version"]
        return {"message": "finished"}

    # About the server.

    async def models(self, _):
        return {"object": "list", "data": [{"id": self.name, "root": self.kwargs["model"], "owned_by": "tensorrt_llm",
                                            "max_model_len": self.kwargs["max_seq_len"]}]}

    async def version(self, _):
        import tensorrt_llm
        return {"version": tensorrt_llm.__version__}

    async def metrics(self, _):
        lines = [f"vllm:{name} {count}" for name, count in self.counts.items()]
        waiting = sum(one.end is None and one.stream is None
                      for request in self.requests.values() for one in request.completions)
        return "\n".join(lines + [f"vllm:num_requests_waiting {waiting}", ""])

    async def health(self, _):
        check = getattr(self.llm, "_check_health", None)
        if check is not None and not check():
            raise Refused(503, "the engine has ended")
        return {}

    ROUTES = {("POST", "/inference/v1/generate"): generate, ("POST", "/inference/v1/abort_requests"): abort,
              ("POST", "/pause"): pause, ("POST", "/resume"): resume,
              ("POST", "/init_weight_transfer_engine"): connect, ("POST", "/start_weight_update"): start_update,
              ("POST", "/update_weights"): update, ("POST", "/finish_weight_update"): finish_update,
              ("GET", "/v1/models"): models, ("GET", "/version"): version, ("GET", "/metrics"): metrics,
              ("GET", "/health"): health}

    async def answer(self, method, path, body):
        """(status, what to say)"""
        route = self.ROUTES.get((method, path))
        if route is None:
            known = any(path == other for _, other in self.ROUTES)
            return (405, {"message": "Method Not Allowed"}) if known else (404, {"message": "Not Found"})
        try:
            return 200, await route(self, body)
        except Refused as refused:
            return refused.status, {"message": str(refused)}
        except (KeyError, TypeError, ValueError) as error:
            traceback.print_exc()
            return 400, {"message": f"the request does not fit: {error!r}"}
        except Exception as error:  # the engine's: of any kind
            traceback.print_exc()
            check = getattr(self.llm, "_check_health", None)
            if check is not None and not check():
                print(f"tandem_trtllm: error: the engine has ended: {error!r}", file=sys.stderr, flush=True)
                os._exit(1)
            return 500, {"message": f"{type(error).__name__}: {error}"}


def of_token(logprobs, token):
    """The log-probability of a sampled token: a number, or the entry of a dict."""
    if isinstance(logprobs, (int, float)):
        return float(logprobs)
    entry = logprobs[token]
    return float(getattr(entry, "logprob", entry))


async def either(*events):
    """Until one of them is set."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def unless_gone(reader, work):
    """What `work` gives; it is cancelled where whoever asked has ended the connection. Nobody sends more."""
    answer, gone = asyncio.ensure_future(work), asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            answer.cancel()
            raise ConnectionError
        return answer.result()
    finally:
        gone.cancel()


async def serve_connection(server, reader, writer):
    """One request; HTTP/1.1 as far as Tandem speaks it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.strip().lower(): value.strip()
                   for name, _, value in (line.partition(":") for line in head[1:] if line)}
        size = int(headers.get("content-length", 0))
        if size > BODY_BYTES_MAX:
            status, said = 413, {"message": f"a body has at most {BODY_BYTES_MAX} bytes"}
        else:
            text = await reader.readexactly(size)
            try:
                body = json.loads(text) if text else {}
                if not isinstance(body, dict):
                    raise ValueError("it is no object")
            except ValueError as error:
                status, said = 400, {"message": f"the body is no JSON object: {error}"}
            else:
                path = target.partition("?")[0]
                answer = server.answer(method, path, body)
                generates = path == "/inference/v1/generate"
                status, said = await (unless_gone(reader, answer) if generates else answer)
        kind, data = (("text/plain", said) if isinstance(said, str) else ("application/json", json.dumps(said)))
        data = data.encode()
        writer.write(f"HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
                     "connection: close\r\n\r\n".encode() + data)
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        pass  # whoever asked is gone, or speaks no HTTP
    finally:
        writer.close()


def number_devices():
    """TensorRT-LLM's workers take numbers alone in CUDA_VISIBLE_DEVICES, where Tandem names GPUs by their uuids."""
    words = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    if not any(word.startswith("GPU-") for word in words):
        return
    said = subprocess.run(["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"], check=True,
                          capture_output=True, text=True, timeout=60).stdout
    numbers = {uuid.strip(): number.strip() for number, _, uuid in (line.partition(",") for line in said.splitlines())}
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(numbers.get(word, word) for word in words)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # in which nvidia-smi counts


async def make_llm(kwargs):
    """(the LLM, its class of sampling parameters)"""
    from tensorrt_llm import AsyncLLM
    from tensorrt_llm.llmapi import KvCacheConfig, SamplingParams
    settings = {"backend": "pytorch", "orchestrator_type": "ray", "ray_worker_extension_cls": "tandem_trtllm.Worker",
                "allreduce_strategy": "NCCL", "sampler_type": "TRTLLMSampler", **kwargs}
    settings["kv_cache_config"] = KvCacheConfig(**{"enable_block_reuse": True, **kwargs.get("kv_cache_config", {})})
    llm = AsyncLLM(**settings)
    if hasattr(llm, "setup_async"):
        await llm.setup_async()
    return llm, SamplingParams


async def main():
    parser = argparse.ArgumentParser(prog="tandem_trtllm")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--llm", type=json.loads, required=True)
    options = parser.parse_args()
    for key in ("model", "max_seq_len", "max_batch_size"):
        if key not in options.llm:
            parser.error(f"--llm needs {key}")
    number_devices()
    llm, sampling_params = await make_llm(options.llm)
    server = Server(llm, sampling_params, options.served_model_name, options.llm)
    listening = await asyncio.start_server(lambda reader, writer: serve_connection(server, reader, writer),
                                           options.host, options.port)
    print("tandem_trtllm: ready", file=sys.stderr, flush=True)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await stop.wait()
    listening.close()
    llm.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
