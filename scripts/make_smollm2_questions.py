#!/usr/bin/env python3
"""Writes configs/data/smollm2_train.jsonl and smollm2_val.jsonl: four kinds of simple questions for
a pretrained model, in equal parts.

    multiply    a times b, from 2 to 12
    add         a plus b, from 1 to 20
    largest     the largest of three different numbers below 100
    apples      a plus b as a word problem of one sentence

Each question has the operands in some order and one of its task's wordings. The operands of a
held-out question occur in no training question of the same task, in any order or wording; `add` and
`apples` hold out the same pairs, so neither gives the other's answers away.

The files depend on SEED alone; running the script again writes the same bytes.
"""
import dataclasses
import itertools
import json
import math
import pathlib
import random
from collections.abc import Callable

SEED = 17
HELD_OUT = 64  # questions of a task in smollm2_val.jsonl
TRAINED = 144  # and in smollm2_train.jsonl; of products there are hardly more
DATA = pathlib.Path(__file__).resolve().parent.parent / "configs" / "data"


@dataclasses.dataclass(frozen=True)
class Task:
    operands: list[tuple[int, ...]]  # each in ascending order
    answer: Callable[[tuple[int, ...]], int]
    wordings: tuple[str, ...]

    def questions(self, operands):
        """All questions about the operands."""
        return [wording.format(*order).replace(" 1 apples", " 1 apple")
                for order in sorted(set(itertools.permutations(operands)))
                for wording in self.wordings]


def pairs(low, high):
    return list(itertools.combinations_with_replacement(range(low, high + 1), 2))


TASKS = {
    "multiply": Task(pairs(2, 12), math.prod, ("What is {} times {}?", "Multiply {} by {}.")),
    "add": Task(pairs(1, 20), sum, ("What is {} plus {}?", "Add {} and {}.")),
    "largest": Task(list(itertools.combinations(range(1, 100), 3)), max,
                    ("Which of the numbers {}, {} and {} is the largest?",
                     "What is the largest of the numbers {}, {} and {}?")),
    "apples": Task(pairs(1, 20), sum,
                   ("Anna has {} apples and buys {} more, so how many apples does she have?",
                    "Tom has {} apples and gets {} more: how many apples does Tom have now?")),
}


def split(task):
    """The operands that are held out, and those that are trained on."""
    chosen = random.Random(SEED).sample(task.operands, min(len(task.operands), 3 * HELD_OUT))
    held_out = len(chosen) // 3
    return chosen[:held_out], chosen[held_out:]


def records(rng, source, operands, count):
    """`count` questions of a task, spread over the operands as evenly as can be."""
    task = TASKS[source]
    asked = []
    for one in operands:
        questions = task.questions(one)
        asked.append([(one, question) for question in rng.sample(questions, len(questions))])
    turns = itertools.chain.from_iterable(itertools.zip_longest(*asked))
    taken = list(itertools.islice(filter(None, turns), count))
    assert len(taken) == count
    return [{"messages": [{"role": "user",
                           "content": f"{question} Answer with the number only."}],
             "answer": str(task.answer(one)), "data_source": source} for one, question in taken]


def numbers(record):
    """A record's operands, in ascending order."""
    words = record["messages"][0]["content"].replace(",", " ").replace("?", " ").replace(".", " ")
    return tuple(sorted(int(word) for word in words.split() if word.isdigit()))


def check(held_out, trained):
    prompts = [record["messages"][0]["content"] for record in held_out + trained]
    assert len(set(prompts)) == len(prompts)
    for kinds in (("multiply",), ("largest",), ("add", "apples")):
        held, known = ({numbers(record) for record in part if record["data_source"] in kinds}
                       for part in (held_out, trained))
        assert held and known and not held & known


def write(name, rng, part):
    text = "".join(json.dumps(record) + "\n" for record in rng.sample(part, len(part)))
    (DATA / name).write_text(text, encoding="ascii")


def main():
    rng = random.Random(SEED)
    held_out, trained = [], []
    for source, task in TASKS.items():
        held, known = split(task)
        held_out += records(rng, source, held, HELD_OUT)
        trained += records(rng, source, known, TRAINED)
    check(held_out, trained)
    DATA.mkdir(parents=True, exist_ok=True)
    write("smollm2_val.jsonl", rng, held_out)
    write("smollm2_train.jsonl", rng, trained)


if __name__ == "__main__":
    main()
