// The policy loss against its formulas and its gradients against finite differences, mode by mode.
#include "kernels/ops/policy_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

constexpr std::int64_t kTokens = 45;

// Three sequences; every fifth token is masked and holds NaN, which no kernel may read.
struct Tokens {
  Floats current, proximal, advantage, weight, importance, reference, entropy;
  std::vector<std::int32_t> begin = {0, 20, 21, 45};
};

Tokens make_tokens(std::uint64_t seed) {
  Rng rng(seed);
  Tokens t;
  t.proximal = normals(rng, kTokens);
  t.current = t.reference = t.proximal;
  const Floats drift = normals(rng, kTokens, 0.3f), more = normals(rng, kTokens, 0.3f);
  t.advantage = normals(rng, kTokens);
  t.importance = normals(rng, kTokens);
  t.entropy = normals(rng, kTokens);
  for (std::size_t i = 0; i < kTokens; ++i) {
    t.current[i] += drift[i];
    t.reference[i] += more[i];
    t.importance[i] = std::abs(t.importance[i]);
    t.weight.push_back(1.0f / 36);
    if (i % 5 == 4) {
      t.weight[i] = 0;
      for (Floats* values : {&t.current, &t.proximal, &t.advantage, &t.importance, &t.reference}) {
        (*values)[i] = NAN;
      }
    }
  }
  return t;
}

struct Outcome {
  Floats dlog_prob = poison(kTokens), dentropy = poison(kTokens);
  PolicyLossStats stats;
};

PolicyLoss bind(const Tokens& t, Outcome& outcome) {
  const auto of = [](const Floats& values) { return tensor(values.data(), {kTokens}); };
  return {.clip_high = 0.28f,
          .current = of(t.current),
          .proximal = of(t.proximal),
          .advantage = of(t.advantage),
          .weight = of(t.weight),
          .sequence_begin = tensor(t.begin.data(), {std::ssize(t.begin)}),
          .dlog_prob = of(outcome.dlog_prob),
          .dentropy = of(outcome.dentropy),
          .stats = &outcome.stats};
}

using Change = std::function<void(PolicyLoss&)>;

Outcome run(const Backend& backend, const Stream& stream, const Tokens& t, const Change& change) {
  Outcome outcome;
  PolicyLoss op = bind(t, outcome);
  change(op);
  backend.policy_loss(stream, op);
  return outcome;
}

// Differences stay away from the kinks of the clip: tokens whose loss bends within h are left out.
void expect_loss_gradient(Tokens t, const Change& change) {
  const Floats gradient = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Outcome outcome = run(backend, stream, t, change);
    return joined({outcome.dlog_prob, {static_cast<float>(outcome.stats.loss)}});
  });
  EXPECT_FALSE(has_nan(gradient));
  const auto loss = [&] { return run(cpu_backend(), Stream{}, t, change).stats.loss; };
  const float h = 1e-3f;
  for (std::size_t i = 0; i < kTokens; ++i) {
    if (t.weight[i] == 0) {
      EXPECT_EQ(gradient[i], 0.0f);
      continue;
    }
    const float at = t.current[i];
    const double here = loss();
    t.current[i] = at + h;
    const double above = loss();
    t.current[i] = at - h;
    const double below = loss();
    t.current[i] = at;
    const double right = (above - here) / h, left = (here - below) / h;
    if (std::abs(right - left) > 1e-3) continue;
    EXPECT_NEAR(gradient[i], (right + left) / 2, 2e-4) << "token " << i;
  }
}

TEST(PolicyLoss, VanillaGradientMatchesFiniteDifferences) {
  const Tokens t = make_tokens(1);
  const auto of = [](const Floats& values) { return tensor(values.data(), {kTokens}); };
  expect_loss_gradient(t, [](PolicyLoss&) {});
  expect_loss_gradient(t, [&](PolicyLoss& op) {
    op.clip_dual = 1.2f;
    op.importance = of(t.importance);
    op.reference = of(t.reference);
    op.kl_coef = 0.3f;
    op.entropy = of(t.entropy);
    op.entropy_coef = 0.1f;
  });
}

// The losses of the tokens are the terms of the sum, rounded to f32; masked tokens have none.
TEST(PolicyLoss, TokenLossesAddUpToTheLoss) {
  const Tokens t = make_tokens(4);
  const auto of = [](const Floats& values) { return tensor(values.data(), {kTokens}); };
  for (const LossMode mode : {LossMode::kVanilla, LossMode::kGspo, LossMode::kCispo}) {
    Floats losses = poison(kTokens);
    double sum = 0;
    same_everywhere([&](const Backend& backend, const Stream& stream) {
      losses = poison(kTokens);
      sum = run(backend, stream, t, [&](PolicyLoss& op) {
              op.mode = mode;
              op.importance = of(t.importance);
              op.reference = of(t.reference);
              op.kl_coef = 0.3f;
              op.entropy = of(t.entropy);
              op.entropy_coef = 0.1f;
              op.loss = of(losses);
            }).stats.loss;
      return losses;
    });
    double added = 0;
    for (std::size_t i = 0; i < kTokens; ++i) {
      EXPECT_TRUE(t.weight[i] != 0 || losses[i] == 0) << "token " << i;
      added += static_cast<double>(losses[i]);
    }
    EXPECT_NEAR(added, sum, 1e-6);
    EXPECT_NE(sum, 0);
  }
}

