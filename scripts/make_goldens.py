#!/usr/bin/env python3
"""Makes the golden numbers that tests/actors/model compares with.

    python3 scripts/make_goldens.py tests/golden

needs torch, transformers, tokenizers and safetensors (any recent versions; versions.json names
those that made the files in tests/golden). Everything is seeded: the same versions give the same
files, but for last bits on another processor. Below 200 KB each.

For each tiny random configuration of Qwen3, Qwen2 and Llama DIR/<name>/ is a Hugging Face directory
(its weights stored as f32, bf16 or sharded f16) with, beside the model,
    golden.json         sequences of token ids, temperature
    golden.safetensors  logits.<i> [length, V] of sequence i; over the items (row r of a sequence
                        predicts its token r + 1; sequences in order, rows ascending) logprob,
                        entropy, and the random dlogprob and dentropy; and grad.<parameter>, the
                        gradient of sum(logprob * dlogprob + entropy * dentropy)
all computed in f32 by transformers' eager attention.

DIR/tokenizers/<name>.json are byte-level BPE tokenizers trained on the text below, and
<name>.cases.json pairs of text and ids.
"""

import json
import pathlib
import sys

import safetensors.torch
import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FAMILIES = {
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
}
# Of 64 positions: of the eight frequencies of a head of 16 channels some are as they were, one lies
# between, and some are slowed.
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)

MODELS = {
    # grouped heads, head_dim * heads != hidden_size, untied
    "grouped_untied_f32": dict(
        seed=11, dtype=torch.float32, shard=None, temperature=1.0,
        config=dict(vocab_size=40, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
                    num_attention_heads=4, num_key_value_heads=2, head_dim=16,
                    tie_word_embeddings=False, rms_norm_eps=1e-6, rope_theta=1e6)),
    # one key/value head for three queries, odd sizes, tied, stored as bf16
    "tied_bf16": dict(
        seed=12, dtype=torch.bfloat16, shard=None, temperature=0.7,
        config=dict(vocab_size=33, hidden_size=12, intermediate_size=20, num_hidden_layers=3,
                    num_attention_heads=3, num_key_value_heads=1, head_dim=16,
                    tie_word_embeddings=True, rms_norm_eps=1e-5, rope_theta=1e4)),
    # as many key/value heads as queries, one layer, stored as f16 in shards
    "ungrouped_sharded_f16": dict(
        seed=13, dtype=torch.float16, shard="4KB", temperature=1.3,
        config=dict(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                    num_attention_heads=2, num_key_value_heads=2, head_dim=32,
                    tie_word_embeddings=False, rms_norm_eps=1e-6, rope_theta=1e5)),
    # Llama 3.2's kind: stretched positions, grouped heads, tied, stored as bf16
    "llama_scaled_tied_bf16": dict(
        family="llama", seed=14, dtype=torch.bfloat16, shard=None, temperature=0.9,
        config=dict(vocab_size=37, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                    num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                    rms_norm_eps=1e-5, rope_theta=5e2, rope_scaling=LLAMA3)),
    # the same untied, in f32, of more heads; head_dim is not hidden_size / heads
    "llama_scaled_untied_f32": dict(
        family="llama", seed=15, dtype=torch.float32, shard=None, temperature=1.0,
        config=dict(vocab_size=29, hidden_size=24, intermediate_size=32, num_hidden_layers=2,
                    num_attention_heads=6, num_key_value_heads=2, head_dim=16,
                    tie_word_embeddings=False, rms_norm_eps=1e-6, rope_theta=1e4,
                    rope_scaling=LLAMA3)),
    # SmolLM2's kind: plain positions, three queries to a key, tied, f16 in shards
    "llama_plain_sharded_f16": dict(
        family="llama", seed=16, dtype=torch.float16, shard="8KB", temperature=1.2,
        config=dict(vocab_size=31, hidden_size=48, intermediate_size=32, num_hidden_layers=2,
                    num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True,
                    rms_norm_eps=1e-5, rope_theta=1e5)),
    # Qwen2.5 0.5B's kind: biases of q, k and v, tied
    "qwen2_tied_bf16": dict(
        family="qwen2", seed=17, dtype=torch.bfloat16, shard=None, temperature=0.8,
        config=dict(vocab_size=35, hidden_size=32, intermediate_size=32, num_hidden_layers=2,
                    num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                    rms_norm_eps=1e-6, rope_theta=1e6)),
    # the larger ones': untied
    "qwen2_untied_f32": dict(
        family="qwen2", seed=18, dtype=torch.float32, shard=None, temperature=1.1,
        config=dict(vocab_size=30, hidden_size=32, intermediate_size=24, num_hidden_layers=1,
                    num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=False,
                    rms_norm_eps=1e-6, rope_theta=1e4)),
}
LENGTHS = (37, 21, 2)  # across and within the 16-position chunks of attention
WEIGHT_DEVIATION = 0.3  # large enough for logits that are far from uniform


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=None) + "\n", encoding="utf-8")


