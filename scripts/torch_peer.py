#!/usr/bin/env python3
"""PyTorch's speed on the same GPU, in the form of Google Benchmark's JSON.

usage: torch_peer.py FILE

Measures what tests/bench/cuda_*.cc do and PyTorch has an equivalent for; training steps of Qwen3's
shapes only where transformers is installed. A part that fails is left out, with a line on stderr.
FILE is written after each part, so that it holds what was measured when time ends this.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.nn.functional as F

BATCHES, BATCH_SECONDS, ROTATION_BYTES = 15, 5e-3, 256 << 20
rows, limits = [], {"bytes_per_second": 0, "items_per_second": 0}


def random(*shape, dtype=torch.bfloat16):
    return (torch.rand(*shape, device="cuda", dtype=torch.float32) - 0.5).to(dtype)


def seconds_per_call(calls):
    """Median over batches; the calls of one batch follow each other in turn."""
    turn = 0

    def batch(count):
        nonlocal turn
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            calls[turn % len(calls)]()
            turn += 1
        torch.cuda.synchronize()
        return (time.perf_counter() - began) / count

    batch(len(calls))
    count = min(max(int(BATCH_SECONDS / batch(len(calls))), 1), 1000)
    return statistics.median(batch(count) for _ in range(BATCHES))


def show(name, counter, rate, limit=0):
    row = {"name": "torch/" + name, counter: rate}
    if limit:
        row |= {"limit": limit, "ratio": rate / limit}
    rows.append(row)


def measure(name, counter, amount, make, is_limit=False):
    """`make` makes one call with operands of its own; `amount` is its bytes or operations."""
    sets = min(int(ROTATION_BYTES / amount) + 1, 64) if counter == "bytes_per_second" else 1
    rate = amount / seconds_per_call([make() for _ in range(sets)])
    show(name, counter, rate, limits[counter])
    if is_limit:
        limits[counter] = rate


def the_limits():
    a, b = random(1 << 28, dtype=torch.float32), random(1 << 28, dtype=torch.float32)
    measure("limit/copy", "bytes_per_second", 2 << 30, lambda: lambda: b.copy_(a), is_limit=True)
    x, w = random(8192, 8192), random(8192, 8192)
    measure("limit/gemm", "items_per_second", 2 * 8192**3, lambda: lambda: x @ w, is_limit=True)


def operators():
    T, H, I, n = 16384, 1024, 3072, 1 << 26

    def norm():
        x, w = random(T, H), random(H)
        return lambda: F.rms_norm(x, (H,), w, 1e-6)

    def swiglu():
        gate, up = random(T, I), random(T, I)
        return lambda: F.silu(gate) * up

    def adamw():
        p = torch.nn.Parameter(random(n, dtype=torch.float32))
        p.grad = random(n, dtype=torch.float32)
        return torch.optim.AdamW([p], lr=1e-6, fused=True).step

    measure("memory/rms_norm", "bytes_per_second", 2 * 2 * T * H, norm)
    measure("memory/swiglu", "bytes_per_second", 3 * 2 * T * I, swiglu)
    measure("memory/adamw", "bytes_per_second", 7 * 4 * n, adamw)


def cross_entropy():
    """Log-probabilities of logits that are there, as memory/log_prob."""
    rows, vocab = 1024, 151936

    def make():
        logits = random(rows, vocab, dtype=torch.float32)
        ids = torch.randint(vocab, (rows,), device="cuda")
        return lambda: F.cross_entropy(logits, ids, reduction="none")

    measure("memory/log_prob", "bytes_per_second", 4 * rows * vocab, make)


def products(name, hidden, intermediate):
    """Forward; few rows one call at a time, which is their cost without a graph."""
    heads, kv_heads, D, vocab = 16, 8, 128, 151936
    weights = {"qkv": ((heads + 2 * kv_heads) * D, hidden), "o": (hidden, heads * D),
               "gate_up": (2 * intermediate, hidden), "down": (hidden, intermediate),
               "head": (vocab, hidden)}
    for title, (n, k) in weights.items():
        def make(rows):
            x, w = random(rows, k), random(n, k)
            return lambda: F.linear(x, w)

        measure(f"product/forward/{name}/{title}/4096", "items_per_second", 2 * 4096 * n * k,
                lambda: make(4096))
        for rows in (1, 64) if name == "0.6b" else ():
            measure(f"decode/{name}/{title}/{rows}", "bytes_per_second",
                    2 * (n * k + rows * k + rows * n), lambda: make(rows))


def one_sequence(hidden, intermediate):
    """transformers' own loop over a cache of fixed size: greedy, prompt of 128 tokens."""
    model, vocab = qwen3(hidden, intermediate)
    model.eval()
    ids = torch.randint(vocab, (1, 128), device="cuda")

    def seconds(tokens):
        torch.cuda.synchronize()
        began = time.perf_counter()
        model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                       cache_implementation="static", disable_compile=True, pad_token_id=0)
        torch.cuda.synchronize()
        return time.perf_counter() - began

    seconds(4)
    show("engine/one", "tokens_per_second", 64 / (seconds(72) - seconds(8)))


