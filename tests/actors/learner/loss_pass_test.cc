// The gradient of the whole loss, through objective and decoder, against finite differences; and
// that cutting a batch differently does not change it.
#include "actors/learner/loss_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "actors/learner/rejection.h"
#include "actors/model/parameters.h"
#include "runtime/base/rng.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/learner/one_pass.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner {
namespace {

using model::testing::must;

// A model, a batch whose behaviour policy is near the model's, and the loss between them.
class Rig {
 public:
  explicit Rig(const TrainerConfig& config, double behaviour_noise = 0.15, double shift = 0,
               model::Family family = model::Family::kQwen3)
      : config_(config),
        model_(testing::learner_model(family)),
        weights(model::testing::random_weights(model_, 3)),
        gradients(must(device::Arena::allocate(weights.manifest(), "gradients"))),
        policy_(must(model::Weights::allocate(model_, model::WeightsUse::kTraining,
                                              device::DeviceKind::kCpu))),
        reference_(must(model::Weights::allocate(model_, model::WeightsUse::kInference,
                                                 device::DeviceKind::kCpu))),
        pass_(must(LossPass::make(model_, config, device::DeviceKind::kCpu, {}))),
        batch(testing::random_batch(11, StepId{4})) {
    reference_.install(stream_, model::testing::random_weights(model_, 4).bytes());
    set_behaviour(behaviour_noise, shift);
  }

  // Each trajectory's log-probabilities become the model's own plus `shift` plus noise.
  void set_behaviour(double noise, double shift) {
    Rng rng(77);
    install();
    const BatchAdvantages advantages = all_live();
    pass_.begin(batch, advantages);
    std::vector<TrainTrajectory*> all;
    for (BatchGroup& group : batch.groups)
      for (TrainTrajectory& trajectory : group.trajectories) all.push_back(&trajectory);
    for (const MicroBatch& micro : micro_batches(advantages)) {
      pass_.add(stream_, {policy_, reference()}, micro, gradients);
      for (std::size_t s = 0; s < micro.sequences.size(); ++s)
        for (std::int32_t m = micro.sequence_begin[s]; m < micro.sequence_begin[s + 1]; ++m)
          all[static_cast<std::size_t>(micro.sequences[s])]
              ->logprobs[static_cast<std::size_t>(m - micro.sequence_begin[s])] =
              static_cast<float>(
                  static_cast<double>(pass_.last_logprobs()[static_cast<std::size_t>(m)]) + shift +
                  noise * rng.normal());
    }
  }

  double loss() {  // and `gradients`
    install();
    std::fill(gradients.f32().begin(), gradients.f32().end(), 0.0f);
    const BatchAdvantages advantages = compute_advantages(config_.algorithm, config_.batch, batch);
    pass_.begin(batch, advantages);
    for (const MicroBatch& micro : micro_batches(advantages))
      pass_.add(stream_, {policy_, reference()}, micro, gradients);
    return pass_.objective().sums().loss;
  }

  const Objective& objective() const { return pass_.objective(); }

 private:
  // Under reinforce_plus_plus no group is left out.
  BatchAdvantages all_live() const {
    AlgorithmConfig algorithm = config_.algorithm;
    algorithm.adv_estimator = AdvantageEstimator::kReinforcePlusPlus;
    return compute_advantages(algorithm, config_.batch, batch);
  }
  std::vector<MicroBatch> micro_batches(const BatchAdvantages& advantages) const {
    return must(pack(share_of(batch, advantages.learns, 0, 1), config_.rows_max));
  }
  const model::Weights* reference() const {
    return config_.algorithm.use_kl_loss ? &reference_ : nullptr;
  }
  void install() { policy_.install(stream_, weights.bytes()); }

  const TrainerConfig config_;
  const model::ModelConfig model_;
  const device::Stream stream_{};

 public:
  device::Arena weights;
  device::Arena gradients;

 private:
  model::Weights policy_, reference_;
  LossPass pass_;

