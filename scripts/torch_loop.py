#!/usr/bin/env python3
"""The job of configs/smollm2.yaml as a plain loop of PyTorch and transformers, to compare with.

Each step generates with a bf16 copy of the model, scores, and updates the f32 weights once, under
bf16 autocast; nothing overlaps. Model, data, reward, batch, sampling, optimizer and evaluation are
read from the job file. Groups whose rewards are all the same have no gradient and are not computed.

usage: scripts/torch_loop.py [--steps 60] [--seed 17] [--eval 4] [JOB.yaml]

`--eval N` takes N sampled completions and a greedy one of each held-out question, before and after;
0 leaves the evaluations out. Needs torch, transformers and PyYAML; OMP_NUM_THREADS chooses the
number of threads.
"""
import argparse
import collections
import copy
import json
import pathlib
import random
import re
import statistics
import time

import torch
import transformers
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Loop:
    def __init__(self, job, folder, seed):
        self.job, self.folder = job, folder
        self.pattern = re.compile(job["reward"]["pattern"], re.ASCII)
        self.rng = random.Random(seed)
        torch.manual_seed(seed)
        path = folder / job["model"]["path"]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(path, padding_side="left")
        self.model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
        self.sampler = copy.deepcopy(self.model).to(torch.bfloat16).eval()
        options = job["learner"]["optimizer"]
        self.grad_clip = options["grad_clip"]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options["lr"],
                                           betas=options["betas"],
                                           weight_decay=options["weight_decay"])

    def records(self, key):
        return [json.loads(line) for name in self.job["data"][key]
                for line in (self.folder / name).read_text().splitlines()]

    def batches(self):
        """Batches of records, in a new order each time that all have been seen."""
        records, size = self.records("train_files"), self.job["data"]["train_batch_size"]
        while True:
            self.rng.shuffle(records)
            for at in range(0, len(records) - size + 1, size):
                yield records[at : at + size]

    @torch.no_grad()
    def generate(self, records, n, temperature):
        """n completions of each record's prompt: sequences, their attention mask, the mask of the
        completions' tokens, and rewards (records, n). Temperature 0 is greedy."""
        prompts = self.tokenizer.apply_chat_template(
            [record["messages"] for record in records], add_generation_prompt=True, padding=True,
            return_tensors="pt", return_dict=True)
        how = ({"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
               if temperature > 0 else {"do_sample": False})
        sequences = self.sampler.generate(
            **prompts, **how, num_return_sequences=n,
            max_new_tokens=self.job["data"]["max_response_length"])
        completions = sequences[:, prompts["input_ids"].shape[1]:]
        ends = completions == self.tokenizer.eos_token_id
        mask = ends.cumsum(1) - ends.long() == 0  # up to the first end, with it
        attention = torch.cat([prompts["attention_mask"].repeat_interleave(n, 0), mask], 1)
        texts = self.tokenizer.batch_decode(completions, skip_special_tokens=True)
        rewards = torch.tensor([self.reward(text, records[i // n]) for i, text in enumerate(texts)])
        return sequences, attention, mask, rewards.view(len(records), n)

    def reward(self, text, record):
        found = self.pattern.search(text)
        return float(found is not None and found[1] == record["answer"])

    def step(self, records):
        rollout = self.job["rollout"]
        sequences, attention, mask, rewards = self.generate(records, rollout["n"],
                                                            rollout["temperature"])
        mean, spread = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True)
        advantages = ((rewards - mean) / (spread + 1e-6)).flatten()
        used = advantages != 0
        if used.any():
            self.update(sequences[used], attention[used], mask[used], advantages[used], mask.sum())
        return rewards.mean().item()

    def update(self, sequences, attention, mask, advantages, tokens):
        """One update; the loss is a mean over all tokens of the batch's completions."""
        length = mask.shape[1]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(sequences, attention_mask=attention,
                                logits_to_keep=length + 1).logits[:, :-1]
        log_probs = -torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), sequences[:, -length:].flatten(), reduction="none")
        loss = -(advantages[:, None] * mask * log_probs.view_as(mask)).sum() / tokens
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_clip)
        self.optimizer.step()
        with torch.no_grad():
            for copied, weight in zip(self.sampler.parameters(), self.model.parameters()):
                copied.copy_(weight)

    def evaluate(self, n, temperature):
        """The mean reward of each data source, and of all under `all`."""
        earned = collections.defaultdict(list)
        size = max(1, 64 // n)
        records = self.records("val_files")
        for at in range(0, len(records), size):
            part = records[at : at + size]
            for record, rewards in zip(part, self.generate(part, n, temperature)[-1].tolist()):
                earned[record["data_source"]] += rewards
                earned["all"] += rewards
        return {source: statistics.mean(rewards) for source, rewards in sorted(earned.items())}


def show_evaluation(loop, when, samples):
    for name, n, temperature in (("greedy", 1, 0.0), ("T = 1", samples, 1.0)):
        means = loop.evaluate(n, temperature)
        print(f"{when}, {name}: " + ", ".join(f"{source} {mean:.3f}"
                                              for source, mean in means.items()), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", type=pathlib.Path, metavar="JOB.yaml",
                        default=ROOT / "configs/smollm2.yaml")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--eval", type=int, metavar="N")
    given = parser.parse_args()
    job = yaml.safe_load(given.job.read_text())
    steps = job["learner"]["total_training_steps"] if given.steps is None else given.steps
    samples = job["eval"]["n"] if given.eval is None else given.eval
    loop = Loop(job, given.job.resolve().parent, job["seed"] if given.seed is None else given.seed)
    if samples:
        show_evaluation(loop, "before", samples)
    began = time.perf_counter()
    for step, records in zip(range(1, steps + 1), loop.batches()):
        start = time.perf_counter()
        reward = loop.step(records)
        now = time.perf_counter()
        print(f"step {step}: {now - start:.1f} s, {now - began:.1f} s in all, "
              f"mean reward {reward:.3f}", flush=True)
    if samples:
        show_evaluation(loop, "after", samples)


if __name__ == "__main__":
    main()
