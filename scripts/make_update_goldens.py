#!/usr/bin/env python3
"""Makes tests/golden/updates: the results of PyTorch for one batch in several optimizer steps.

    python3 scripts/make_update_goldens.py tests/golden [CASE ...]

needs torch, transformers and safetensors. Takes the model tests/golden/grouped_untied_f32 and a
random batch of eight groups, and trains on it in f64 for two steps, each of two epochs of four
mini-batches, once for each case of CASES. The formulas are written down again here, from these
sources:

    verl 0.9.1, trainer/ppo/core_algos.py          advantages, losses, aggregations, estimates of KL
    verl 0.9.1, trainer/ppo/rollout_corr_helper.py importance weights, their mean, rejection
    verl 0.6.1, the same file                      bounds of a ratio, the veto
    TRL 1.0, trainer/grpo_trainer.py               scale_rewards, mask_truncated_completions
    AReaL 1.0, utils/data.py (Normalization)       leave-one-out with a standard deviation

but for KL in the reward of a group (docs/decisions/0022-kl-after-normalisation.md) and the
denominators of rejected tokens (docs/decisions/0029-rejected-tokens.md).

    batch.json           the batch: prompts, completions, the behaviour policy's log-probabilities,
                         rewards, which completions were truncated; options that all cases share
    <case>.json          the case's options, and what the last step showed: means over its updates
    <case>.safetensors   how far each parameter has moved
    rejection.json       log-probabilities, and which tokens each criterion of rollout_rs takes
"""
import json
import math
import pathlib
import sys

import safetensors.torch
import torch
import transformers

MODEL = "grouped_untied_f32"
GROUPS, N, MINI, EPOCHS, STEPS = 8, 4, 2, 2, 2
SHARED = dict(temperature=0.9, lr=1e-3, beta1=0.9, beta2=0.95, eps=1e-6, grad_clip=1.0,
              mini_batch_groups=MINI, epochs=EPOCHS, steps=STEPS, response_length_max=9)
DEFAULTS = dict(estimator="grpo", loss_mode="vanilla", aggregation="token-mean", clip_low=0.2,
                clip_high=0.28, clip_dual=None, bypass=False, rollout_is=None, entropy_coeff=0.0,
                kl_loss_coef=0.0, kl_in_reward_coef=0.0, kl_penalty="kl", mask_truncated=False,
                kl_loss_type="low_var_kl", scale=None, batch_normalize=False, advantage_clip=None,
                overlong_len=0, overlong_factor=0.0, is_batch_normalize=False, rs=[], rs_lower=None,
                veto=None)
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
    "dr_grpo": dict(estimator="dr_grpo", aggregation="seq-mean-token-sum-norm"),
    "rloo": dict(estimator="rloo", aggregation="seq-mean-token-mean"),
    "rloo_scaled": dict(estimator="rloo", scale="group", mask_truncated=True),
    "scale_batch": dict(scale="batch"),
    "reinforce_baseline": dict(scale="none", batch_normalize=True, mask_truncated=True),
    "normalized_and_clipped": dict(batch_normalize=True, advantage_clip=0.8),
    "overlong": dict(overlong_len=4, overlong_factor=0.5, advantage_clip=1.1),
    "kl_loss_mse": dict(kl_loss_coef=0.05, kl_loss_type="mse"),
    "kl_loss_abs": dict(kl_loss_coef=0.05, kl_loss_type="abs"),
    "is_normalized": dict(rollout_is="token", is_batch_normalize=True),
    "is_normalized_sequence": dict(rollout_is="sequence", is_batch_normalize=True,
                                   mask_truncated=True),
    "reject_ratio": dict(rs=[("token_k1", 1.3)], rs_lower=0.85, kl_loss_coef=0.05),
    "reject_bypass": dict(bypass=True, rs=[("seq_mean_k3", 0.15)]),
    "reject_combined": dict(rollout_is="token", rs=[("seq_max_k2", 0.4), ("token_k3", 0.04)],
                            veto=0.6),
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
    return {"kl": d, "abs": d.abs(), "mse": d * d / 2,
            "low_var_kl": (torch.exp(-d) + d - 1).clamp(max=10)}[kind]


def shaped(options, t):
    """The reward, less what DAPO takes for the last tokens before the limit."""
    length, longest = options["overlong_len"], SHARED["response_length_max"]
    if not length:
        return t["reward"]
    excess = len(t["tokens"]) - (longest - length)
    return t["reward"] + min(-excess / length * options["overlong_factor"], 0)


