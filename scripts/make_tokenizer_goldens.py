#!/usr/bin/env python3
"""Makes the golden ids of the tokenizers' families, and compares a whole vocabulary with Tandem.

    python3 scripts/make_tokenizer_goldens.py tests/golden/tokenizers
    python3 scripts/make_tokenizer_goldens.py --check build/release/tandem MODEL_DIR...
    python3 scripts/make_tokenizer_goldens.py --qwen RANKS DIR     # a file such as qwen.tiktoken
    python3 scripts/make_tokenizer_goldens.py --gguf FILE DIR      # needs the package gguf

needs the package tokenizers. Everything is seeded: the same version gives the same files.

FAMILY.json has the normalizer, pre_tokenizer, post_processor and flags of the tokenizer.json that a
family is published with, and a small vocabulary that is trained on the text below. families.texts.json
is one list of texts for all; FAMILY.golden.json holds for each text its ids without the template
("ids"), what they decode to where that is not the text ("decoded"), the template around a prompt
("template"), and what lists of arbitrary ids decode to ("streams").

--check compares the ids of the same kind of text, and of every code point that Unicode 14 has, and
names the code points that differ. --qwen and --gguf write the tokenizer.json of real vocabularies.
"""

import json
import pathlib
import random
import subprocess
import sys
import unicodedata

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

# Marks that Unicode took up after version 9, whose tables the reference composes by.
YOUNG_MARKS = [c for c in range(0x110000) if unicodedata.combining(chr(c)) and
               not unicodedata.ucd_3_2_0.combining(chr(c))]


def texts(count, seed):
    rng = random.Random(seed)
    alone = PIECES + ["", " a", "a ", "CASE's 'S", "  two  spaces  ", " \n \n x", "the rain" * 20]
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


def ids_of(tandem, directory, batch):
    """Tandem's ids of each text; None where it refuses."""
    command = [tandem, "tokenize", directory, "-o", "json", "--", *batch]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{directory}: {done.stderr}")
    return [item["ids"] for item in json.loads(done.stdout)]


def check(tandem, directory):
    tokenizer = Tokenizer.from_file(str(pathlib.Path(directory) / "tokenizer.json"))
    corpus = [t for t in texts(20000, 1) if t and "\0" not in t]
    points = [c for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    spelled = [f"a{chr(c)}1{chr(c)}{chr(c)} '{chr(c)}e\u0301{chr(c)}\n" for c in points]
    for name, batch_of in (("difficult texts", corpus), ("code points", spelled)):
        equal, differ = 0, []
        for at in range(0, len(batch_of), 2000):
            batch = batch_of[at:at + 2000]
            theirs = [e.ids for e in tokenizer.encode_batch(batch)]
            for i, (a, b) in enumerate(zip(ids_of(tandem, directory, batch), theirs)):
                equal += a == b
                if a != b:
                    differ.append(at + i)
        print(f"{directory}: {equal} of {len(batch_of)} {name} equal")
        if batch_of is corpus:
            for i in differ[:10]:
                print("   ", json.dumps(corpus[i]))
            continue
        newer = [points[i] for i in differ if unicodedata.category(chr(points[i])) == "Cn"]
        young = [points[i] for i in differ if points[i] in set(YOUNG_MARKS)]
        other = sorted({points[i] for i in differ} - set(newer) - set(young))
        for what, which in (("newer than Unicode 14", newer), ("marks younger than Unicode 3.2",
                            young), ("others", other)):
            print(f"    {what}: {len(which)}", " ".join(f"{c:04X}" for c in which[:150]))


def bytes_to_symbols():
    symbols, stand_in = {}, 0x100
    for byte in range(256):
        prints = 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte
        symbols[byte] = chr(byte if prints else stand_in)
        stand_in += not prints
    return symbols


def recover_merges(ranks):
    """The two parts that BPE joins last, for each token of several bytes, in the order of ranks."""
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [bytes([b]) for b in token]
        while len(parts) > 2:
            pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(zip(parts, parts[1:]))]
            best, i = min(pairs)
            if best >= rank:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        if len(parts) == 2:
            yield parts


def write_real(out, vocab, merges, family):
    normalizer, pre_tokenizer, ignore_merges, added, _ = FAMILIES[family]
    tokenizer = Tokenizer(models.BPE(vocab, merges, ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_tokens(added)
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"), pretty=False)


def write_qwen(ranks_file, out):
    import base64
    lines = pathlib.Path(ranks_file).read_text().split("\n")
    ranks = {base64.b64decode(line.split()[0]): int(line.split()[1]) for line in lines if line}
    symbols = bytes_to_symbols()
    spell = lambda token: "".join(symbols[b] for b in token)
    merges = [tuple(spell(p) for p in parts) for parts in recover_merges(ranks)]
    write_real(out, {spell(token): rank for token, rank in ranks.items()}, merges, "qwen")


def write_gguf(file, out):
    import gguf
    fields = gguf.GGUFReader(file).fields
    vocab = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    write_real(out, {token: i for i, token in enumerate(vocab)}, merges, "smollm")


def main():
    arguments = sys.argv[1:]
    if len(arguments) >= 3 and arguments[0] == "--check":
        for directory in arguments[2:]:
            check(arguments[1], directory)
    elif len(arguments) == 3 and arguments[0] == "--qwen":
        write_qwen(*arguments[1:])
    elif len(arguments) == 3 and arguments[0] == "--gguf":
        write_gguf(*arguments[1:])
    elif len(arguments) == 1 and not arguments[0].startswith("-"):
        out = pathlib.Path(arguments[0])
        all_texts = texts(420, 2)
        write_json(out / "families.texts.json", all_texts)
        for name in FAMILIES:
            make_family(out, name, all_texts)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
