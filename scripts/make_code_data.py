#!/usr/bin/env python3
"""Writes configs/data/code_*.jsonl and configs/models/code: small programs that are judged by tests.

A prompt names a language and what its program does with a whole number ("py x*7:"):

    py     a Python program that reads the number and prints the result
    fn     a Python function f, judged by asserts
    cpp    a C++ program, as py

Every prompt lies in exactly one of the files:

    code_val.jsonl      held out for evaluation
    code_warm.jsonl     the supervised warm start, with completions
    code_train.jsonl    reinforcement learning, tests only

The model is as small as that of arithmetic, with a token for each character. The split depends on
SEED alone; running the script again writes the same bytes.
"""
import json
import pathlib
import random

SEED = 17
CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "configs"
SPECIAL = ["<|pad|>", "<|endoftext|>"]
INPUTS = (0, 3, 12)
PROGRAMS = {
    "py": "print(int(input()){})",
    "fn": "def f(x):\n return x{}",
    "cpp": "#include <iostream>\nint main(){{int x;std::cin>>x;std::cout<<(x{});}}",
}
RESULTS = {"*": lambda x, n: x * n, "+": lambda x, n: x + n, "-": lambda x, n: x - n}


def tests(language, sign, number):
    results = {x: RESULTS[sign](x, number) for x in INPUTS}
    if language == "fn":
        return [f"assert f({x}) == {result}" for x, result in results.items()]
    return [{"input": f"{x}\n", "output": f"{result}\n"} for x, result in results.items()]


def tasks():
    for language, program in PROGRAMS.items():
        for sign in RESULTS:
            for number in range(1, 10 if language == "cpp" else 40):
                what = f"{sign}{number}"
                yield {"prompt": f"{language} x{what}:", "answer": tests(language, sign, number),
                       "completion": program.format(what)}


def write(name, records, keep):
    lines = [json.dumps({key: record[key] for key in keep}) + "\n" for record in records]
    (CONFIGS / "data" / name).write_text("".join(lines), encoding="ascii")


def byte_token(character):
    """A byte as tokenizer.json writes it."""
    return {" ": "\u0120", "\n": "\u010a"}.get(character, character)


def write_model(records):
    folder = CONFIGS / "models" / "code"
    source = CONFIGS / "models" / "arithmetic"
    folder.mkdir(parents=True, exist_ok=True)
    used = sorted({c for record in records for c in record["prompt"] + record["completion"]})
    vocabulary = SPECIAL + [byte_token(c) for c in used]
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = {token: i for i, token in enumerate(vocabulary)}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, indent=1) + "\n")
    config = json.loads((source / "config.json").read_text())
    config["vocab_size"] = len(vocabulary)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main():
    records = list(tasks())
    random.Random(SEED).shuffle(records)
    write_model(records)
    write("code_val.jsonl", records[:24], ("prompt", "answer"))
    write("code_warm.jsonl", records[24:184], ("prompt", "answer", "completion"))
    write("code_train.jsonl", records[184:], ("prompt", "answer"))


if __name__ == "__main__":
    main()