TEST(PolicyLoss, VanillaFollowsTheFormula) {
  Tokens t;
  t.begin = {0, 4};
  // Ratios 1.5, 1.5, 0.5, 3: clipped, not clipped (pessimistic bound), clipped, dual clip.
  for (const auto& [ratio, advantage] :
       {std::pair{1.5f, 1.0f}, {1.5f, -1.0f}, {0.5f, -1.0f}, {3.0f, -1.0f}}) {
    t.current.push_back(std::log(ratio) - 1);
    t.proximal.push_back(-1);
    t.advantage.push_back(advantage);
    t.weight.push_back(0.25f);
  }
  Floats dlog_prob = poison(4);
  PolicyLossStats stats;
  policy_loss(Stream{}, {.clip_high = 0.28f,
                         .clip_dual = 2,
                         .current = tensor(t.current.data(), {4}),
                         .proximal = tensor(t.proximal.data(), {4}),
                         .advantage = tensor(t.advantage.data(), {4}),
                         .weight = tensor(t.weight.data(), {4}),
                         .dlog_prob = tensor(dlog_prob.data(), {4}),
                         .stats = &stats});
  EXPECT_NEAR(stats.loss, 0.25 * (-1.28 + 1.5 + 0.8 + 2), 1e-6);
  EXPECT_EQ(dlog_prob[0], 0.0f);
  EXPECT_NEAR(dlog_prob[1], 0.25 * 1.5, 1e-6);
  EXPECT_EQ(dlog_prob[2], 0.0f);
  EXPECT_EQ(dlog_prob[3], 0.0f);
  EXPECT_EQ(stats.tokens, 4);
  EXPECT_EQ(stats.clipped, 3);
  EXPECT_EQ(stats.dual_clipped, 1);
  EXPECT_EQ(stats.clipped_low, 1);
  EXPECT_NEAR(stats.ratio_max, 3, 1e-5);
  const double logs = 2 * std::log(1.5) + std::log(0.5) + std::log(3.0);
  EXPECT_NEAR(stats.approx_kl_k1, -logs, 1e-6);
  EXPECT_NEAR(stats.approx_kl_k3, 6.5 - 4 - logs, 1e-5);
}

TEST(PolicyLoss, EveryEstimateOfKlHasTheGradientOfItsValue) {
  const Tokens t = make_tokens(7);
  for (const KlEstimate estimate :
       {KlEstimate::kKl, KlEstimate::kAbs, KlEstimate::kMse, KlEstimate::kLowVarKl})
    expect_loss_gradient(t, [&](PolicyLoss& op) {
      op.reference = tensor(t.reference.data(), {kTokens});
      op.kl_coef = 0.7f;
      op.kl_estimate = estimate;
    });
}

// d of 3, -2, and two beyond the bound of kLowVarKl on either side.
TEST(PolicyLoss, EstimatesOfKlFollowTheirFormulas) {
  const Floats d{3, -2, -4, 12};
  Tokens t;
  t.begin = {0, 4};
  t.reference = Floats(4, -15.0f);
  for (const float apart : d) t.current.push_back(apart - 15);
  t.proximal = t.current;
  t.advantage = Floats(4, 0.0f);
  t.weight = Floats(4, 1.0f);
  const double e2 = std::exp(2.0), e3 = std::exp(-3.0);
  struct Wanted {
    KlEstimate estimate;
    double sum;
    std::vector<double> gradients;
  };
  for (const Wanted& wanted :
       {Wanted{KlEstimate::kKl, 9, {1, 1, 1, 1}}, Wanted{KlEstimate::kAbs, 21, {1, -1, -1, 1}},
        Wanted{KlEstimate::kMse, 4.5 + 2 + 8 + 72, {3, -2, -4, 12}},
        Wanted{KlEstimate::kLowVarKl, (e3 + 2) + (e2 - 3) + 10 + 10, {1 - e3, 1 - e2, 0, 0}}}) {
    const Floats found = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats dlog_prob = poison(4);
      PolicyLossStats stats;
      backend.policy_loss(stream, {.kl_coef = 1,
                                   .kl_estimate = wanted.estimate,
                                   .current = tensor(t.current.data(), {4}),
                                   .proximal = tensor(t.proximal.data(), {4}),
                                   .advantage = tensor(t.advantage.data(), {4}),
                                   .weight = tensor(t.weight.data(), {4}),
                                   .reference = tensor(t.reference.data(), {4}),
                                   .dlog_prob = tensor(dlog_prob.data(), {4}),
                                   .stats = &stats});
      EXPECT_NEAR(stats.loss, stats.reference_kl, 1e-6);
      return joined({dlog_prob, {static_cast<float>(stats.reference_kl)}});
    });
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(found[i], wanted.gradients[i], 1e-4) << "token " << i;
    EXPECT_NEAR(found[4], wanted.sum, 1e-4);
  }
}