 public:
  TrainBatch batch;
};

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

double norm(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return std::sqrt(sum);
}

// Central differences along the gradient and along two random directions. f32 losses carry about
// 1e-6; a step of 2e-3 leaves 1e-3 of that and of curvature in the quotient.
void expect_gradient(Rig& rig, const std::string& what) {
  constexpr double kStep = 2e-3;
  rig.loss();
  const std::vector<float> gradient = copy(rig.gradients.f32());
  const double length = norm(gradient);
  ASSERT_GT(length, 1e-3) << what;
  const std::vector<float> origin = copy(rig.weights.f32());
  for (int direction = 0; direction < 3; ++direction) {
    Rng rng(static_cast<std::uint64_t>(direction));
    std::vector<double> d;
    double squares = 0, expected = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      // Padding gaps have no gradient and must stay zero.
      const double along = static_cast<double>(gradient[i]) / length;
      d.push_back(along == 0 ? 0 : direction == 0 ? along : along + 0.02 * rng.normal());
      squares += d.back() * d.back();
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
      d[i] /= std::sqrt(squares);
      expected += d[i] * static_cast<double>(gradient[i]);
    }
    const auto loss_at = [&](double step) {
      for (std::size_t i = 0; i < d.size(); ++i)
        rig.weights.f32()[i] = static_cast<float>(static_cast<double>(origin[i]) + step * d[i]);
      return rig.loss();
    };
    const double measured = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
    EXPECT_NEAR(measured, expected, 0.02 * length) << what << ", direction " << direction;
    std::copy(origin.begin(), origin.end(), rig.weights.f32().begin());
  }
}

TrainerConfig config_with(const AlgorithmConfig& algorithm) {
  TrainerConfig config = testing::trainer_config("unused");
  config.algorithm = algorithm;
  config.batch.response_length_max = 8;
  config.batch.temperature = 0.9f;
  return config;
}

TEST(LossPass, GradientOfTheClippedLoss) {
  Rig rig(config_with({}));
  expect_gradient(rig, "vanilla");
  EXPECT_GT(rig.objective().sums().clipped, 0) << "the clip has to take part";
}

// Biases, and positions that are turned more slowly, take part.
TEST(LossPass, GradientOfEveryFamily) {
  for (const model::Family family : {model::Family::kQwen2, model::Family::kLlama}) {
    Rig rig(config_with({}), 0.15, 0, family);
    expect_gradient(rig, architecture(family));
    const device::TensorView bias = optional_vectors(rig.gradients, model::LayerNames(0)).qkv_bias;
    EXPECT_EQ(bias.empty(), family == model::Family::kLlama);
    if (bias.empty()) continue;
    EXPECT_GT(norm({bias.f32(), static_cast<std::size_t>(bias.dim(0))}), 1e-3);
  }
}

TEST(LossPass, GradientWithDualClip) {
  Rig rig(config_with({.clip_ratio_c = 1.1}), 0.5);
  expect_gradient(rig, "dual clip");
}

TEST(LossPass, GradientOfGspo) {
  Rig rig(config_with({.loss_mode = kernels::LossMode::kGspo}));
  expect_gradient(rig, "gspo");
}

TEST(LossPass, GradientOfCispo) {
  // Far above the upper bound every ratio is the bound, a constant, as the formula takes it to be.
  Rig rig(config_with({.loss_mode = kernels::LossMode::kCispo}), 0.1, -3);
  expect_gradient(rig, "cispo");
}

TEST(LossPass, GradientWithEntropyAndReference) {
  Rig rig(config_with({.loss_agg_mode = LossAggregation::kSeqMeanTokenMean,
                       .entropy_coeff = 0.05,
                       .use_kl_loss = true,
                       .kl_loss_coef = 0.02}));
  expect_gradient(rig, "entropy and KL");
}

TEST(LossPass, GradientOfEveryEstimateOfKl) {
  for (const KlPenalty type :
       {KlPenalty::kKl, KlPenalty::kAbs, KlPenalty::kMse, KlPenalty::kLowVarKl}) {
    Rig rig(config_with({.use_kl_loss = true, .kl_loss_coef = 0.2, .kl_loss_type = type}));
    expect_gradient(rig, "estimate " + std::to_string(static_cast<int>(type)));
    EXPECT_NE(rig.objective().sums().reference_kl, 0);
  }
}

// Every clipped token is at one of the two bounds, or bounded by the dual clip.
TEST(LossPass, ClippedTokensAreCountedByTheSideOfTheClip) {
  Rig rig(config_with({.clip_ratio_c = 1.4}), 0.5);
  rig.loss();
  const ObjectiveSums& sums = rig.objective().sums();
  EXPECT_GT(sums.clipped_low, 0);
  EXPECT_GT(sums.dual_clipped, 0);
  EXPECT_GT(sums.clipped, sums.clipped_low + sums.dual_clipped) << "some are at the upper bound";
}

