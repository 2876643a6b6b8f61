#!/usr/bin/env python3
"""The package math-verify as a reward (pip install math-verify[antlr4_13_2]).

    reward: { type: command, command: [python3, configs/rewards/math_verify.py] }

in   {"id", "completion", "answer", …}, one object per line
out  {"id", "score": 1 or 0, "extra": {"pred": what it found}} or {"id", "error"}

The answer is read as LaTeX, as trainers give it: "\\frac12" and "5" alike. An answer that
math-verify cannot read is an error, which Tandem reports, and never a score of 0. A completion that
takes math-verify longer than SECONDS_MAX scores 0, as in verl and open-r1.
"""
import functools
import json
import logging
import sys

sys.path.pop(0)  # this file has the package's name, and its folder would be searched first
try:
    from math_verify import parse, verify
except ImportError as problem:
    sys.exit(f"{problem}: pip install 'math-verify[antlr4_13_2]' for {sys.executable}")

SECONDS_MAX = 5


@functools.lru_cache(maxsize=4096)
def gold(answer):
    """The reference answer, parsed; none if math-verify finds nothing in it."""
    for text in ("\\boxed{" + answer + "}", answer):
        found = parse(text, parsing_timeout=SECONDS_MAX)
        if found:
            return found
    return None


def judged(item):
    wanted = gold(str(item["answer"]))
    if not wanted:
        return {"error": f"math-verify finds no answer in the reference {item['answer']!r}"}
    found = parse(item["completion"], parsing_timeout=SECONDS_MAX)
    right = bool(found) and verify(wanted, found, timeout_seconds=SECONDS_MAX)
    extra = {"pred": str(found[-1])[:200]} if found else {}
    return {"score": float(right), "extra": extra}


def main():
    logging.disable(logging.CRITICAL)  # it logs each time-out with a traceback
    for line in sys.stdin:
        item = json.loads(line)
        try:
            result = judged(item)
        except Exception as problem:  # reported to Tandem, which tries again
            result = {"error": repr(problem)}
        print(json.dumps({"id": item["id"], **result}), flush=True)


if __name__ == "__main__":
    main()
