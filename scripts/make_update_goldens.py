#!/usr/bin/env python3
"""Makes tests/golden/updates: the results of PyTorch for one batch in several optimizer steps.

    python3 scripts/make_update_goldens.py tests/golden

needs torch, transformers and safetensors. Takes the model tests/golden/grouped_untied_f32 and a
random batch of eight groups, and trains on it in f64 for two steps, each of two epochs of four
mini-batches, once for each case of CASES. The formulas are verl's (trainer/ppo/core_algos.py), written
down again here, but for KL in the reward of a group (docs/decisions/0022-kl-after-normalisation.md).

    batch.json           the batch: prompts, completions, the behaviour policy's log-probabilities,
                         rewards, which completions were truncated; options that all cases share
    <case>.json          the case's options, and what the last step showed: means over its updates
    <case>.safetensors   how far each parameter has moved
"""
import json
import pathlib
import sys

import safetensors.torch
import torch
import transformers

MODEL = "grouped_untied_f32"
GROUPS, N, MINI, EPOCHS, STEPS = 8, 4, 2, 2, 2
SHARED = dict(temperature=0.9, lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-6, grad_clip=1.0,
              mini_batch_groups=MINI, epochs=EPOCHS, steps=STEPS)
DEFAULTS = dict(estimator="grpo", loss_mode="vanilla", aggregation="token-mean", clip_low=0.2,
                clip_high=0.28, clip_dual=None, bypass=False, rollout_is=None, entropy_coeff=0.0,
                kl_loss_coef=0.0, kl_in_reward_coef=0.0, kl_penalty="kl", mask_truncated=False)
CASES = {
    "vanilla": dict(),
    "vanilla_bypass_dual": dict(bypass=True, clip_dual=1.2),
    "gspo": dict(loss_mode="gspo", aggregation="seq-mean-token-mean", clip_low=0.02,
                 clip_high=0.03),
    "cispo": dict(loss_mode="cispo", clip_low=0.1, clip_high=0.1),
    "decoupled_kl_entropy": dict(rollout_is="token", kl_loss_coef=0.05, entropy_coeff=0.01,
                                 aggregation="seq-mean-token-sum"),
    "kl_in_reward": dict(estimator="reinforce_plus_plus", kl_in_reward_coef=0.1,
                         kl_penalty="low_var_kl", mask_truncated=True),
    "kl_in_group_reward": dict(kl_in_reward_coef=0.1, rollout_is="sequence"),
}
THRESHOLD = 1.1  # of rollout_is


def make_batch(model, vocab):
    torch.manual_seed(5)
    groups = []
    for g in range(GROUPS):
        prompt = torch.randint(0, vocab, (1 + g % 5,)).tolist()
        trajectories = []
        for i in range(N):
            tokens = torch.randint(0, vocab, (1 + (3 * g + 5 * i) % 9,)).tolist()
            own = score(model, prompt, tokens)[0].detach()
            noisy = (own + 0.15 * torch.randn_like(own)).float()
            reward = 1.0 if g == 0 or (g + i) % 3 == 0 else 0.0
            trajectories.append(dict(tokens=tokens, logprobs=noisy.tolist(), reward=reward,
                                     truncated=len(tokens) >= 8))
        groups.append(dict(prompt=prompt, trajectories=trajectories))
    return groups


def score(model, prompt, tokens):
    """Log-probabilities and entropies of a completion's tokens."""
    logits = model(torch.tensor([prompt + tokens])).logits[0, len(prompt) - 1:-1]
    log_p = torch.log_softmax(logits / SHARED["temperature"], dim=-1)
    return (log_p.gather(1, torch.tensor(tokens)[:, None])[:, 0],
            -(log_p.exp() * log_p).sum(-1))


def penalty(kind, d):
    return {"kl": d, "low_var_kl": (torch.exp(-d) + d - 1).clamp(max=10)}[kind]