def attention():
    T, heads, kv_heads, D = 4096, 16, 8, 128
    q, k, v = (random(1, h, T, D).requires_grad_() for h in (heads, kv_heads, kv_heads))
    dout = random(1, heads, T, D)

    def run():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    operations = 4 * heads * D * T * (T + 1) / 2
    measure("attention/forward/1x4096", "items_per_second", operations, lambda: run)
    forward = seconds_per_call([run])
    both = seconds_per_call([lambda: torch.autograd.grad(run(), (q, k, v), dout)])
    show("attention/backward/1x4096", "items_per_second", 2.5 * operations / (both - forward),
         limits["items_per_second"])


def qwen3(hidden, intermediate, layers=28, vocab=151936):
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=vocab, hidden_size=hidden, intermediate_size=intermediate, head_dim=128,
        num_hidden_layers=layers, num_attention_heads=16, num_key_value_heads=8,
        tie_word_embeddings=True, rope_theta=1e6, attn_implementation="sdpa")
    with torch.device("cuda"):
        return Qwen3ForCausalLM(config).to(torch.bfloat16), vocab


def learner(name, hidden, intermediate):
    """A step on 8 sequences of 512 tokens; operations as in tests/bench/cuda_learner.cc."""
    sequences, length, layers = 8, 512, 28
    model, vocab = qwen3(hidden, intermediate, layers)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    ids = torch.randint(vocab, (sequences, length), device="cuda")

    def step():
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    tokens = sequences * length
    matrices = layers * hidden * (2048 + 4096 + 3 * intermediate) + vocab * hidden
    pairs = sequences * length * (length + 1) / 2
    operations = 6 * matrices * tokens + 12 * pairs * 2048 * layers
    limit = tokens * limits["items_per_second"] / operations
    show(f"learner/step/{name}", "tokens_per_second", tokens / seconds_per_call([step]), limit)


def write(path):
    """In one move, so that nobody finds half a file."""
    with open(path + ".part", "w") as file:
        json.dump({"context": {"torch": torch.__version__}, "benchmarks": rows}, file, indent=2)
    os.replace(path + ".part", path)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        sys.exit("torch_peer.py: torch finds no GPU")
    small, large = ("0.6b", 1024, 3072), ("1.7b", 2048, 6144)
    for part in (the_limits, operators, attention, lambda: learner(*small),
                 lambda: learner(*large), cross_entropy, lambda: products(*small),
                 lambda: products(*large), lambda: one_sequence(*small[1:])):
        try:
            part()
        except Exception as error:  # no memory, or an older version without one of the functions
            print(f"torch_peer.py: {error}", file=sys.stderr)
        write(sys.argv[1])


if __name__ == "__main__":
    main()