def make_model(out, name, recipe):
    torch.manual_seed(recipe["seed"])
    make_config, make = FAMILIES[recipe.get("family", "qwen3")]
    config = make_config(
        **recipe["config"], max_position_embeddings=64, eos_token_id=1, pad_token_id=0,
        bos_token_id=None, initializer_range=0.02, attn_implementation="eager")
    model = make(config).eval()
    model.model.embed_tokens.padding_idx = None  # the pad token's row has a gradient like any other
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            noise = torch.randn_like(parameter) * WEIGHT_DEVIATION
            values = 1 + noise if "norm" in key else noise
            parameter.copy_(values.to(recipe["dtype"]).float())  # exactly the file's values
    folder = out / name
    stored = make(config)
    stored.load_state_dict(model.state_dict())
    shard = {} if recipe["shard"] is None else {"max_shard_size": recipe["shard"]}
    stored.to(recipe["dtype"]).save_pretrained(folder, **shard)

    vocab = recipe["config"]["vocab_size"]
    sequences = [torch.randint(0, vocab, (length,)) for length in LENGTHS]
    golden, logprobs, entropies = {}, [], []
    for i, tokens in enumerate(sequences):
        logits = model(tokens[None]).logits[0].float()
        golden[f"logits.{i}"] = logits.detach()
        log_p = torch.log_softmax(logits[:-1] / recipe["temperature"], dim=-1)
        logprobs.append(log_p.gather(1, tokens[1:, None])[:, 0])
        entropies.append(-(log_p.exp() * log_p).sum(-1))
    logprob, entropy = torch.cat(logprobs), torch.cat(entropies)
    dlogprob, dentropy = torch.randn_like(logprob), torch.randn_like(entropy)
    (logprob * dlogprob + entropy * dentropy).sum().backward()
    golden |= {"logprob": logprob.detach(), "entropy": entropy.detach(), "dlogprob": dlogprob,
               "dentropy": dentropy}
    golden |= {f"grad.{key}": p.grad for key, p in model.named_parameters()}
    safetensors.torch.save_file({k: v.contiguous() for k, v in golden.items()},
                                folder / "golden.safetensors")
    write_json(folder / "golden.json", {"temperature": recipe["temperature"],
                                        "sequences": [s.tolist() for s in sequences]})


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}|", r"\p{N}{1,3}|")

CORPUS = [
    "The actors wait for nobody: every wait has an owner, a deadline and a name.",
    "She's sure they'll say we've won; I'm not, and it doesn't matter what you'd do.",
    "12 + 30 = 42, 1234567 is a number, and so is 3.14159.\n\n\tdef f(x):\n\t\treturn x * x\n",
    "naïve café, déjà vu, Ærøskøbing, straße; Привет, мир; 日本語のテキスト、東京都; العربية ١٢٣",
    "the rain in spain stays mainly in the plain, the rain, the rain; again and again and again",
    "emoji 🙂🙃 and 👩‍👩‍👧 families; arrows → ⇒; dashes – and —; “quotes” and ‘single’ ones",
] * 4

CASES = [
    "", " ", "a", "Hello world", "  two  spaces  ", "\n", "\n\n\n", " \n \n x",
    "\t\ttabs\r\nlines\r",
    "it's I'M THEY'LL you'Ve 's", "12345678 1 22 333 4444", "3.14 + x2y3", "café naïve",
    "cafe\u0301", "Привет, мир!", "日本語のテキスト", "العربية ١٢٣", "👩‍👩‍👧🙂 → ⇒", "…—–“”‘’",
    "\u00a0nbsp\u3000wide\u2003em\u0085next\u2028line", "zero\u200bwidth\ufeff", "ǅ Ⅷ ½ ²",
    "\x00\x01\x7f",
    "<|im_end|>", "a<|im_end|>b", "<|im_end|><|endoftext|> x", "<tool>call</tool> <tool <tool>>",
    "<|im_en|>", " <|im_end|> ", "the rain in spain" * 20, "   " * 50 + "x", "a" * 200,
    "!!!???...,,,;;;:::", "fn(x) { return x->y::z; } // 'quoted' \"text\"", "'\u017f 'S",
]


def make_tokenizer(out, name, pre_tokenizer, ignore_merges):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420, show_progress=False, special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|im_end|>", special=True)])
    tokenizer.add_tokens([AddedToken("<tool", special=False), AddedToken("<tool>", special=False)])
    tokenizer.save(str(out / f"{name}.json"), pretty=False)
    cases = []
    for text in CASES:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "ids": ids})
    write_json(out / f"{name}.cases.json", cases)


def split_then_bytes(regex):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(regex), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    transformers.utils.logging.disable_progress_bar()
    out = pathlib.Path(sys.argv[1])
    (out / "tokenizers").mkdir(parents=True, exist_ok=True)
    for name, recipe in MODELS.items():
        make_model(out, name, recipe)
    byte_level = pre_tokenizers.ByteLevel
    make_tokenizer(out / "tokenizers", "gpt2", byte_level(add_prefix_space=False), False)
    make_tokenizer(out / "tokenizers", "gpt2_prefix", byte_level(add_prefix_space=True), False)
    make_tokenizer(out / "tokenizers", "qwen2", split_then_bytes(QWEN2), False)
    make_tokenizer(out / "tokenizers", "llama3", split_then_bytes(LLAMA3), True)
    modules = (torch, transformers, tokenizers, safetensors)
    write_json(out / "versions.json", {m.__name__: m.__version__.split("+")[0] for m in modules})


if __name__ == "__main__":
    main()