TEST(LossPass, TheProximalPolicyIsTheOneThatTheStepStartsWith) {
  // Without bypass the clip acts on ratio 1, and the result equals the one with bypass where the
  // behaviour policy is the model.
  Rig decoupled(config_with({.bypass_mode = false}));
  decoupled.loss();
  Rig on_policy(config_with({}), 0);
  on_policy.loss();
  EXPECT_EQ(copy(decoupled.gradients.f32()), copy(on_policy.gradients.f32()));
  EXPECT_EQ(decoupled.objective().sums().kl_k1, 0);
}

TEST(LossPass, ImportanceWeightsAreTruncated) {
  // Behaviour is e^-1 as likely as proximal: every weight is min(e, threshold).
  const auto gradient_with = [](std::optional<kernels::ImportanceLevel> level, double threshold) {
    Rig rig(
        config_with({.bypass_mode = false, .rollout_is = level, .rollout_is_threshold = threshold}),
        0, -1);
    rig.loss();
    return norm(rig.gradients.f32());
  };
  const double plain = gradient_with({}, 2);
  EXPECT_NEAR(gradient_with(kernels::ImportanceLevel::kToken, 2) / plain, 2, 1e-3);
  EXPECT_NEAR(gradient_with(kernels::ImportanceLevel::kToken, 9) / plain, std::exp(1), 1e-3);
  EXPECT_NEAR(gradient_with(kernels::ImportanceLevel::kSequence, 2) / plain, 2, 1e-3);
}

TEST(LossPass, MicroBatchesChangeNothingBeyondRounding) {
  const auto gradient_with = [](std::int64_t rows_max) {
    TrainerConfig config = config_with({.entropy_coeff = 0.01});
    config.rows_max = rows_max;
    Rig rig(config);
    rig.loss();
    return copy(rig.gradients.f32());
  };
  const std::vector<float> whole = gradient_with(512);
  EXPECT_EQ(whole, gradient_with(512)) << "the same packing gives the same bits";
  for (const std::int64_t rows_max : {60, 30, 14}) {
    const std::vector<float> cut = gradient_with(rows_max);
    std::vector<float> difference;
    for (std::size_t i = 0; i < whole.size(); ++i) difference.push_back(cut[i] - whole[i]);
    EXPECT_LT(norm(difference), 1e-5 * norm(whole)) << "rows_max " << rows_max;
  }
}

TEST(LossPass, AtEqualWeightsEveryDifferenceIsZero_NT2) {
  Rig rig(config_with({}), 0);
  rig.loss();
  EXPECT_GT(rig.objective().sums().tokens_at_staleness_0, 0);
  EXPECT_EQ(rig.objective().diff_max_at_staleness_0(), 0);
  EXPECT_EQ(rig.objective().sums().logprob_diff, 0);
  EXPECT_EQ(rig.objective().sums().kl_k1, 0);
  rig.weights.f32()[5] += 0.01f;
  rig.loss();
  EXPECT_NE(rig.objective().diff_max_at_staleness_0(), 0);
}

// The test runs on the CPU, for every family; a pass that computes the layers twice has the same
// bits.
TEST(LossPass, Bf16IsF32ToWithinItsRoundings) {
  constexpr auto kCpu = device::DeviceKind::kCpu;
  constexpr auto kProducts = kernels::Rows::kInvariant;
  const TrainBatch batch = testing::random_batch(11, StepId{4});
  for (const model::Family family : model::testing::kFamilies) {
    SCOPED_TRACE(architecture(family));
    const auto pass = [&](device::DType dtype, bool checkpointing) {
      return testing::pass_on(kCpu, batch, dtype, checkpointing, kProducts, family);
    };
    const testing::Pass f32 = pass(device::DType::kF32, false);
    const testing::Pass bf16 = pass(device::DType::kBF16, false);
    ASSERT_FALSE(f32.logprobs.empty());
    // Scores that no norm of q and k bounds are larger, and a rounding moves them further.
    const double allowed =
        (family == model::Family::kQwen3 ? 1 : 2) * testing::kBf16LogprobTolerance;
    EXPECT_LE(testing::furthest(bf16.logprobs, f32.logprobs), allowed);
    EXPECT_GT(testing::furthest(bf16.logprobs, f32.logprobs), 1e-4) << "was it computed in bf16?";
    EXPECT_LE(testing::relative_error(bf16.gradients, f32.gradients),
              testing::kBf16GradientTolerance);
    const testing::Pass again = pass(device::DType::kBF16, true);
    EXPECT_EQ(again.logprobs, bf16.logprobs);
    EXPECT_EQ(again.gradients, bf16.gradients);
  }
}

