#!/usr/bin/env python3
"""Measures by PyTorch and transformers what tests/bench/model_bench.cc measures by Tandem, and
prints a JSON object of the same form; that source explains the figures.

usage: torch_cpu_peer.py MODEL [--dtype float32|bfloat16] [--threads 2]
                         [--what decode,prefill,long,train] [--batch 1,8,32]

Generation is that of transformers, eager: prompts of one length, one batch from the first token to
the last, greedy. A step of training computes the prompts of all sequences, shared ones too, so both
kinds of batch cost the same and are measured once; logits are computed for completions only. In
bfloat16, training keeps float32 weights and computes under autocast.
"""
import argparse
import json
import math
import pathlib
import statistics
import time

import torch
import torch.nn.functional as F
import transformers

SHAPES = pathlib.Path(__file__).resolve().parent.parent / "tests/bench/models"
REPETITIONS = 3
DECODE_PROMPT, DECODE_TOKENS, PREFILL_PROMPT, LONG_PROMPT = 32, 64, 512, 2048
TRAIN_SEQUENCES, TRAIN_PROMPT, TRAIN_COMPLETION = 32, 18, 24
BANDWIDTH_BYTES = 1 << 30
CLIP_LOW, CLIP_HIGH, GRAD_CLIP = 0.2, 0.28, 1.0


def repeated(measure):
    """The median, after one repetition that is not counted."""
    measure()
    return statistics.median(measure() for _ in range(REPETITIONS))


def make_model(name, dtype):
    shape = SHAPES / f"{name}.json"
    if shape.is_file():
        fields = json.loads(shape.read_text())
        config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
        torch.manual_seed(1)
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(name, dtype=dtype)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)  # without eos
    return model


def random_tokens(model, *shape):
    return torch.randint(model.config.vocab_size, shape)


class Clock(transformers.StoppingCriteria):
    """Notes when each token was there; stops nothing."""

    def __init__(self):
        self.times = []

    def __call__(self, input_ids, scores, **_):
        self.times.append(time.perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool)


def decode(model, batch, prompt=DECODE_PROMPT):
    prompts, clock = random_tokens(model, batch, prompt), Clock()
    model.generate(prompts, attention_mask=torch.ones_like(prompts), do_sample=False,
                   max_new_tokens=DECODE_TOKENS, stopping_criteria=[clock])
    assert len(clock.times) == DECODE_TOKENS
    return batch * (DECODE_TOKENS - 1) / (clock.times[-1] - clock.times[0])


@torch.inference_mode()
def prefill(model):
    prompt = random_tokens(model, 1, PREFILL_PROMPT)
    began = time.perf_counter()
    model(prompt, use_cache=True, logits_to_keep=1).logits.argmax(-1)
    return PREFILL_PROMPT / (time.perf_counter() - began)


def read_bandwidth():
    words = torch.ones(BANDWIDTH_BYTES // 8, dtype=torch.int64)

    def once():
        began = time.perf_counter()
        words.sum()
        return BANDWIDTH_BYTES / (time.perf_counter() - began)

    return repeated(once)


def weight_bytes(model):
    """Every matrix once. Of an embedding that is not the head as well, only one row."""
    total = sum(p.numel() * p.element_size() for p in model.parameters())
    if not model.config.tie_word_embeddings:
        embedding = model.get_input_embeddings().weight
        total -= embedding.numel() * embedding.element_size()
    return total


class Trainer:
    def __init__(self, model, dtype):
        self.model = model.train()
        self.autocast = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, betas=(0.9, 0.95),
                                           weight_decay=0.0)

    def step(self):
        """Tokens per second of one step."""
        tokens = random_tokens(self.model, TRAIN_SEQUENCES, TRAIN_PROMPT + TRAIN_COMPLETION)
        before = torch.full((TRAIN_SEQUENCES, TRAIN_COMPLETION),
                            -math.log(self.model.config.vocab_size))
        advantages = torch.tensor([-1.0, 1.0]).repeat(TRAIN_SEQUENCES // 2)[:, None]
        began = time.perf_counter()
        with self.autocast:
            logits = self.model(tokens, use_cache=False,
                                logits_to_keep=TRAIN_COMPLETION + 1).logits[:, :-1]
        log_probs = -F.cross_entropy(logits.float().flatten(0, 1),
                                     tokens[:, -TRAIN_COMPLETION:].flatten(), reduction="none")
        ratio = (log_probs.view_as(before) - before).exp()
        clipped = ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH)
        loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), GRAD_CLIP)
        self.optimizer.step()
        return tokens.numel() / (time.perf_counter() - began)


def measure(given, dtype):
    figures = {}
    if {"decode", "prefill", "long"} & set(given.what):
        model = make_model(given.model, dtype).eval()
        if "decode" in given.what:
            figures["bandwidth"] = read_bandwidth()
            figures["weight_bytes"] = weight_bytes(model)
            for batch in given.batch:
                figures[f"decode_{batch}"] = rate = repeated(lambda: decode(model, batch))
                if batch == 1:
                    share = rate * figures["weight_bytes"] / figures["bandwidth"]
                    figures["decode_1_share"] = share
        if "prefill" in given.what:
            figures["prefill"] = repeated(lambda: prefill(model))
        if "long" in given.what:
            figures["decode_long"] = repeated(lambda: decode(model, 1, LONG_PROMPT))
        del model
    if "train" in given.what:
        rate = repeated(Trainer(make_model(given.model, torch.float32), dtype).step)
        figures["train_shared"] = figures["train_apart"] = rate
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--what", default="decode,prefill,long,train", type=lambda text: text.split(","))
    parser.add_argument("--batch", default="1,8,32",
                        type=lambda text: [int(item) for item in text.split(",")])
    given = parser.parse_args()
    if unknown := set(given.what) - {"decode", "prefill", "long", "train"}:
        parser.error(f"--what does not know {', '.join(sorted(unknown))}")
    torch.set_num_threads(given.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    figures = measure(given, getattr(torch, given.dtype))
    by = f"PyTorch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}"
    print(json.dumps({"by": by, "model": given.model, "dtype": given.dtype,
                      "threads": given.threads, "figures": figures}))


if __name__ == "__main__":
    main()
