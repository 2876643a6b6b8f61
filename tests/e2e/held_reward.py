#!/usr/bin/env python3
"""The small job's reward, ^0, which stops once its run has trained so many steps, until let go.

usage: held_reward.py METRICS STEPS GO

METRICS is the run's metrics.jsonl, GO a file whose existence lets go. So a test can do to a run
that is midway whatever it wants to, for as long as that takes: the run ends no sooner.
"""
import json
import os
import sys
import time


class StepsTrained:
    def __init__(self, metrics):
        self.metrics, self.size, self.steps = metrics, 0, 0

    def __call__(self):
        size = os.path.getsize(self.metrics) if os.path.exists(self.metrics) else 0
        if size != self.size:
            with open(self.metrics, "rb") as lines:
                self.size, self.steps = size, sum(1 for text in lines if b'"eval"' not in text)
        return self.steps


steps_trained, hold, go = StepsTrained(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for line in sys.stdin:
    while not os.path.exists(go) and steps_trained() >= hold:
        time.sleep(0.005)
    item = json.loads(line)
    score = float(item["completion"].startswith("0"))
    print(json.dumps({"id": item["id"], "score": score}), flush=True)
