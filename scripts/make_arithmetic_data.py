#!/usr/bin/env python3
"""Writes configs/data: two-digit addition, answers only, and three-digit addition with steps.

Every prompt of a task lies in exactly one of its files, so what is evaluated was never trained on:

    val.jsonl, scratchpad_val.jsonl      held out for evaluation
    warm.jsonl, scratchpad_warm.jsonl    the supervised warm start, with completions
    train.jsonl, scratchpad_train.jsonl  reinforcement learning, answers only

The split depends on SEED alone; running the script again writes the same bytes.
"""
import json
import pathlib
import random

SEED = 17
DATA = pathlib.Path(__file__).resolve().parent.parent / "configs" / "data"


def two_digits():
    """36+01= -> 037: all 10,000 pairs."""
    for a in range(100):
        for b in range(100):
            answer = f"{a + b:03d}"
            yield {"prompt": f"{a:02d}+{b:02d}=", "answer": answer, "completion": answer}


def three_digits(rng, count):
    """857+164= -> 7+4+0=11;5+6+1=12;8+1+1=10;1021: digits and carry, ones first; then the sum."""
    for pair in rng.sample(range(1_000_000), count):
        a, b = divmod(pair, 1000)
        carry, steps = 0, ""
        for power in (1, 10, 100):
            x, y = a // power % 10, b // power % 10
            steps += f"{x}+{y}+{carry}={x + y + carry:02d};"
            carry = (x + y + carry) // 10
        answer = f"{a + b:04d}"
        yield {"prompt": f"{a:03d}+{b:03d}=", "answer": answer, "completion": steps + answer}


def write(name, records, keep):
    lines = [json.dumps({key: record[key] for key in keep}) + "\n" for record in records]
    (DATA / name).write_text("".join(lines), encoding="ascii")


def write_splits(prefix, records, val, warm):
    assert len({record["prompt"] for record in records}) == len(records)
    write(prefix + "val.jsonl", records[:val], ("prompt", "answer"))
    write(prefix + "warm.jsonl", records[val : val + warm], ("prompt", "answer", "completion"))
    write(prefix + "train.jsonl", records[val + warm :], ("prompt", "answer"))


def main():
    DATA.mkdir(parents=True, exist_ok=True)
    rng = random.Random(SEED)
    pairs = list(two_digits())
    rng.shuffle(pairs)
    write_splits("", pairs, val=1000, warm=2000)
    write_splits("scratchpad_", list(three_digits(rng, 14_000)), val=1000, warm=5000)


if __name__ == "__main__":
    main()
