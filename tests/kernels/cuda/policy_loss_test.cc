// Every mode of the policy loss gives the CPU's bits on a GPU.
#include "kernels/ops/policy_loss.h"

#include <cmath>

#include "tests/kernels/cuda/cuda_operands.h"

namespace tandem::kernels {
namespace {

using device::tensor;

using CudaPolicyLoss = CudaTest;

// Sequences of all lengths, one of them empty, one all masked; every fifth token is masked and
// holds NaN, which no kernel may read.
struct Tokens {
  Floats current, proximal, advantage, weight, importance, reference, entropy;
  std::vector<std::int32_t> begin;

  std::int64_t count() const { return std::ssize(current); }
};

Tokens make_tokens(std::vector<std::int32_t> begin) {
  Rng rng(begin.size());
  Tokens t;
  const std::int64_t count = begin.back();
  t.begin = std::move(begin);
  t.proximal = normals(rng, count);
  t.current = t.reference = t.proximal;
  const Floats drift = normals(rng, count, 0.3f), more = normals(rng, count, 0.3f);
  t.advantage = normals(rng, count);
  t.importance = normals(rng, count);
  t.entropy = normals(rng, count);
  t.weight = Floats(static_cast<std::size_t>(count), 1.0f / 36);
  for (std::int64_t i = 0; i < count; ++i) {
    t.current[i] += i % 7 == 3 ? 100 * drift[i] : drift[i];  // some beyond kLogRatioMax
    t.reference[i] += more[i];
    t.importance[i] = std::abs(t.importance[i]);
    if (i % 5 != 4 && i > 1) continue;
    t.weight[i] = 0;
    for (Floats* values : {&t.current, &t.proximal, &t.advantage, &t.importance, &t.reference}) {
      (*values)[i] = NAN;
    }
  }
  return t;
}

std::vector<Tokens> batches() {
  std::vector<Tokens> all;
  all.push_back(make_tokens({0}));
  all.push_back(make_tokens({0, 2, 2, 20, 21, 45}));
  all.push_back(make_tokens({0, 2, 35, 67, 400, 655}));
  return all;
}

// Everything that an operator can read, on the GPU.
struct OnDevice {
  OnDevice(const Stream& gpu, const Tokens& t)
      : current(gpu, DType::kF32, {t.count()}, t.current),
        proximal(gpu, DType::kF32, {t.count()}, t.proximal),
        advantage(gpu, DType::kF32, {t.count()}, t.advantage),
        weight(gpu, DType::kF32, {t.count()}, t.weight),
        importance(gpu, DType::kF32, {t.count()}, t.importance),
        reference(gpu, DType::kF32, {t.count()}, t.reference),
        entropy(gpu, DType::kF32, {t.count()}, t.entropy),
        begin(gpu, {std::ssize(t.begin)}, t.begin) {}

