#!/usr/bin/env python3
"""A stand-in for TensorRT-LLM under Tandem's own server for it (tandem_trtllm.py), which runs here as it is.

usage: fake_trtllm.py FAKE_VLLM (arguments of tandem_trtllm) [--max-num-seqs N] [--fault NAME …]

--max-num-seqs is the max_batch_size of --llm.

The modules `torch` and `tensorrt_llm` are made here, as far as that server uses them, and refuse what the real ones
would. Behind them is the process FAKE_VLLM with its model: a completion is asked for in pieces of a few tokens, since
AsyncLLM streams, and weights go to it by disk. Faults are FAKE_VLLM's; where they end it the engine has ended. With
wait-for-update what runs waits for an update once --fault-at completions are whole.
"""
import asyncio
import ctypes
import importlib
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import types
import urllib.error
import urllib.request

PIECE = 5  # tokens
OF_FAKE = {"--fault", "--fault-at", "--fault-once"}
KNOWN = {"model", "dtype", "load_format", "max_seq_len", "max_batch_size", "max_num_tokens", "tensor_parallel_size",
         "kv_cache_config", "backend", "orchestrator_type", "ray_worker_extension_cls", "allreduce_strategy",
         "sampler_type"}
DEVICE = "GPU-0"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Engine:
    """The process with the model."""

    def __init__(self, program, arguments):
        self.port, self.calls = free_port(), 0

        def end_with_us():
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        self.process = subprocess.Popen(
            [program, *arguments, "--port", str(self.port)], preexec_fn=end_with_us,
            env={**os.environ, "VLLM_SERVER_DEV_MODE": "1"})
        while self.alive():
            try:
                self.ask("GET", "/health")
                return
            except OSError:
                time.sleep(0.01)  # it starts
        raise RuntimeError(f"the executor ended with {self.process.returncode}")

    def alive(self):
        return self.process.poll() is None

    def ask(self, method, route, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{route}", method=method,
                                         data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or b"null")

    async def ask_later(self, route, body):
        """The same without a thread, as a stall must not hold one."""
        data = json.dumps(body).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        try:
            writer.write(f"POST {route} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                         f"content-length: {len(data)}\r\nconnection: close\r\n\r\n".encode() + data)
            await writer.drain()
            head, _, said = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        if head.split(b" ")[1:2] != [b"200"]:
            raise RuntimeError(f"the executor failed: {said.decode()}")
        return json.loads(said)

    async def piece(self, tokens, sampling):
        self.calls += 1
        body = {"request_id": f"piece-{self.calls}", "token_ids": tokens, "sampling_params": sampling,
                "return_token_ids": True, "cache_salt": "one"}
        return await self.ask_later("/inference/v1/generate", body)


class SamplingParams:
    # With an end_id of one's own the real one has no tokenizer for `stop`, and `min_tokens` bans nothing.
    FIELDS = {"max_tokens", "temperature", "top_p", "top_k", "min_p", "seed", "logprobs", "end_id", "pad_id",
              "stop_token_ids", "detokenize", "return_context_logits"}

    def __init__(self, **given):
        unknown = set(given) - self.FIELDS
        if unknown:
            raise TypeError(f"SamplingParams() got unexpected keyword arguments {unknown}")
        if given["max_tokens"] < 1:
            raise ValueError("max_tokens must be greater than 0")
        self.given = given

    def for_piece(self, done):
        given = self.given
        size = min(PIECE, given["max_tokens"] - done)
        greedy = given.get("top_k") == 1
        return {"n": 1, "max_tokens": size, "temperature": 0 if greedy else given.get("temperature", 1),
                "top_p": given.get("top_p", 1),
                "top_k": 0 if greedy else given.get("top_k", 0), "min_p": given.get("min_p", 0),
                "seed": given.get("seed", 0) + 7919 * done, "logprobs": 1,
                "stop_token_ids": given.get("stop_token_ids", []), "detokenize": False}


class Logprob:
    def __init__(self, logprob):
        self.logprob = logprob


class Said:
    def __init__(self):
        self.token_ids, self.logprobs, self.finish_reason = [], [], None


class Logits:
    """Rows of which only the log-probability of each next token is known."""

    def __init__(self, scores):
        self.scores = scores

    def float(self):
        return self

    def __getitem__(self, place):
        at, token = place
        return self.scores[at][str(token)]["logprob"]


class RequestOutput:
    """What generate_async() gives: awaited whole, or as a stream."""

    def __init__(self, engine, places, tokens, params):
        self.engine, self.places, self.tokens, self.params = engine, places, tokens, params
        self.outputs, self.context_logits = [Said()], None
        self.aborted = asyncio.Event()
        self.held = None  # why it has ended, which is not told yet

    def abort(self):
        self.aborted.set()

    def __await__(self):
        return self.whole().__await__()

    async def whole(self):
        if self.params.given.get("return_context_logits"):
            said = await self.engine.piece(self.tokens, {"max_tokens": 1, "temperature": 0, "prompt_logprobs": 0})
            self.context_logits = Logits(said["prompt_logprobs"][1:])
            return self
        async for _ in self:
            pass
        return self

    async def __aiter__(self):
        # The real one drops a request that is ended while it waits for its place, and never answers.
        async with self.places:
            if self.aborted.is_set():
                await asyncio.Event().wait()
            async for output in self.pieces():
                yield output

    async def pieces(self):
        said = self.outputs[0]
        while said.finish_reason is None:
            if self.held is not None:  # late-answers: all but the end has come
                await figures_asked()
                said.finish_reason, self.held = self.held, None
                yield self
                return
            if WAIT["after"] == 0:
                await self.aborted.wait()  # by the pause of an update
            piece = asyncio.ensure_future(self.engine.piece(
                self.tokens + said.token_ids, self.params.for_piece(len(said.token_ids))))
            end = asyncio.ensure_future(self.aborted.wait())
            await asyncio.wait({piece, end}, return_when=asyncio.FIRST_COMPLETED)
            end.cancel()
            if self.aborted.is_set():
                piece.cancel()
                WAIT["after"] = None
                said.finish_reason = "cancelled"
                said.logprobs = said.logprobs[:-1]  # one that is ended may lack some
            else:
                choice = piece.result()["choices"][0]
                said.token_ids += choice["token_ids"]
                said.logprobs += [{entry["token_id"]: Logprob(entry["logprob"])}
                                  for entry in choice["logprobs"]["content"]]
                if choice["finish_reason"] != "length":
                    said.finish_reason = choice["finish_reason"]
                elif len(said.token_ids) >= self.params.given["max_tokens"]:
                    said.finish_reason = "length"
                if WAIT["after"] and said.finish_reason is not None:
                    WAIT["after"] -= 1
                if LATE and said.finish_reason is not None:
                    said.finish_reason, self.held = None, said.finish_reason
            yield self


FIGURES = {"asked": 0, "more": None}
WAIT = {"after": None}  # wait-for-update: so many completions become whole before what runs waits for an update


async def figures_asked():
    """Until the figures have been asked for twice more, so that whoever asks has seen the tokens counted."""
    until = FIGURES["asked"] + 2
    while FIGURES["asked"] < until:
        FIGURES["more"] = FIGURES["more"] or asyncio.Event()
        await FIGURES["more"].wait()


def count_figures(server):
    tell = server.metrics

    async def metrics(self, body):
        FIGURES["asked"] += 1
        if FIGURES["more"] is not None:
            FIGURES["more"].set()
            FIGURES["more"] = None
        return await tell(self, body)
    server.ROUTES["GET", "/metrics"] = metrics


class WorkerExtension:
    """Of one rank, in this process."""

    engine = None  # set by AsyncLLM
    rank, device_id = 0, 0

    def __init__(self):
        self.tensors = {}

    def update_weights(self, handles=None):
        if handles is not None:
            for name, (make, arguments) in handles[DEVICE]:
                arguments = list(arguments)
                arguments[6] = self.device_id
                self.tensors[name] = make(*arguments)
            return
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tandem-fake-trtllm-"))
        try:
            self.write(folder / "model.safetensors")
            for route, body in (("/pause?mode=keep", {}),
                                ("/collective_rpc", {"method": "update_config",
                                                     "args": [{"load_config": {"load_format": "auto"}}]}),
                                ("/collective_rpc", {"method": "reload_weights",
                                                     "kwargs": {"weights_path": str(folder)}}),
                                ("/resume", {})):
                self.engine.ask("POST", route, body)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"the worker failed: {error.read().decode()}") from None
        finally:
            shutil.rmtree(folder)
            self.tensors = {}

    def write(self, file):
        header, data = {}, b""
        for name, tensor in self.tensors.items():
            header[name] = {"dtype": tensor.dtype.in_files, "shape": tensor.shape,
                            "data_offsets": [len(data), len(data) + len(tensor.data)]}
            data += tensor.data
        text = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + data)