def advantages(options, batch, old, reference):
    """One tensor for each trajectory, of its tokens; and the mean of KL's penalty of a token."""
    taken = [[options["kl_in_reward_coef"] * penalty(options["kl_penalty"], o - r)
              for o, r in zip(olds, refs)] for olds, refs in zip(old, reference)]
    mean = torch.cat([kl for kls in taken for kl in kls]).mean().item()
    if options["estimator"] == "reinforce_plus_plus":
        returns = []
        for group, kls in zip(batch, taken):
            for t, kl in zip(group["trajectories"], kls):
                rewards = -kl.clone()
                rewards[-1] += t["reward"]
                returns.append(rewards.flip(0).cumsum(0).flip(0))
        masked = [options["mask_truncated"] and t["truncated"]
                  for group in batch for t in group["trajectories"]]
        every = torch.cat([r for r, out in zip(returns, masked) if not out])
        scale = torch.rsqrt(every.var() + 1e-8)
        flat = iter([(r - every.mean()) * scale for r in returns])
        return [[next(flat) for _ in group["trajectories"]] for group in batch], mean
    out = []
    for group, kls in zip(batch, taken):
        rewards = torch.tensor([t["reward"] for t in group["trajectories"]], dtype=torch.double)
        kl = torch.tensor([kl.sum().item() for kl in kls], dtype=torch.double)
        normed = (rewards - rewards.mean()) / (rewards.std() + 1e-4) - (kl - kl.mean())
        out.append([a.expand(len(t["tokens"])) for a, t in zip(normed, group["trajectories"])])
    return out, mean


def policy_loss(options, current, old, advantage):
    """The loss of each token, and which of them were clipped, and by the dual clip."""
    low, high = 1 - options["clip_low"], 1 + options["clip_high"]
    ratio = torch.exp(current - old)
    if options["loss_mode"] == "gspo":
        ratio = torch.exp(current - current.detach() + (current - old).mean().detach())
    bounded = ratio.clamp(low, high)
    none = torch.zeros_like(current, dtype=torch.bool)
    if options["loss_mode"] == "cispo":
        return -advantage * bounded.detach() * current, bounded != ratio, none
    plain, bound = -advantage * ratio, -advantage * bounded
    loss, clipped, dual = torch.maximum(plain, bound), bound > plain, none
    if options["clip_dual"]:
        most = -advantage * options["clip_dual"]
        dual = (advantage < 0) & (loss > most)
        loss = torch.where(dual, most, loss)
    return loss, clipped | dual, dual


def aggregate(kind, losses):
    if kind == "token-mean":
        return torch.cat(losses).mean()
    each = [loss.sum() if kind == "seq-mean-token-sum" else loss.mean() for loss in losses]
    return torch.stack(each).mean()


def update(options, model, mini, seen):
    """The loss of one mini-batch; adds to `seen`."""
    losses, entropies, kls = [], [], []
    for t in mini:
        if options["mask_truncated"] and t["truncated"]:
            continue
        current, entropy = score(model, t["prompt"], t["tokens"])
        loss, clipped, dual = policy_loss(options, current, t["old"], t["advantage"])
        if options["rollout_is"]:
            log_weight = t["old"] - t["behaviour"]
            if options["rollout_is"] == "sequence":
                log_weight = log_weight.sum().expand_as(log_weight)
            weight = torch.exp(log_weight).clamp(max=THRESHOLD)
            loss = loss * weight
            seen["is"] += weight.sum().item()
            seen["is2"] += (weight * weight).sum().item()
        kl = t["reference"] - current
        losses.append(loss)
        entropies.append(entropy)
        kls.append(torch.exp(kl) - kl - 1)
        seen["tokens"] += len(current)
        seen["clipped"] += clipped.sum().item()
        seen["dual"] += dual.sum().item()
        seen["ppo_kl"] += (t["old"] - current).sum().item()
        seen["kl"] += kls[-1].sum().item()
        seen["entropy"] += entropy.sum().item()
        seen["ratio_max"] = max(seen["ratio_max"], torch.exp(current - t["old"]).max().item())
    kind = options["aggregation"]
    return (aggregate(kind, losses) + options["kl_loss_coef"] * aggregate(kind, kls) -
            options["entropy_coeff"] * aggregate(kind, entropies))


