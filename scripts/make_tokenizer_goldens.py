#!/usr/bin/env python3
"""Makes the golden ids of the tokenizers' families, with small vocabularies.

    python3 scripts/make_tokenizer_goldens.py tests/golden/tokenizers

needs the package tokenizers. Everything is seeded: the same version gives the same files.

FAMILY.json has the normalizer, pre_tokenizer, post_processor and flags of the tokenizer.json that a
family is published with, and a small vocabulary that is trained on the text below. families.texts.json
is one list of texts for all; FAMILY.golden.json holds for each text its ids without the template
("ids"), what they decode to where that is not the text ("decoded"), the template around a prompt
("template"), and what lists of arbitrary ids decode to ("streams").

scripts/tokenizer_parity compares Tandem with the package on the real vocabularies.
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")

CORPUS = [
    "The actors wait for nobody: every wait has an owner, a deadline and a name.",
    "She's sure they'll say we've won; I'm not, and it doesn't matter what you'd do.",
    "12 + 30 = 42, 1234567 is a number, and so is 3.14159.\n\n\tdef f(x):\n\t\treturn x * x\n",
    "naïve café, déjà vu, Ærøskøbing, straße; Привет, мир; 日本語のテキスト、東京都; العربية ١٢٣",
    "the rain in spain stays mainly in the plain, the rain, the rain; again and again and again",
    "emoji 🙂🙃 and 👩‍👩‍👧 families; arrows → ⇒; dashes – and —; “quotes” and ‘single’ ones",
    "한국어 문장, हिन्दी वाक्य, ภาษาไทย, עברית, Ελληνικά; if (x != y) { z += 0x1F; } // done\r\n",
] * 4

PIECES = [
    " ", "  ", "       ", "\n", "\n\n", "\r\n", "\r", "\t", "\v\f", "\u00a0", "\u1680", "\u2003",
    "\u2028", "\u3000", "\u0085", "\u180e", "\u200b", "\ufeff", "\x00", "\x1f", "\x7f", "\u00ad",
    "the", " rain", "Z", "straße", "Ǆ", "ǅ", "ﬁ", "İ", "ı", "ſ", "K", "Å", "'s", "'S", "'t", "'RE",
    "'Ve", "'m", "'LL", "'d", "'ſ", "’s", "'", "''", "don't", "I'M", "1", "12", "1234567", "3.14",
    "1e-5", "0x1F", "½", "Ⅷ", "²", "①", "١٢٣", "४२", "๓", "𝟘𝟙", "é", "e\u0301", "a\u0323\u0307",
    "a\u0307\u0323", "q\u0307\u0323", "\u0301", "\u0300\u0301\u0302", "Ω", "Ω", "가", "가",
    "각", "ᄀ", "ᆨ", "क़", "क्ष", "نَّ", "日本語", "東京都", "、", "。", "Привет", "Ελλάς", "ภาษา",
    "עִבְרִית", "العربية", "हिन्दी", "한국어", "🙂", "👩‍👩‍👧", "👍🏽", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "❤️", "1️⃣", "𐍈", "𠮷", "𝒳",
    "\ue000", "\U000f0000", "\U0010ffff", "\ufffd", "\uffff", "→", "⇒", "—", "“", "”", "…", "!",
    "!!!", "...", "?!\n", "::", "->", "{", "}\n", ");\n\n", "/*", "*/", "#include", "\\n", "__x__",
    "a_b", "snake_case", "camelCase", "HTTPServer", "x" * 40, "=" * 30, "ab" * 20, "\u0301" * 12,
    "<", "<|", "|>", "<tool", "<tool>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
    "<|begin_of_text|>", "<|eot_id|>", "<|im_en", "<|IM_END|>", "<mask>", "[word]", "<\u304c>",
    "<か\u3099>", "\u00e9nd", "e\u0301nd",
]

# Marks and a composition younger than Unicode 9, by whose tables the reference composes.
YOUNG = ["q\u08d3\u0334 q\u0345\u08d3", "e\u1df9\u0301 e\u0301\u1df9\u0301",
         "\U00011935\U00011930 \U00011938", "a\u0307\u0323\u08d3\u0307\u0323"]


def texts(count, seed):
    rng = random.Random(seed)
    alone = PIECES + YOUNG + ["", " a", "a ", "CASE's 'S", "  two  spaces  ", " \n \n x",
                              "the rain" * 20]
    return alone + ["".join(rng.choice(PIECES) for _ in range(rng.randint(2, 9)))
                    for _ in range(count - len(alone))]


def split_then_bytes(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def begin_with(token, tokenizer):
    return processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(
            single=f"{token} $A", pair=f"{token} $A {token}:1 $B:1",
            special_tokens=[(token, tokenizer.token_to_id(token))])])


def special(*names):
    return [AddedToken(name, special=True, normalized=False) for name in names]


# name -> (normalizer, pre_tokenizer, ignore_merges, added tokens, the token a prompt begins with)
FAMILIES = {
    "gpt2": (None, lambda: pre_tokenizers.ByteLevel(add_prefix_space=False), False,
             special("<|endoftext|>"), None),
    "llama3": (None, lambda: split_then_bytes(LLAMA3), True,
               special("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"), "<|begin_of_text|>"),
    "qwen": (normalizers.NFC, lambda: split_then_bytes(QWEN), False,
             special("<|endoftext|>", "<|im_start|>", "<|im_end|>") + [
                 AddedToken(t, special=False, normalized=False) for t in ("<tool", "<tool>")], None),
    "smollm": (None, lambda: pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]), False,
        special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), None),
    # every flag of an added token, as none of the above has them
    "flags": (normalizers.NFC, lambda: split_then_bytes(QWEN), False, [
        AddedToken("<mask>", special=True, lstrip=True, normalized=False),
        AddedToken("<|im_end|>", special=True, rstrip=True, normalized=False),
        AddedToken("</s>", special=True, lstrip=True, rstrip=True, normalized=False),
        AddedToken("x_y", single_word=True, normalized=False),
        AddedToken("[word]", single_word=True, normalized=False),
        AddedToken("the", single_word=True, normalized=True),
        AddedToken("<か\u3099>", normalized=True)], None),
}


def make_family(out, name, all_texts):
    normalizer, pre_tokenizer, ignore_merges, added, first = FAMILIES[name]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=480, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.add_tokens(added)
    tokenizer.post_processor = (begin_with(first, tokenizer) if first
                                else processors.ByteLevel(trim_offsets=False))
    tokenizer.save(str(out / f"family_{name}.json"), pretty=False)
    cases = {"ids": [], "decoded": {}, "template": tokenizer.encode("").ids, "streams": []}
    for i, text in enumerate(all_texts):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text).ids == cases["template"] + ids
        cases["ids"].append(ids)
        decoded = tokenizer.decode(ids, skip_special_tokens=False)
        if decoded != text:
            cases["decoded"][str(i)] = decoded
    rng = random.Random(7)
    for _ in range(60):
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 20))]
        cases["streams"].append([ids, tokenizer.decode(ids, skip_special_tokens=False),
                                 tokenizer.decode(ids, skip_special_tokens=True)])
    write_json(out / f"family_{name}.golden.json", cases)


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    all_texts = texts(420 + len(YOUNG), 2)
    write_json(out / "families.texts.json", all_texts)
    for name in FAMILIES:
        make_family(out, name, all_texts)


if __name__ == "__main__":
    main()