class AsyncLLM:
    def __init__(self, **kwargs):
        unknown = set(kwargs) - KNOWN
        if unknown:
            raise ValueError(f"{unknown}: Extra inputs are not permitted")
        if kwargs["orchestrator_type"] != "ray" or kwargs["backend"] != "pytorch":
            raise ValueError("AsyncLLM needs the PyTorch backend and Ray")
        model = {"--load-format": "dummy", "--dtype": kwargs["dtype"], "--max-model-len": kwargs["max_seq_len"],
                 "--max-num-seqs": 64, "--max-num-batched-tokens": kwargs["max_num_tokens"],
                 "--served-model-name": "engine", "--logprobs-mode": "processed_logprobs", "--host": "127.0.0.1"}
        model.update(FAKE_ARGUMENTS)
        words = [str(word) for pair in model.items() for word in pair]
        self.places = asyncio.Semaphore(kwargs["max_batch_size"])
        self.engine = Engine(FAKE_VLLM, [kwargs["model"], *words, "--enable-scale-out"])
        module, _, name = kwargs["ray_worker_extension_cls"].rpartition(".")
        self.worker = getattr(__import__(module), name)()
        self.worker.engine = self.engine

    async def setup_async(self):
        pass

    def generate_async(self, inputs, sampling_params=None, streaming=False, cache_salt=None):
        assert streaming or (sampling_params.given["max_tokens"] == 1 and cache_salt)
        return RequestOutput(self.engine, self.places, inputs, sampling_params)

    async def collective_rpc(self, method, args=(), kwargs=None, unique_reply_rank=None):
        return [await asyncio.to_thread(getattr(self.worker, method), *args, **(kwargs or {}))]

    def _check_health(self):
        return self.engine.alive()

    def shutdown(self):
        self.engine.process.kill()


