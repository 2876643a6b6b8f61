#!/usr/bin/env python3
"""Makes the golden ids of the tokenizers' families, with small vocabularies.

    python3 scripts/make_tokenizer_goldens.py tests/golden/tokenizers

needs the packages tokenizers and sentencepiece. Everything is seeded: the same version gives the same files.

family_NAME.json has the normalizer, pre_tokenizer, post_processor and flags of the tokenizer.json that a
family is published with, and a small vocabulary that is trained on the text below. families.texts.json
is one list of texts for all; family_NAME.golden.json holds for each text, or for one in "every" of
them, its ids without the template ("ids"), what they decode to where that is not the text ("decoded"),
the template around a prompt ("template"), and what lists of arbitrary ids decode to ("streams").
Where tokens of single bytes in a row are no UTF-8, the text is that of docs, not the package's:
decoded_as_ours() says how they differ.

charsmap.golden.json has random texts, and what the charsmap of family_charsmap.json, SentencePiece's own
nmt_nfkc, makes of each.

scripts/tokenizer_parity compares Tandem with the package on the real vocabularies.
"""

import io
import json
import math
import pathlib
import random
import sys
import unicodedata

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN.replace(r"\p{L}+|", r"[\p{L}\p{M}]+|").replace(r"[^\s\p{L}", r"[^\s\p{L}\p{M}")
# GPT-4o's, and so that of gpt-oss; Mistral's Tekken and Llama 4 have one like it.
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK3 = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
             r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
# DeepSeek LLM and V2
DEEPSEEK2_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-"
    r"ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮ"
    r"ⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+")
DEEPSEEK2 = [r"[\r\n]", DEEPSEEK2_LETTERS, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$",
             "[一-龥ࠀ-一가-\ud7ff]+"]

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


def splits_then_bytes(regexes, *more):
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(regex), behavior="isolated") for regex in regexes] +
        [*more, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def matches_then_bytes(regex):
    """What is left between matches is removed: nothing, for the regex covers every text."""
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior="removed", invert=True),
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
    "qwen35": (normalizers.NFC, lambda: split_then_bytes(QWEN35), False,
               special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), None),
    "o200k": (None, lambda: matches_then_bytes(O200K), True,
              special("<|endoftext|>", "<|im_start|>", "<|im_end|>"), None),
    "deepseek3": (None, lambda: splits_then_bytes(DEEPSEEK3), False,
                  special("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<|im_end|>"),
                  "<｜begin▁of▁sentence｜>"),
    "deepseek2": (None, lambda: splits_then_bytes(
        DEEPSEEK2, pre_tokenizers.Digits(individual_digits=True)), False,
        special("<｜begin▁of▁sentence｜>", "<|im_end|>"), "<｜begin▁of▁sentence｜>"),
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


# Families whose symbols are characters, as SentencePiece makes them.

SPACE = "▁"
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
PIECES_SPECIAL = ["<unk>", "<s>", "</s>"]


def prepend_then_replace():
    return normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])


def without_spaces(strip):
    steps = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))


def train_characters(cut):
    """The pieces, in order, and merges of words, or of whole texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = prepend_then_replace()
    if cut:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme="never", split=True)
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=520, show_progress=False))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].get), merges


def bpe_of_characters(byte_fallback, cut=True, **options):
    pieces, merges = train_characters(cut)
    names = PIECES_SPECIAL + (list(BYTES) if byte_fallback else []) + pieces
    return models.BPE({name: i for i, name in enumerate(names)}, merges, unk_token="<unk>",
                      byte_fallback=byte_fallback, **options)


def unigram(byte_fallback):
    """The same pieces, scored by how often they occur: the package's trainer is not repeatable."""
    text = "".join(SPACE + line.replace(" ", SPACE) for line in CORPUS)
    scored = [(piece, round(math.log((text.count(piece) + 1) / len(text)), 3))
              for piece in train_characters(True)[0][:330]]
    first = [(name, 0.0) for name in PIECES_SPECIAL + (list(BYTES) if byte_fallback else [])]
    return models.Unigram(first + scored, 0, byte_fallback)


def proto_fields(message):
    """(number, value) of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if size == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, message[at:at + size]
        at += size


def charsmap(**rules):
    """The precompiled_charsmap that SentencePiece writes into a model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, vocab_size=300, hard_vocab_limit=False,
        minloglevel=2, **rules)
    spec = dict(proto_fields(model.getvalue()))[3]
    return dict(proto_fields(spec))[2]


