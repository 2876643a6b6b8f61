#!/usr/bin/env python3
"""A reward of your own: one JSON object per line in, one per line out.

in   {"id", "prompt", "completion", "answer", "data", "truncated"}
out  {"id", "score"} or {"id", "error"}, in any order

`data` is the record of the data set. The process lives as long as the reward actor; what it writes
to stderr is in the actor's log (tandem logs JOB/reward/0). An error, or no line in time, is retried
and then discards the group: it never counts as a score of 0.
"""
import json
import sys


def score(completion, answer):
    """The share of digits that are right, 1 only for the whole answer."""
    if completion == answer:
        return 1.0
    if len(completion) != len(answer):
        return 0.0
    return 0.5 * sum(c == a for c, a in zip(completion, answer)) / len(answer)


for line in sys.stdin:
    item = json.loads(line)
    try:
        result = {"id": item["id"], "score": score(item["completion"], str(item["answer"]))}
    except Exception as problem:  # reported to Tandem, which retries
        result = {"id": item["id"], "error": repr(problem)}
    print(json.dumps(result), flush=True)