class KvCacheConfig:
    def __init__(self, enable_block_reuse=True, free_gpu_memory_fraction=0.9):
        pass


class Dtype:
    def __init__(self, itemsize, in_files):
        self.itemsize, self.in_files = itemsize, in_files


class Tensor:
    def __init__(self, data, dtype):
        self.data, self.dtype, self.shape = bytes(data), dtype, None

    def reshape(self, shape):
        self.shape = shape
        return self

    def to(self, _):
        return self


def module(name, **members):
    made = types.ModuleType(name)
    made.__dict__.update(members)
    sys.modules[name] = made


def install():
    module("torch", float32=Dtype(4, "F32"), bfloat16=Dtype(2, "BF16"), frombuffer=Tensor,
           log_softmax=lambda logits, dim: logits)
    module("tensorrt_llm", AsyncLLM=AsyncLLM, __version__="1.2.1")
    module("tensorrt_llm.llmapi", KvCacheConfig=KvCacheConfig, SamplingParams=SamplingParams)
    module("tensorrt_llm.llmapi.rlhf_utils", WorkerExtension=WorkerExtension)
    module("tensorrt_llm._torch", __path__=[])
    module("tensorrt_llm._torch.utils", get_device_uuid=lambda _: DEVICE)


FAKE_VLLM, FAKE_ARGUMENTS, rest = sys.argv[1], {}, []
words = iter(sys.argv[2:])
for word in words:
    if word in OF_FAKE:
        FAKE_ARGUMENTS[word] = next(words)
    elif word == "--max-num-seqs":
        at = rest.index("--llm") + 1
        rest[at] = json.dumps({**json.loads(rest[at]), "max_batch_size": int(next(words))})
    else:
        rest.append(word)
LATE = FAKE_ARGUMENTS.get("--fault") == "late-answers"
if FAKE_ARGUMENTS.get("--fault") == "wait-for-update":
    WAIT["after"] = int(FAKE_ARGUMENTS["--fault-at"])
if LATE or WAIT["after"]:
    del FAKE_ARGUMENTS["--fault"]
if FAKE_ARGUMENTS.get("--fault") == "at-start":
    sys.exit("RuntimeError: not enough memory")
install()
sys.argv[1:] = rest
server = importlib.import_module("tandem_trtllm")
count_figures(server.Server)
asyncio.run(server.main())