  Operand current, proximal, advantage, weight, importance, reference, entropy, begin;
};

struct Outcome {
  Floats dlog_prob, dentropy;
  PolicyLossStats stats;
};

PolicyLossStats earlier() { return {.loss = 0.5, .tokens = 3, .entropy = -1, .ratio_max = 1.25}; }

Outcome on_cpu(PolicyLoss op, const Tokens& t, bool all) {
  const auto of = [&](const Floats& values) { return tensor(values.data(), {t.count()}); };
  Outcome outcome{poison(t.count()), poison(t.count()), earlier()};
  op.current = of(t.current);
  op.proximal = of(t.proximal);
  op.advantage = of(t.advantage);
  op.weight = of(t.weight);
  op.sequence_begin = tensor(t.begin.data(), {std::ssize(t.begin)});
  op.dlog_prob = of(outcome.dlog_prob);
  op.dentropy = of(outcome.dentropy);
  op.stats = &outcome.stats;
  if (all) {
    op.importance = of(t.importance);
    op.reference = of(t.reference);
    op.entropy = of(t.entropy);
  }
  policy_loss(Stream{}, op);
  return outcome;
}

Outcome on_gpu(const Stream& gpu, PolicyLoss op, const Tokens& t, bool all) {
  const OnDevice device(gpu, t);
  const Operand dlog_prob = Operand::poisoned(gpu, DType::kF32, {t.count()});
  const Operand dentropy = Operand::poisoned(gpu, DType::kF32, {t.count()});
  const OnGpu<PolicyLossStats> stats(gpu, {earlier()});
  op.current = device.current;
  op.proximal = device.proximal;
  op.advantage = device.advantage;
  op.weight = device.weight;
  op.sequence_begin = device.begin;
  op.dlog_prob = dlog_prob;
  op.dentropy = dentropy;
  op.stats = stats.span().data();
  if (all) {
    op.importance = device.importance;
    op.reference = device.reference;
    op.entropy = device.entropy;
  }
  policy_loss(gpu, op);
  return {dlog_prob.values(), dentropy.values(), stats.values()[0]};
}

void expect_same(const PolicyLossStats& actual, const PolicyLossStats& expected) {
  EXPECT_EQ(actual.loss, expected.loss);
  EXPECT_EQ(actual.tokens, expected.tokens);
  EXPECT_EQ(actual.clipped, expected.clipped);
  EXPECT_EQ(actual.dual_clipped, expected.dual_clipped);
  EXPECT_EQ(actual.approx_kl_k1, expected.approx_kl_k1);
  EXPECT_EQ(actual.approx_kl_k3, expected.approx_kl_k3);
  EXPECT_EQ(actual.reference_kl, expected.reference_kl);
  EXPECT_EQ(actual.entropy, expected.entropy);
  EXPECT_EQ(actual.ratio_max, expected.ratio_max);
}

TEST_F(CudaPolicyLoss, EveryModeGivesTheCpusBits) {
  for (const Tokens& t : batches()) {
    for (const LossMode mode : {LossMode::kVanilla, LossMode::kGspo, LossMode::kCispo}) {
      for (const bool all : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << t.count() << " tokens, mode " << static_cast<int>(mode) << ", all " << all);
        PolicyLoss op{.mode = mode, .clip_high = 0.28f};
        if (all) {
          op.clip_dual = 1.2f;
          op.kl_coef = 0.3f;
          op.entropy_coef = 0.1f;
        }
        const Outcome expected = on_cpu(op, t, all), actual = on_gpu(gpu(), op, t, all);
        EXPECT_TRUE(same_bits(actual.dlog_prob, expected.dlog_prob));
        EXPECT_TRUE(same_bits(actual.dentropy, expected.dentropy));
        expect_same(actual.stats, expected.stats);
      }
    }
  }
}

TEST_F(CudaPolicyLoss, ImportanceWeightsGiveTheCpusBits) {
  for (const Tokens& t : batches()) {
    for (const ImportanceLevel level : {ImportanceLevel::kToken, ImportanceLevel::kSequence}) {
      const OnDevice device(gpu(), t);
      const Operand importance = Operand::poisoned(gpu(), DType::kF32, {t.count()});
      importance_weights(gpu(), {.level = level,
                                 .threshold = 1.5f,
                                 .proximal = device.proximal,
                                 .behaviour = device.current,
                                 .weight = device.weight,
                                 .sequence_begin = device.begin,
                                 .importance = importance});
      Floats expected = poison(t.count());
      importance_weights(Stream{}, {.level = level,
                                    .threshold = 1.5f,
                                    .proximal = tensor(t.proximal.data(), {t.count()}),
                                    .behaviour = tensor(t.current.data(), {t.count()}),
                                    .weight = tensor(t.weight.data(), {t.count()}),
                                    .sequence_begin = tensor(t.begin.data(), {std::ssize(t.begin)}),
                                    .importance = tensor(expected.data(), {t.count()})});
      EXPECT_TRUE(same_bits(importance.values(), expected)) << t.count() << " tokens";
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
