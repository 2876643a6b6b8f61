#!/usr/bin/env python3
"""Tandem's server for TensorRT-LLM (actors/rollout/external/tandem_trtllm.py) by itself, over an LLM of the test's.
served_engine_test drives it whole, over a stand-in with a model."""
import asyncio
import json
import os
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "actors/rollout/external"))
import tandem_trtllm  # noqa: E402


class Stream:
    """Says token after token as the test lets it, and ends when it is told to."""

    def __init__(self):
        self.said = types.SimpleNamespace(token_ids=[], logprobs=[], finish_reason=None)
        self.outputs = [self.said]
        self.more = asyncio.Event()

    def say(self, token):
        self.said.token_ids.append(token)
        self.said.logprobs.append(-float(token))
        self.more.set()

    def abort(self):
        self.said.finish_reason = "cancelled"
        self.more.set()

    async def __aiter__(self):
        while self.said.finish_reason is None:
            await self.more.wait()
            self.more.clear()
            yield self


class Llm:
    def __init__(self):
        self.streams, self.prompts, self.fails = [], [], False

    def generate_async(self, prompt, sampling_params=None, streaming=False):
        self.prompts.append(prompt)
        self.streams.append(Stream())
        return self.streams[-1]

    async def collective_rpc(self, method, args=()):
        if self.fails:
            raise RuntimeError("a worker has failed")
        return [None]


def make_server(places=4):
    llm = Llm()
    return llm, tandem_trtllm.Server(llm, lambda **given: given, "m",
                                     {"model": "x", "max_seq_len": 100, "max_batch_size": places})


ASK = {"request_id": "r", "token_ids": [1, 2], "sampling_params": {"n": 2, "max_tokens": 5}}
INFO = {"init_info": {"host": "h", "port": 1, "token": "t"}}
UPDATE = {"update_info": {"names": [], "dtype_names": [], "shapes": []}}


async def settle():
    for _ in range(50):
        await asyncio.sleep(0)