TEST(PolicyLoss, AtRatioOneTheGradientIsMinusTheAdvantage) {
  for (const LossMode mode : {LossMode::kVanilla, LossMode::kGspo, LossMode::kCispo}) {
    Tokens t = make_tokens(2);
    t.current = t.proximal;
    const Outcome outcome =
        run(cpu_backend(), Stream{}, t, [mode](PolicyLoss& op) { op.mode = mode; });
    EXPECT_EQ(outcome.stats.clipped, 0);
    EXPECT_EQ(outcome.stats.approx_kl_k3, 0);
    EXPECT_EQ(outcome.stats.ratio_max, 1);
    for (std::size_t i = 0; i < kTokens; ++i) {
      if (t.weight[i] == 0) continue;
      EXPECT_EQ(outcome.dlog_prob[i], t.weight[i] * -t.advantage[i]);
    }
  }
}

TEST(PolicyLoss, CispoKeepsTheGradientOfClippedTokens) {
  const Tokens t = make_tokens(3);
  const Floats both = same_everywhere([&](const Backend& backend, const Stream& stream) {
    const Outcome o = run(backend, stream, t, [](PolicyLoss& op) { op.mode = LossMode::kCispo; });
    return joined({o.dlog_prob, {static_cast<float>(o.stats.clipped)}});
  });
  double clipped = 0;
  for (std::size_t i = 0; i < kTokens; ++i) {
    if (t.weight[i] == 0) continue;
    const double ratio = std::exp(static_cast<double>(t.current[i] - t.proximal[i]));
    const double bounded = std::min(std::max(ratio, 0.8), 1.28);
    clipped += ratio != bounded;
    EXPECT_NEAR(both[i], -bounded * t.advantage[i] * t.weight[i], 1e-6);
  }
  EXPECT_GT(clipped, 0);
  EXPECT_EQ(both.back(), clipped);
}

TEST(PolicyLoss, GspoGradientMatchesFiniteDifferencesOfTheSequenceRatio) {
  Tokens t = make_tokens(4);
  // One advantage per sequence, as GSPO has it; small drifts, so that the mean ratio is not
  // clipped.
  for (std::size_t i = 0; i < kTokens; ++i) {
    if (t.weight[i] == 0) continue;
    t.advantage[i] = i < 20 ? 1.0f : i < 21 ? -0.5f : -2.0f;
    t.current[i] = t.proximal[i] + 0.2f * (t.current[i] - t.proximal[i]);
  }
  expect_loss_gradient(t, [](PolicyLoss& op) { op.mode = LossMode::kGspo; });
}

TEST(PolicyLoss, EntropyBonusAndItsGradient) {
  const Tokens t = make_tokens(5);
  const Outcome outcome = run(cpu_backend(), Stream{}, t, [&](PolicyLoss& op) {
    op.entropy = tensor(t.entropy.data(), {kTokens});
    op.entropy_coef = 0.5f;
  });
  const Outcome without = run(cpu_backend(), Stream{}, t, [](PolicyLoss&) {});
  double sum = 0;
  for (std::size_t i = 0; i < kTokens; ++i) {
    if (t.weight[i] != 0) sum += t.entropy[i];
    EXPECT_EQ(outcome.dentropy[i], -t.weight[i] * 0.5f);
  }
  EXPECT_NEAR(outcome.stats.entropy, sum, 1e-5);
  EXPECT_NEAR(outcome.stats.loss, without.stats.loss - 0.5 * sum / 36, 1e-5);
}

TEST(ImportanceWeights, AreTruncatedPerTokenOrSequence) {
  Tokens t = make_tokens(6);
  for (const ImportanceLevel level : {ImportanceLevel::kToken, ImportanceLevel::kSequence}) {
    const Floats weights = same_everywhere([&](const Backend& backend, const Stream& stream) {
      Floats out = poison(kTokens);
      backend.importance_weights(stream, {.level = level,
                                          .threshold = 1.1f,
                                          .proximal = tensor(t.current.data(), {kTokens}),
                                          .behaviour = tensor(t.proximal.data(), {kTokens}),
                                          .weight = tensor(t.weight.data(), {kTokens}),
                                          .sequence_begin = tensor(t.begin.data(), {4}),
                                          .importance = tensor(out.data(), {kTokens})});
      return out;
    });
    for (std::size_t s = 0; s < 3; ++s) {
      double sum = 0;
      for (auto i = static_cast<std::size_t>(t.begin[s]);
           i < static_cast<std::size_t>(t.begin[s + 1]); ++i) {
        if (t.weight[i] != 0) sum += static_cast<double>(t.current[i] - t.proximal[i]);
      }
      for (auto i = static_cast<std::size_t>(t.begin[s]);
           i < static_cast<std::size_t>(t.begin[s + 1]); ++i) {
        const double own = static_cast<double>(t.current[i] - t.proximal[i]);
        const double expected =
            std::min(1.1, std::exp(level == ImportanceLevel::kToken ? own : sum));
        EXPECT_NEAR(weights[i], t.weight[i] == 0 ? 1.0 : expected, 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