def train_step(options, model, optimizer, batch, behaviour, reference):
    """Sums over the updates of one step, and how many these are."""
    old = behaviour
    if not options["bypass"]:
        with torch.no_grad():
            old = [[score(model, g["prompt"], t["tokens"])[0] for t in g["trajectories"]]
                   for g in batch]
    of_tokens, taken = advantages(options, batch, old, reference)
    flat = [dict(t, prompt=g["prompt"], old=old[i][j], reference=reference[i][j],
                 behaviour=behaviour[i][j], advantage=of_tokens[i][j])
            for i, g in enumerate(batch) for j, t in enumerate(g["trajectories"])]
    seen = dict.fromkeys(("tokens", "clipped", "dual", "ppo_kl", "kl", "entropy", "is", "is2",
                          "ratio_max", "loss", "norm"), 0.0) | {"penalty": taken}
    updates = 0
    for _ in range(EPOCHS):
        for begin in range(0, len(flat), MINI * N):
            optimizer.zero_grad()
            loss = update(options, model, flat[begin:begin + MINI * N], seen)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), SHARED["grad_clip"])
            optimizer.step()
            seen["loss"] += loss.item()
            seen["norm"] += norm.item()
            updates += 1
    return seen, updates


def run(case, options, make, batch, out):
    model, start = make(), make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=SHARED["lr"], eps=SHARED["eps"],
                                  betas=(SHARED["beta1"], SHARED["beta2"]), weight_decay=0)
    with torch.no_grad():
        reference = [[score(start, g["prompt"], t["tokens"])[0] for t in g["trajectories"]]
                     for g in batch]
    behaviour = [[torch.tensor(t["logprobs"], dtype=torch.double) for t in g["trajectories"]]
                 for g in batch]
    for _ in range(STEPS):
        seen, updates = train_step(options, model, optimizer, batch, behaviour, reference)
    tokens = seen["tokens"]
    report = dict(updates=updates, loss=seen["loss"] / updates, grad_norm=seen["norm"] / updates,
                  entropy=seen["entropy"] / tokens, ppo_kl=seen["ppo_kl"] / tokens,
                  pg_clipfrac=seen["clipped"] / tokens, ratio_max=seen["ratio_max"])
    if options["clip_dual"]:
        report["pg_clipfrac_lower"] = seen["dual"] / tokens
    if options["kl_in_reward_coef"]:
        report["reward_kl_penalty"] = seen["penalty"]
    if options["kl_loss_coef"]:
        report["kl_loss"] = seen["kl"] / tokens
    if options["rollout_is"]:
        report["rollout_is_mean"] = seen["is"] / tokens
        report["rollout_is_eff_sample_size"] = seen["is"] ** 2 / seen["is2"] / tokens
    (out / f"{case}.json").write_text(json.dumps({"options": options, "report": report}) + "\n")
    first = dict(start.named_parameters())
    moved = {k: (p - first[k]).detach().float().contiguous() for k, p in model.named_parameters()}
    safetensors.torch.save_file(moved, out / f"{case}.safetensors")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    transformers.utils.logging.disable_progress_bar()
    folder = pathlib.Path(sys.argv[1])
    out = folder / "updates"
    out.mkdir(exist_ok=True)

    def make():
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder / MODEL, dtype=torch.double, attn_implementation="eager")
        model.model.embed_tokens.padding_idx = None  # its row has a gradient like any other
        return model.eval()

    model = make()
    batch = make_batch(model, model.config.vocab_size)
    (out / "batch.json").write_text(json.dumps(
        {"model": MODEL, "options": SHARED | {"rollout_is_threshold": THRESHOLD},
         "groups": batch}) + "\n")
    for case, options in CASES.items():
        run(case, DEFAULTS | options, make, batch, out)
        print(case, (out / f"{case}.json").read_text())


if __name__ == "__main__":
    main()
