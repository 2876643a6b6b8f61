"""Weights for vLLM from Tandem, over TCP: the backend "tandem_tcp" of --weight-transfer-config.

It has the four phases of vLLM's own backends (init, start, update, finish), and needs neither NCCL nor
a disk that both sides see, on any device. The wire is that of runtime/weights/tensor_feed.h: a worker
sends MAGIC, the feed's word and its rank; it gets MAGIC, the number of bytes, the tensors' bytes in the
order of `names`, little endian and without gaps, and the CRC-32 of all of them.

vLLM finds this module by its entry point (vllm.general_plugins), so it is enough that the folder with
it and its .dist-info is in PYTHONPATH. Tandem does that for the servers that it starts.
"""
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


def register():
    import torch
    from vllm.distributed.weight_transfer.base import (
        WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo)
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    @dataclass
    class InitInfo(WeightTransferInitInfo):
        host: str
        port: int
        token: str

    @dataclass
    class UpdateInfo(WeightTransferUpdateInfo):
        names: list
        dtype_names: list
        shapes: list

    class TandemTcpEngine(WeightTransferEngine):
        init_info_cls = InitInfo
        update_info_cls = UpdateInfo

        def init_transfer_engine(self, init_info):
            self.feed_at = init_info

        def start_weight_update(self):
            from vllm.model_executor.model_loader.reload import initialize_layerwise_reload
            initialize_layerwise_reload(self.model)

        def receive_weights(self, update_info):
            at = self.feed_at
            feed = Feed(at.host, at.port, at.token, self.parallel_config.rank)

            def tensors():
                for name, dtype_name, shape in zip(
                        update_info.names, update_info.dtype_names, update_info.shapes):
                    dtype = getattr(torch, dtype_name)
                    data = feed.tensor(math.prod(shape) * dtype.itemsize)
                    yield name, torch.frombuffer(data, dtype=dtype).reshape(shape).to(self.device)

            self.model.load_weights(tensors())
            feed.finish()

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

    if "tandem_tcp" not in WeightTransferEngineFactory._registry:
        WeightTransferEngineFactory.register_engine("tandem_tcp", TandemTcpEngine)