// Two sequences; ratios by token 2, 1/2 | 4, and one token that does not count.
TEST(Rejection, IsByTheTokensOrTheSequencesRatio) {
  const float l = std::log(2.0f);
  const std::vector<float> policy{-1, -1, -1, -1}, behaviour{-1 - l, -1 + l, -1 - 2 * l, 9};
  const std::vector<float> weight{1, 1, 1, 0};
  const std::vector<std::int32_t> begin{0, 2, 4};
  const auto rejected = [&](RejectionForm level, double upper, std::optional<double> lower = {}) {
    const AlgorithmConfig config{
        .rollout_rs = level, .rollout_rs_threshold = upper, .rollout_rs_threshold_lower = lower};
    std::vector<float> importance{0.5f, 1, 2, 1};
    const Rejected count =
        reject(rejection_criteria(config), {}, {policy, behaviour, weight, begin}, importance);
    EXPECT_EQ(importance[3], 1) << "it does not count";
    std::size_t zeros = 0;
    for (const float i : importance) zeros += i == 0 ? 1 : 0;
    EXPECT_EQ(zeros, count.tokens);
    EXPECT_EQ(count.sequences_seen, 2u);
    return std::vector<bool>{importance[0] == 0, importance[1] == 0, importance[2] == 0};
  };
  using enum RejectionForm;
  using Mask = std::vector<bool>;
  EXPECT_EQ(rejected(kToken, 2.1), (Mask{false, false, true}));
  EXPECT_EQ(rejected(kToken, 2.1, 0.6), (Mask{false, true, true})) << "a lower bound of its own";
  EXPECT_EQ(rejected(kToken, 1.5), (Mask{true, true, true})) << "the lower bound is 1 / 1.5";
  EXPECT_EQ(rejected(kSequence, 1.01), (Mask{false, false, true})) << "2 * 1/2 = 1";
  EXPECT_EQ(rejected(kSequence, 4.1), (Mask{false, false, false}));
  EXPECT_EQ(rejected(kGeometric, 3.9), (Mask{false, false, true})) << "the mean of one is 4";
}

// A log-probability that is no number is rejected by every form, and vetoes its completion.
TEST(Rejection, TakesNoNan) {
  const float nan = std::nanf("");
  const std::vector<float> policy{-1, nan, -1}, behaviour{-1, -1, -1}, weight{1, 1, 1};
  const std::vector<std::int32_t> begin{0, 2, 3};
  for (const auto& [form, name] : enum_names(RejectionForm{})) {
    const AlgorithmConfig config{.rollout_rs = form, .rollout_rs_threshold = 2};
    std::vector<float> importance{1, 1, 1};
    reject(rejection_criteria(config), {}, {policy, behaviour, weight, begin}, importance);
    const bool alone = name.starts_with("token");
    EXPECT_EQ(importance, (std::vector<float>{alone ? 1.f : 0.f, 0, 1})) << name;
  }
  std::vector<float> importance{1, 1, 1};
  const Rejected rejected = reject({}, 1e-4, {policy, behaviour, weight, begin}, importance);
  EXPECT_EQ(importance, (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(rejected.vetoed, 1u);
  EXPECT_EQ(rejected.tokens, 0u) << "the veto counts apart";
}

// The gradient of a loss of which every token is rejected is 0, of half of them about half; with
// bypass_mode the ratio is that of the current policy.
TEST(LossPass, RejectedTokensHaveNoPolicyGradient) {
  for (const bool bypass : {false, true}) {
    const auto pass = [&](double shift, AlgorithmConfig config) {
      config.bypass_mode = bypass;
      config.clip_ratio_high = 9;
      config.clip_ratio_c.reset();
      config.rollout_rs = RejectionForm::kToken;
      Rig rig(config_with(config), 0, shift);
      rig.loss();
      const ObjectiveSums& sums = rig.objective().sums();
      EXPECT_GT(sums.tokens, 0) << "rejected tokens stay in the denominators";
      return std::pair(norm(rig.gradients.f32()), sums.rejected / sums.tokens);
    };
    const auto [all, none_rejected] = pass(-0.5, {});
    EXPECT_GT(all, 0);
    EXPECT_EQ(none_rejected, 0);
    const auto [nothing, all_rejected] = pass(-1, {});
    EXPECT_EQ(nothing, 0);
    EXPECT_EQ(all_rejected, 1);
    EXPECT_GT(pass(-1, {.entropy_coeff = 0.1}).first, 0) << "entropy keeps its term";
  }
}

}  // namespace
}  // namespace tandem::learner
