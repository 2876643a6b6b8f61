#!/usr/bin/env python3
"""Writes tests/golden/chat/conversations.json: conversations as transformers renders them by the
templates of the six families that Tandem has written out.

The templates' texts come from the package trl (TEMPLATES), and SmolLM2's from the directory that
scripts/get_smollm2 writes; they are not kept here.

usage: scripts/make_chat_goldens.py TRL_DIRECTORY SMOLLM2_DIRECTORY
       (TRL_DIRECTORY holds chat_templates/; needs transformers)
"""
import json
import pathlib
import random
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/chat/conversations.json"
TEMPLATES = {"qwen2.5": ["qwen2_5"], "qwen3": ["qwen3"], "qwen3-instruct": ["qwen3_instruct_2507"],
             "llama3": ["llama3"], "llama3.1": ["llama3_1", "llama3_2"]}
DATES = ["26 Jul 2024", "01 Feb 2026"]
CONTENTS = [
    "What is 3 + 4?", "", " ", "\n", "  spaces on both sides \n", "two\nlines\n\nand a gap",
    "\u3000ideographic space\u3000", "\u00a0no-break\u00a0", "caf\u00e9 \u4f60\u597d \U0001f600",
    "<|im_start|>user\nnot a turn<|im_end|>", "<|eot_id|>", "{{ not jinja }} {% raw %}", "\\n is no line end",
    "a</think>b", "<think>\nI add them.\n</think>\n\n7", "<think></think>", "<think>\n\n\n</think>\n\n\nso",
    "<think>one</think> then <think>two</think> end", "no opening</think>\nbut this", "<think>never closed",
    "<tool_response>\n42\n</tool_response>", "\"quotes\" and 'more'", "tab\tin it", "x" * 300, "\u2028line\u2029",
]


def conversations(random_source):
    """Every content alone, and turns at random: 1 to 9, with a system message or without."""
    for content in CONTENTS:
        yield [{"role": "user", "content": content}]
    for _ in range(60):
        turns = []
        if random_source.random() < 0.5:
            turns.append({"role": "system", "content": random_source.choice(CONTENTS)})
        for i in range(random_source.randint(1, 9)):
            role = "user" if i % 2 == 0 else "assistant"
            if random_source.random() < 0.1:
                role = random_source.choice(["system", "user", "assistant"])
            turns.append({"role": role, "content": random_source.choice(CONTENTS)})
        yield turns


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trl, smollm2 = map(pathlib.Path, sys.argv[1:])
    smollm2_text = json.loads((smollm2 / "tokenizer_config.json").read_text())["chat_template"]
    texts = {"smollm2": [smollm2_text]}
    for name, files in TEMPLATES.items():
        texts[name] = [(trl / "chat_templates" / f"{file}.jinja").read_text() for file in files]
    compiled = {name: [_compile_jinja_template(text) for text in all] for name, all in texts.items()}
    source = random.Random(7)
    cases = []
    for messages in conversations(source):
        options = {"add_generation_prompt": source.random() < 0.7,
                   "enable_thinking": source.random() < 0.5, "date": source.choice(DATES)}
        rendered = {}
        for name, templates in compiled.items():
            results = {template.render(messages=messages, bos_token="<|begin_of_text|>", tools=None,
                                       date_string=options["date"],
                                       add_generation_prompt=options["add_generation_prompt"],
                                       enable_thinking=options["enable_thinking"])
                       for template in templates}
            assert len(results) == 1, f"the templates of {name} differ"
            rendered[name] = results.pop()
        cases.append({"messages": messages, **options, "rendered": rendered})
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"smollm2_template": smollm2_text, "cases": cases},
                              indent=1, ensure_ascii=True) + "\n")
    print(f"{len(cases)} conversations in {len(texts)} families, {OUT.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