class Server(unittest.IsolatedAsyncioTestCase):
    async def ask(self, server, route, body=None, method="POST"):
        return await server.answer(method, route, body or {})

    async def test_a_completion_goes_on_behind_a_pause_under_the_next_version(self):
        llm, server = make_server()
        asked = asyncio.create_task(self.ask(server, "/inference/v1/generate", ASK))
        await settle()
        for stream in llm.streams:
            stream.say(7)
        await settle()
        self.assertEqual((await self.ask(server, "/pause"))[0], 200)
        self.assertFalse(server.streams)
        await self.ask(server, "/init_weight_transfer_engine", INFO)
        for route, body in (("/start_weight_update", {}), ("/update_weights", UPDATE),
                            ("/finish_weight_update", {"weight_version": "v1"}), ("/resume", {})):
            self.assertEqual((await self.ask(server, route, body))[0], 200, route)
        await settle()
        self.assertEqual(llm.prompts[2:], [[1, 2, 7]] * 2)
        for stream in llm.streams[2:]:
            stream.say(8)
            stream.said.finish_reason = "stop"
        status, said = await asked
        self.assertEqual(status, 200)
        for choice in said["choices"]:
            self.assertEqual(choice["token_ids"], [7, 8])
            self.assertEqual(choice["weight_versions"], [{"start": 0, "end": 1, "version": "initial"},
                                                         {"start": 1, "end": 2, "version": "v1"}])

    async def test_no_more_are_at_the_engine_than_have_a_place(self):
        llm, server = make_server(places=1)
        asked = asyncio.create_task(self.ask(server, "/inference/v1/generate", ASK))
        await settle()
        self.assertEqual(len(llm.streams), 1)
        self.assertIn("vllm:num_requests_waiting 1\n", (await self.ask(server, "/metrics", method="GET"))[1])
        llm.streams[0].said.finish_reason = "stop"
        llm.streams[0].more.set()
        await settle()
        self.assertEqual(len(llm.streams), 2)
        llm.streams[1].said.finish_reason = "stop"
        llm.streams[1].more.set()
        self.assertEqual((await asked)[0], 200)

    async def test_tokens_without_a_log_probability_come_anew(self):
        llm, server = make_server()
        asked = asyncio.create_task(self.ask(server, "/inference/v1/generate", ASK))
        await settle()
        for stream in llm.streams:
            stream.said.token_ids += [7, 8]
            stream.said.logprobs.append(-1.0)
        pause = asyncio.create_task(self.ask(server, "/pause"))
        await pause
        await self.ask(server, "/resume")
        await settle()
        self.assertEqual(llm.prompts[2:], [[1, 2, 7]] * 2)
        await self.ask(server, "/inference/v1/abort_requests", {"request_ids": ["generate-tokens-r"]})
        self.assertEqual((await asked)[0], 200)

    async def test_weights_that_are_not_whole_are_never_computed_with(self):
        llm, server = make_server()
        self.assertEqual((await self.ask(server, "/start_weight_update"))[0], 409, "without a pause")
        await self.ask(server, "/pause")
        self.assertEqual((await self.ask(server, "/update_weights", UPDATE))[0], 409, "without a start")
        await self.ask(server, "/init_weight_transfer_engine", INFO)
        await self.ask(server, "/start_weight_update")
        self.assertEqual((await self.ask(server, "/resume"))[0], 409, "amid an update")
        finish = "/finish_weight_update", {"weight_version": "v"}
        self.assertEqual((await self.ask(server, *finish))[0], 409, "no weights have come")
        await self.ask(server, "/start_weight_update")
        llm.fails = True
        self.assertEqual((await self.ask(server, "/update_weights", UPDATE))[0], 500)
        self.assertEqual((await self.ask(server, "/finish_weight_update"))[0], 200, "it is abandoned")
        self.assertEqual((await self.ask(server, "/resume"))[0], 409, "they are not whole")
        llm.fails = False
        await self.ask(server, "/start_weight_update")
        await self.ask(server, "/update_weights", UPDATE)
        await self.ask(server, *finish)
        self.assertEqual((await self.ask(server, "/resume"))[0], 200)
        self.assertEqual(server.label, "v")

    async def test_what_is_aborted_in_a_pause_is_answered_at_once(self):
        _, server = make_server()
        await self.ask(server, "/pause")
        asked = asyncio.create_task(self.ask(server, "/inference/v1/generate", ASK))
        await settle()
        await self.ask(server, "/inference/v1/abort_requests", {"request_ids": ["generate-tokens-r"]})
        status, said = await asyncio.wait_for(asked, 30)
        self.assertEqual((status, [choice["finish_reason"] for choice in said["choices"]]), (200, ["abort"] * 2))

    async def test_one_that_fails_ends_those_beside_it(self):
        llm, server = make_server()
        asked = asyncio.create_task(self.ask(server, "/inference/v1/generate", ASK))
        await settle()
        llm.streams[0].abort()  # by itself
        self.assertEqual((await asked)[0], 500)
        await settle()
        self.assertEqual(llm.streams[1].said.finish_reason, "cancelled")
        self.assertFalse(server.streams or server.requests)

    async def test_whoever_is_gone_leaves_nothing(self):
        llm, server = make_server()
        listening = await asyncio.start_server(
            lambda reader, writer: tandem_trtllm.serve_connection(server, reader, writer), "127.0.0.1", 0)
        host, port = listening.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(host, port)
        body = json.dumps(ASK).encode()
        writer.write(b"POST /inference/v1/generate HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        while not server.streams:
            await asyncio.sleep(0.001)
        writer.close()
        while server.streams or server.requests:
            await asyncio.sleep(0.001)
        self.assertEqual({stream.said.finish_reason for stream in llm.streams}, {"cancelled"})
        listening.close()

    async def test_what_does_not_fit_is_refused(self):
        _, server = make_server()
        for body in ({"token_ids": []}, {"token_ids": [1] * 99, "sampling_params": {"max_tokens": 2}},
                     {"token_ids": 7}, {"token_ids": [1], "sampling_params": []}):
            self.assertEqual((await self.ask(server, "/inference/v1/generate", body))[0], 400, body)
        self.assertEqual((await self.ask(server, "/none"))[0], 404)
        self.assertEqual((await self.ask(server, "/pause", method="GET"))[0], 405)


class Devices(unittest.TestCase):
    def numbers(self, visible):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "nvidia-smi")
            program.write_text("#!/bin/sh\nprintf '0, GPU-aa\\n1, GPU-bb\\n2, GPU-cc\\n'\n")
            program.chmod(0o755)
            with mock.patch.dict(os.environ, {"PATH": f"{folder}:{os.environ['PATH']}",
                                              "CUDA_VISIBLE_DEVICES": visible}):
                tandem_trtllm.number_devices()
                return os.environ["CUDA_VISIBLE_DEVICES"]

    def test_uuids_become_numbers(self):
        self.assertEqual(self.numbers("GPU-cc,GPU-aa"), "2,0")
        self.assertEqual(self.numbers("1,0"), "1,0")
        self.assertEqual(self.numbers(""), "")


if __name__ == "__main__":
    unittest.main()
