"""Weights for vLLM from Tandem: the backends "tandem_tcp" and "tandem_ipc" of --weight-transfer-config.

They have the four phases of vLLM's own backends (init, start, update, finish), and need neither NCCL nor
a disk that both sides see. By tcp, on any device, the wire is that of runtime/weights/tensor_feed.h: a
worker sends MAGIC, the feed's word and its rank; it gets MAGIC, the number of bytes, the tensors' bytes in
the order of `names`, little endian and without gaps, and the CRC-32 of all of them. By ipc a worker opens
a block of GPU memory by its CUDA IPC handle, in which each tensor begins at its offset.

vLLM finds this module by its entry point (vllm.general_plugins), so it is enough that the folder with
it and its .dist-info is in PYTHONPATH. Tandem does that for the servers that it starts.
"""
import base64
import ctypes
import math
import socket
import struct
import zlib
from dataclasses import dataclass

MAGIC = b"TANDEMW1"
SILENCE_MAX_S = 60


class Feed:
    """One connection to the feed: reads exactly what is asked for, and sums it up."""

    def __init__(self, host, port, token, rank):
        self.socket = socket.create_connection((host, port), timeout=SILENCE_MAX_S)
        self.crc = 0
        self.socket.sendall(MAGIC + token.encode() + struct.pack("<I", rank))
        if self.read(len(MAGIC)) != MAGIC:
            raise RuntimeError("Tandem's feed did not answer as a feed of tensors")
        self.left = struct.unpack("<Q", self.read(8))[0]
        self.crc = 0

    def read(self, size):
        data = bytearray(size)
        view = memoryview(data)
        while view:
            got = self.socket.recv_into(view)
            if got == 0:
                raise RuntimeError("Tandem's feed ended the connection: it has no version on offer")
            view = view[got:]
        self.crc = zlib.crc32(data, self.crc)
        return data

    def tensor(self, size):
        if size > self.left:
            raise RuntimeError("the tensors of the update are more than Tandem's feed has")
        self.left -= size
        return self.read(size)

    def finish(self):
        if self.left:
            raise RuntimeError(f"Tandem's feed has {self.left} bytes more than the update names")
        crc = self.crc
        if struct.unpack("<I", self.read(4))[0] != crc:
            raise RuntimeError("the tensors arrived damaged: their CRC-32 is not that of the feed")
        self.socket.close()


class Handle(ctypes.Structure):
    """cudaIpcMemHandle_t, which is passed by value."""
    _fields_ = [("reserved", ctypes.c_byte * 64)]


def cuda_runtime():
    """The CUDA runtime that PyTorch has loaded, with its current device."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.rstrip("\n")[line.find("/"):]
            if "/libcudart.so" in path:
                return ctypes.CDLL(path)
    raise RuntimeError("no CUDA runtime is loaded: weights by `ipc` need a GPU")


class Block:
    """A block of GPU memory of another process, which torch.as_tensor() takes for an array of bytes."""

    def __init__(self, block, size):
        handle = base64.b64decode(block)
        if len(handle) != ctypes.sizeof(Handle):
            raise ValueError("a block's name has 64 bytes")
        self.runtime, self.pointer = cuda_runtime(), ctypes.c_void_p()
        peers = ctypes.c_uint(1)  # cudaIpcMemLazyEnablePeerAccess
        status = self.runtime.cudaIpcOpenMemHandle(
            ctypes.byref(self.pointer), Handle.from_buffer_copy(handle), peers)
        if status:
            self.runtime.cudaGetLastError()  # else PyTorch's next operation would fail by it
            raise RuntimeError(f"cannot open Tandem's block of GPU memory: CUDA error {status}; "
                               "by `ipc` the rollout and its server share a GPU")
        self.__cuda_array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (self.pointer.value, False),
                                         "version": 3}

    def close(self):
        self.runtime.cudaIpcCloseMemHandle(self.pointer)


def register():
    import torch
    from vllm.distributed.weight_transfer.base import (
        WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo)
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    @dataclass
    class FeedInfo(WeightTransferInitInfo):
        host: str
        port: int
        token: str

    @dataclass
    class BlockInfo(WeightTransferInitInfo):
        block: str
        bytes: int

    @dataclass
    class NamedTensors(WeightTransferUpdateInfo):
        names: list
        dtype_names: list
        shapes: list

    @dataclass
    class PlacedTensors(NamedTensors):
        offsets: list

    class TandemEngine(WeightTransferEngine):
        def init_transfer_engine(self, init_info):
            self.source = init_info

        def start_weight_update(self):
            from vllm.model_executor.model_loader.reload import initialize_layerwise_reload
            initialize_layerwise_reload(self.model)

        def finish_weight_update(self):
            from vllm.model_executor.model_loader.reload import finalize_layerwise_reload
            finalize_layerwise_reload(self.model, self.model_config)
            if self.device.type == "cpu":
                self.repack_heads()

        def repack_heads(self):
            """On a CPU the reload leaves a tied output head as it was: packed from the old embedding."""
            from vllm.model_executor.layers.vocab_parallel_embedding import (
                ParallelLMHead, VocabParallelEmbedding)
            for module in self.model.modules():
                if isinstance(module, (VocabParallelEmbedding, ParallelLMHead)):
                    module.quant_method.process_weights_after_loading(module)

        def shutdown(self):
            pass

    class TandemTcpEngine(TandemEngine):
        init_info_cls, update_info_cls = FeedInfo, NamedTensors

        def receive_weights(self, update_info):
            at = self.source
            feed = Feed(at.host, at.port, at.token, self.parallel_config.rank)

            def tensors():
                for name, dtype_name, shape in zip(
                        update_info.names, update_info.dtype_names, update_info.shapes):
                    dtype = getattr(torch, dtype_name)
                    data = feed.tensor(math.prod(shape) * dtype.itemsize)
                    yield name, torch.frombuffer(data, dtype=dtype).reshape(shape).to(self.device)

            self.model.load_weights(tensors())
            feed.finish()

    class TandemIpcEngine(TandemEngine):
        init_info_cls, update_info_cls = BlockInfo, PlacedTensors

        def receive_weights(self, update_info):
            block = Block(self.source.block, self.source.bytes)
            try:
                data = torch.as_tensor(block, device=self.device)

                def tensors():
                    for name, dtype_name, shape, offset in zip(
                            update_info.names, update_info.dtype_names, update_info.shapes, update_info.offsets):
                        dtype = getattr(torch, dtype_name)
                        size = math.prod(shape) * dtype.itemsize
                        # A copy: what is loaded may be looked at after the block is closed.
                        yield name, data[offset:offset + size].clone().view(dtype).reshape(shape)

                self.model.load_weights(tensors())
            finally:
                torch.cuda.synchronize(self.device)  # what was queued reads the block
                block.close()

    for name, engine in (("tandem_tcp", TandemTcpEngine), ("tandem_ipc", TandemIpcEngine)):
        if name not in WeightTransferEngineFactory._registry:
            WeightTransferEngineFactory.register_engine(name, engine)