def of_group(options, rewards, every):
    """The advantages of one group before KL."""
    centred = rewards - rewards.mean()
    if options["estimator"] == "rloo":
        centred = rewards - (rewards.sum() - rewards) / (len(rewards) - 1)
    scale = options["scale"] or ("group" if options["estimator"] == "grpo" else "none")
    if scale == "none":
        return centred
    return centred / ((rewards if scale == "group" else every).std() + 1e-4)


def whiten(options, batch, of_tokens):
    """Over all tokens that count."""
    counted = [a for group, own in zip(batch, of_tokens) for t, a in zip(group["trajectories"], own)
               if not (options["mask_truncated"] and t["truncated"])]
    every = torch.cat(counted)
    scale = torch.rsqrt(every.var() + 1e-8)
    return [[(a - every.mean()) * scale for a in own] for own in of_tokens]


def rejected(criterion, upper, lower, log_ratio):
    """Which tokens of a completion a criterion of rollout_rs rejects."""
    reach, estimate = criterion.rsplit("_", 1)
    safe = log_ratio.clamp(-20, 20)
    terms = {"k1": log_ratio, "k2": 0.5 * safe ** 2, "k3": torch.exp(safe) - 1.0 - safe}[estimate]
    value = {"token": lambda x: x, "seq_sum": torch.sum, "seq_mean": torch.mean,
             "seq_max": torch.max}[reach](terms).expand_as(log_ratio)
    if estimate == "k1":
        ratio = torch.exp(value.clamp(-20, 20))
        return (ratio < (lower if lower is not None else 1 / upper)) | (ratio > upper)
    return value > upper


def rejects(options, log_ratio):
    """Of one completion: the tokens that a criterion rejects, and those that call for the veto."""
    out = torch.zeros_like(log_ratio, dtype=torch.bool)
    for i, (criterion, upper) in enumerate(options["rs"]):
        out |= rejected(criterion, upper, options["rs_lower"] if i == 0 else None, log_ratio)
    if options["veto"] is None:
        return out, torch.zeros_like(out)
    return out, log_ratio < math.log(options["veto"])


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
    every = torch.tensor([shaped(options, t) for g in batch for t in g["trajectories"]],
                         dtype=torch.double)
    for group, kls in zip(batch, taken):
        rewards = torch.tensor([shaped(options, t) for t in group["trajectories"]],
                               dtype=torch.double)
        kl = torch.tensor([kl.sum().item() for kl in kls], dtype=torch.double)
        normed = of_group(options, rewards, every) - (kl - kl.mean())
        out.append([a.expand(len(t["tokens"])) for a, t in zip(normed, group["trajectories"])])
    if options["batch_normalize"]:
        out = whiten(options, batch, out)
    if options["advantage_clip"]:
        most = options["advantage_clip"]
        out = [[a.clamp(-most, most) for a in own] for own in out]
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
    of_one = {"seq-mean-token-sum": torch.sum, "seq-mean-token-mean": torch.mean,
              "seq-mean-token-sum-norm": lambda x: x.sum() / SHARED["response_length_max"]}[kind]
    return torch.stack([of_one(loss) for loss in losses]).mean()


def importance(options, log_ratio):
    """The weights of a completion's tokens."""
    if options["rollout_is"] == "sequence":
        log_ratio = log_ratio.sum().expand_as(log_ratio)
    return torch.exp(log_ratio).clamp(max=THRESHOLD)


def importance_mean(options, flat):
    """Over the tokens, or the completions, of the whole batch."""
    counted = [t for t in flat if not (options["mask_truncated"] and t["truncated"])]
    weights = [importance(options, t["old"] - t["behaviour"]) for t in counted]
    if options["rollout_is"] == "sequence":
        weights = [w[:1] for w in weights]
    return torch.cat(weights).mean().item()


