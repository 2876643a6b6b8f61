#!/usr/bin/env python3
"""Two processes that make a group of Gloo's at a store of ours, as clients of PyTorch's, and sum over it; for
torch_store_test. usage: torch_clients.py HOST PORT"""
import datetime
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

PATIENCE = datetime.timedelta(seconds=60)


def rank(number, host, port):
    store = dist.TCPStore(host, port, is_master=False, timeout=PATIENCE, wait_for_workers=False)
    store.set(f"name{number}", f"rank {number}")
    other = store.get(f"name{1 - number}")
    assert other == f"rank {1 - number}".encode(), other
    assert not store.check(["nobody sets this"])
    assert store.add("both", 1) in (1, 2)
    store.wait(["name0", "name1"], PATIENCE)
    dist.init_process_group("gloo", store=store, rank=number, world_size=2, timeout=PATIENCE)
    numbers = torch.tensor([float(number + 1)])
    dist.all_reduce(numbers)
    assert numbers.item() == 3, numbers
    dist.broadcast(numbers, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    processes.spawn(rank, args=(sys.argv[1], int(sys.argv[2])), nprocs=2)
    print(f"PyTorch {torch.__version__}: two ranks met")