def small_charsmap(out):
    """A map of our own rules, among them texts of several characters, and texts that vanish."""
    rules = {"ﬁ": "fi", "e\u0301": "é", "ab": "X", "abc": "Y", "\u200b": "", "\u00a0": " ",
             "\u3000": "  ", "①": "1", "ｶﾞ": "ガ", "🇩🇪": "DE", "\t": " ", "’": "'", "q": "QQQ"}
    file = out / "rules.tsv"
    file.write_text("".join(
        "\t".join(" ".join(f"{ord(c):X}" for c in side) for side in rule) + "\n"
        for rule in rules.items()))
    blob = charsmap(normalization_rule_tsv=str(file))
    file.unlink()
    return blob


# What transformers writes where it converts a SentencePiece model, of two of its versions.
def strip_then_runs(blob):
    return normalizers.Sequence([
        normalizers.Precompiled(blob), normalizers.Strip(left=False, right=True),
        normalizers.Replace(Regex(" {2,}"), SPACE)])


def trim_then_marks(blob):
    return normalizers.Sequence([
        normalizers.Precompiled(blob), normalizers.Replace(Regex(r"\A +| +\z"), ""),
        normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(" ", SPACE),
        normalizers.Replace(Regex("\\A" + SPACE), SPACE * 2)])


# name -> (model, normalizer, pre_tokenizer, decoder); a normalizer may be a function of the folder
CHARACTER_FAMILIES = {
    # Llama 2, Mistral 0.1 and 0.2, TinyLlama, Phi-3
    "llama2": (lambda: bpe_of_characters(True, fuse_unk=True), prepend_then_replace(), None,
               without_spaces(strip=True)),
    # Mistral 0.3, Llama 2 with legacy: false
    "llama2_first": (lambda: bpe_of_characters(True, fuse_unk=True), None,
                     pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=False),
                     without_spaces(strip=True)),
    # Gemma: tokens go over the borders of words
    "gemma": (lambda: bpe_of_characters(True, cut=False, fuse_unk=True),
              normalizers.Replace(" ", SPACE),
              pre_tokenizers.Split(" ", "merged_with_previous"), without_spaces(strip=False)),
    # tokenizers' own SentencePieceBPETokenizer, with every other option
    "spiece": (lambda: bpe_of_characters(False, ignore_merges=True), normalizers.NFC(),
               pre_tokenizers.Sequence([
                   pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=True),
                   pre_tokenizers.Split("o", "merged_with_next"),
                   pre_tokenizers.Split(Regex(r"\d"), "contiguous")]),
               decoders.Metaspace(SPACE, prepend_scheme="always")),
    "unigram": (lambda: unigram(False), None,
                pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=True),
                decoders.Metaspace(SPACE, prepend_scheme="always")),
    # T5 and XLM-RoBERTa, as they are published
    "charsmap": (lambda: unigram(False),
                 lambda out: normalizers.Precompiled(charsmap(normalization_rule_name="nmt_nfkc")),
                 pre_tokenizers.Sequence([
                     pre_tokenizers.WhitespaceSplit(),
                     pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=True)]),
                 decoders.Metaspace(SPACE, prepend_scheme="always")),
    "charsmap_strip": (lambda: unigram(False), lambda out: strip_then_runs(small_charsmap(out)),
                       pre_tokenizers.Metaspace(SPACE, prepend_scheme="first", split=True),
                       decoders.Metaspace(SPACE, prepend_scheme="first")),
    "charsmap_trim": (lambda: unigram(True), lambda out: trim_then_marks(small_charsmap(out)),
                      pre_tokenizers.Metaspace(SPACE, prepend_scheme="always", split=True),
                      without_spaces(strip=True)),
    "unigram_bytes": (lambda: unigram(True), prepend_then_replace(), None,
                      without_spaces(strip=True)),
}


STAND_IN = "\ue0f0 malformed \ue0f0"