def update(options, model, mini, seen):
    """The loss of one mini-batch; adds to `seen`."""
    losses, entropies, kls = [], [], []
    for t in mini:
        if options["mask_truncated"] and t["truncated"]:
            continue
        current, entropy = score(model, t["prompt"], t["tokens"])
        loss, clipped, dual = policy_loss(options, current, t["old"], t["advantage"])
        if options["rollout_is"]:
            weight = importance(options, t["old"] - t["behaviour"])
            loss = loss * weight / seen["is_mean"]
            seen["is"] += weight.sum().item()
            seen["is2"] += (weight * weight).sum().item()
        out, low = rejects(options, (current.detach() if options["bypass"] else t["old"]) -
                           t["behaviour"])
        loss = torch.where(out | low.any(), 0.0, loss)
        seen["sequences"] += 1
        for name, tokens in ("rejected", out), ("catastrophic", low):
            seen[name] += tokens.sum().item()
            seen[name + "_sequences"] += tokens.any().item()
        losses.append(loss)
        entropies.append(entropy)
        kls.append(penalty(options["kl_loss_type"], current - t["reference"]))
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
                          "ratio_max", "loss", "norm", "sequences", "rejected",
                          "rejected_sequences", "catastrophic", "catastrophic_sequences"), 0.0)
    seen |= {"penalty": taken, "is_mean": 1.0}
    if options["is_batch_normalize"]:
        seen["is_mean"] = importance_mean(options, flat)
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
    if options["is_batch_normalize"]:
        report["rollout_is_batch_norm_factor"] = seen["is_mean"]
    if options["rs"]:
        report["rollout_rs_masked_fraction"] = seen["rejected"] / tokens
        report["rollout_rs_seq_masked_fraction"] = seen["rejected_sequences"] / seen["sequences"]
    if options["veto"]:
        report["rollout_is_veto_fraction"] = seen["catastrophic_sequences"] / seen["sequences"]
        report["rollout_is_catastrophic_token_fraction"] = seen["catastrophic"] / tokens
    (out / f"{case}.json").write_text(json.dumps({"options": options, "report": report}) + "\n")
    first = dict(start.named_parameters())
    moved = {k: (p - first[k]).detach().float().contiguous() for k, p in model.named_parameters()}
    safetensors.torch.save_file(moved, out / f"{case}.safetensors")


CRITERIA = {"token_k1": 1.4, "seq_sum_k1": 2.5, "seq_mean_k1": 1.25, "token_k2": 0.1,
            "seq_sum_k2": 0.5, "seq_mean_k2": 0.08, "seq_max_k2": 0.3, "token_k3": 0.1,
            "seq_sum_k3": 0.5, "seq_mean_k3": 0.08, "seq_max_k3": 0.3}


def make_rejection():
    """Completions of 1 to 12 tokens, some far off, and which tokens each criterion rejects."""
    torch.manual_seed(7)
    lengths = [1 + (5 * s) % 12 for s in range(16)]
    far = [0.1 + 0.06 * s for s in range(14)] + [12.0, 40.0]
    behaviour = [-2 * torch.rand(n) for n in lengths]
    policy = [b + f * torch.randn(n) for b, f, n in zip(behaviour, far, lengths)]
    ratios = [p.double() - b.double() for p, b in zip(policy, behaviour)]
    cases = [dict(rs=[(name, upper)], rs_lower=None, veto=None) for name, upper in CRITERIA.items()]
    cases += [dict(rs=[(name, CRITERIA[name])], rs_lower=0.9, veto=None)
              for name in CRITERIA if name.endswith("k1")]
    cases += [dict(rs=[("token_k1", 3.0), ("seq_mean_k3", 0.2), ("seq_max_k2", 0.8)], rs_lower=0.2,
                   veto=None), dict(rs=[("token_k3", 0.1)], rs_lower=None, veto=0.5),
              dict(rs=[], rs_lower=None, veto=0.6)]
    for case in cases:
        out, low = zip(*[rejects(case, r) for r in ratios])
        case |= dict(
            taken=[(~(o | v.any())).tolist() for o, v in zip(out, low)],
            tokens=sum(o.sum().item() for o in out), sequences=sum(o.any().item() for o in out),
            catastrophic=sum(v.sum().item() for v in low), vetoed=sum(v.any().item() for v in low))
        flat = [t for own in case["taken"] for t in own]
        assert 0 < sum(flat) < len(flat), case
    return dict(policy=[p.tolist() for p in policy], behaviour=[b.tolist() for b in behaviour],
                cases=cases)


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(CASES):
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
    (out / "rejection.json").write_text(json.dumps(make_rejection()) + "\n")
    for case in sys.argv[2:] or CASES:
        run(case, DEFAULTS | CASES[case], make, batch, out)
        print(case, (out / f"{case}.json").read_text())


if __name__ == "__main__":
    main()