def decoded_as_ours(tokenizer, ids, skip):
    """decode(), but tokens of bytes in a row that are no UTF-8 are decoded as Unicode recommends:
    U+FFFD for each malformed part. The package puts U+FFFD for every byte of them, also for those of
    good characters among them, so that a text would change when a token is added to it."""
    tokens = [tokenizer.id_to_token(i) for i in ids]
    if not any(token in BYTES for token in tokens):
        return tokenizer.decode(ids, skip_special_tokens=skip)
    added = tokenizer.get_added_tokens_decoder() if skip else {}
    tokens = [token for i, token in zip(ids, tokens)
              if token is not None and not (i in added and added[i].special)]
    kept, replaced, at = [], [], 0
    while at < len(tokens):
        end = at
        while end < len(tokens) and tokens[end] in BYTES:
            end += 1
        run = bytes(BYTES[token] for token in tokens[at:end])
        try:
            run.decode()
            kept += tokens[at:max(end, at + 1)]
        except UnicodeDecodeError:
            kept.append(STAND_IN)
            replaced.append(run.decode("utf-8", "replace"))
        at = max(end, at + 1)
    if not replaced:
        return tokenizer.decode(ids, skip_special_tokens=skip)
    text = tokenizer.decoder.decode(kept)
    assert text.count(STAND_IN) == len(replaced)
    if text.startswith(STAND_IN) and "Strip" in str(tokenizer.decoder):
        replaced[0] = replaced[0].removeprefix(" ")
    for run in replaced:
        text = text.replace(STAND_IN, run, 1)
    return text


def make_character_family(out, name, all_texts):
    model, normalizer, pre_tokenizer, decoder = CHARACTER_FAMILIES[name]
    tokenizer = Tokenizer(model())
    if normalizer:
        tokenizer.normalizer = normalizer(out) if callable(normalizer) else normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_tokens(special(*PIECES_SPECIAL) + [
        AddedToken("<|im_end|>", special=True, normalized=False, rstrip=name == "gemma"),
        AddedToken("<tool>", special=False, normalized=False),
        AddedToken("[word]", special=False, normalized=True)])
    first = "<s>"
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", pair=f"{first} $A {first}:1 $B:1",
        special_tokens=[(first, tokenizer.token_to_id(first))])
    save_family(out, name, tokenizer, all_texts, every=3)


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
    save_family(out, name, tokenizer, all_texts, every=3 if name in NEWER else 1)


NEWER = {"qwen35", "o200k", "deepseek3", "deepseek2"}


def save_family(out, name, tokenizer, all_texts, every):
    tokenizer.save(str(out / f"family_{name}.json"), pretty=False)
    tokenizer = Tokenizer.from_file(str(out / f"family_{name}.json"))
    cases = {"every": every} if every > 1 else {}
    cases |= {"ids": [], "decoded": {}, "template": tokenizer.encode("").ids, "streams": []}
    for i, text in enumerate(all_texts[::every]):
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text).ids == cases["template"] + ids
        cases["ids"].append(ids)
        decoded = decoded_as_ours(tokenizer, ids, False)
        if decoded != text:
            cases["decoded"][str(i)] = decoded
    rng = random.Random(7)
    for _ in range(60):
        ids = [rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randint(1, 20))]
        cases["streams"].append([ids, decoded_as_ours(tokenizer, ids, False),
                                 decoded_as_ours(tokenizer, ids, True)])
    write_json(out / f"family_{name}.golden.json", cases)


def make_charsmap_texts(out):
    """Texts of random code points, by kinds that graphemes and the charsmap treat differently."""
    tokenizer = Tokenizer.from_file(str(out / "family_charsmap.json"))
    # Unicode 14: what is younger has no grapheme of its own in the tables of Tandem's library.
    assigned = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs")]
    kinds = [assigned, [c for c in assigned if unicodedata.category(chr(c))[0] == "M"],
             [c for c in assigned if c < 0x800], range(0x80), range(0x300, 0x370),
             range(0x1100, 0x1200), [*range(0x3041, 0x3097), *range(0xFF61, 0xFFA0)],
             [*range(0x1F1E6, 0x1F200), 0x200D, 0xFE0F, 0x1F468, 0x1F3FD, 0x20E3],
             [*range(0x600, 0x606), 0x6DD, 0x70F, 0x0D, 0x0A]]
    rng = random.Random(11)
    cases = []
    for _ in range(700):
        text = "".join(chr(rng.choice(rng.choice(kinds))) for _ in range(rng.randint(1, 8)))
        cases.append([text, tokenizer.normalizer.normalize_str(text)])
    write_json(out / "charsmap.golden.json", cases)


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
    for name in CHARACTER_FAMILIES:
        make_character_family(out, name, all_texts)
    make_charsmap_texts(out)


if __name__ == "__main__":
    main()
