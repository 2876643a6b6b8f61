// Steps of several updates against PyTorch (scripts/make_update_goldens.py makes the numbers): the
// figures that each case reports, and how far its weights move.
//
// Tests actors/learner/native_trainer.h, actors/learner/rejection.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>

#include "actors/learner/rejection.h"
#include "actors/model/safetensors.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "tests/actors/learner/learner_builder.h"
#include "tests/actors/model/tiny_model.h"

namespace tandem::learner {
namespace {

// PyTorch's numbers are f64. The tolerance of a figure is relative to the figure, that of the
// movement to the movement's norm.
constexpr double kFigureTolerance = 1e-4;
constexpr double kMovementTolerance = 1e-3;

std::filesystem::path golden_path(const std::string& file) {
  return model::testing::golden_folder() / "updates" / file;
}

nlohmann::json golden_json(const std::string& file) {
  const auto text = read_file(golden_path(file));
  CHECK(text.has_value());
  return parse_json(*text);
}

TrainBatch batch_of(const nlohmann::json& groups, StepId step) {
  TrainBatch batch{step, {}};
  for (const nlohmann::json& g : groups) {
    BatchGroup group{GroupId{batch.groups.size()}, g["prompt"], {}};
    for (const nlohmann::json& t : g["trajectories"])
      group.trajectories.push_back(
          {t["tokens"], t["logprobs"], PolicyVersion{step.value}, t["reward"], t["truncated"]});
    batch.groups.push_back(std::move(group));
  }
  return batch;
}

template <class T>
T named(const nlohmann::json& name) {
  const std::optional<T> value = spelt<T>(name.get<std::string>());
  CHECK(value.has_value());
  return *value;
}

std::optional<double> optional_number(const nlohmann::json& number) {
  if (number.is_null()) return {};
  return number.get<double>();
}

// `own` has `rs`, criteria with their upper thresholds, `rs_lower` of the first one, and `veto`.
void set_rejection(AlgorithmConfig& a, const nlohmann::json& own) {
  for (const nlohmann::json& criterion : own["rs"]) {
    if (a.rollout_rs) {
      a.rollout_rs_also[criterion[0]] = criterion[1];
      continue;
    }
    a.rollout_rs = named<RejectionForm>(criterion[0]);
    a.rollout_rs_threshold = criterion[1];
  }
  a.rollout_rs_threshold_lower = optional_number(own["rs_lower"]);
  a.rollout_token_veto_threshold = optional_number(own["veto"]);
}

AlgorithmConfig algorithm_of(const nlohmann::json& shared, const nlohmann::json& own) {
  AlgorithmConfig a;
  a.adv_estimator = named<AdvantageEstimator>(own["estimator"]);
  a.loss_mode = named<kernels::LossMode>(own["loss_mode"]);
  a.loss_agg_mode = named<LossAggregation>(own["aggregation"]);
  a.kl_penalty = named<KlPenalty>(own["kl_penalty"]);
  a.kl_loss_type = named<KlPenalty>(own["kl_loss_type"]);
  if (!own["scale"].is_null()) a.scale_rewards = named<ScaleRewards>(own["scale"]);
  a.advantage_batch_normalize = own["batch_normalize"];
  a.advantage_clip = optional_number(own["advantage_clip"]);
  a.overlong_buffer = {.len = own["overlong_len"], .penalty_factor = own["overlong_factor"]};
  a.clip_ratio_low = own["clip_low"];
  a.clip_ratio_high = own["clip_high"];
  a.clip_ratio_c = optional_number(own["clip_dual"]);
  a.bypass_mode = own["bypass"];
  if (!own["rollout_is"].is_null())
    a.rollout_is = named<kernels::ImportanceLevel>(own["rollout_is"]);
  a.rollout_is_batch_normalize = own["is_batch_normalize"];
  set_rejection(a, own);
  a.rollout_is_threshold = shared["rollout_is_threshold"];
  a.entropy_coeff = own["entropy_coeff"];
  a.kl_loss_coef = own["kl_loss_coef"];
  a.use_kl_loss = a.kl_loss_coef > 0;
  a.kl_ctrl.kl_coef = own["kl_in_reward_coef"];
  a.use_kl_in_reward = a.kl_ctrl.kl_coef > 0;
  a.mask_truncated_completions = own["mask_truncated"];
  return a;
}

BatchShape shape_of(const nlohmann::json& shared) {
  return {.mini_batch_groups = shared["mini_batch_groups"],
          .epochs = shared["epochs"],
          .response_length_max = shared["response_length_max"],
          .temperature = shared["temperature"]};
}

Result<model::Model> golden_model(const std::string& name) {
  const auto folder = model::testing::scratch_folder("updates");
  std::filesystem::copy(model::testing::golden_folder() / name, folder,
                        std::filesystem::copy_options::recursive);
  model::testing::write_text(folder / "tokenizer.json",
                             model::testing::character_tokenizer("0123456789"));
  return model::load_model(folder, {.init = model::InitMode::kPretrained});
}

void expect_figures(const messages::StepReport& report, const nlohmann::json& wanted) {
  const std::map<std::string, std::optional<double>> ours{
      {"loss", report.loss},
      {"grad_norm", report.grad_norm},
      {"entropy", report.entropy},
      {"ppo_kl", report.ppo_kl},
      {"pg_clipfrac", report.pg_clipfrac},
      {"ratio_max", report.ratio_max},
      {"pg_clipfrac_lower", report.pg_clipfrac_lower},
      {"kl_loss", report.kl_loss},
      {"reward_kl_penalty", report.reward_kl_penalty},
      {"rollout_is_mean", report.rollout_is_mean},
      {"rollout_is_eff_sample_size", report.rollout_is_eff_sample_size},
      {"rollout_is_batch_norm_factor", report.rollout_is_batch_norm_factor},
      {"rollout_rs_masked_fraction", report.rollout_rs_masked_fraction},
      {"rollout_rs_seq_masked_fraction", report.rollout_rs_seq_masked_fraction},
      {"rollout_is_veto_fraction", report.rollout_is_veto_fraction},
      {"rollout_is_catastrophic_token_fraction", report.rollout_is_catastrophic_token_fraction}};
  for (const auto& [name, figure] : ours) {
    EXPECT_EQ(figure.has_value(), wanted.contains(name)) << name;
    if (!figure || !wanted.contains(name)) continue;
    const double value = wanted[name];
    EXPECT_NEAR(*figure, value, kFigureTolerance * std::max(std::abs(value), 0.1)) << name;
  }
}

// The largest share of a parameter's movement by which ours differs from the golden one.
void expect_movement(const device::Manifest& manifest, std::span<const float> moved,
                     const std::filesystem::path& file) {
  const auto golden = model::SafetensorsFile::open(file);
  ASSERT_TRUE(golden);
  double squares = 0, errors = 0;
  for (const device::ParameterSpec& tensor : manifest.parameters) {
    std::vector<float> wanted(tensor.bytes / sizeof(float));
    ASSERT_TRUE(golden->read(tensor.name, wanted)) << tensor.name;
    const float* own = moved.data() + tensor.offset_bytes / sizeof(float);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double error = static_cast<double>(own[i]) - static_cast<double>(wanted[i]);
      squares += static_cast<double>(wanted[i]) * static_cast<double>(wanted[i]);
      errors += error * error;
    }
  }
  EXPECT_GT(squares, 0);
  EXPECT_LT(std::sqrt(errors / squares), kMovementTolerance);
}

// Every criterion of rollout_rs on the same completions, some of whose policies are far apart.
TEST(RejectionGolden, TakesTheTokensThatPyTorchTakes) {
  const nlohmann::json golden = golden_json("rejection.json");
  std::vector<float> policy, behaviour;
  std::vector<std::int32_t> begin{0};
  for (std::size_t s = 0; s < golden["policy"].size(); ++s) {
    for (const float p : golden["policy"][s]) policy.push_back(p);
    for (const float b : golden["behaviour"][s]) behaviour.push_back(b);
    begin.push_back(static_cast<std::int32_t>(policy.size()));
  }
  const std::vector<float> weight(policy.size(), 0.5f);
  for (const nlohmann::json& one : golden["cases"]) {
    AlgorithmConfig config;
    set_rejection(config, one);
    std::vector<float> importance(policy.size(), 1);
    const Rejected rejected =
        reject(rejection_criteria(config), config.rollout_token_veto_threshold,
               {policy, behaviour, weight, begin}, importance);
    const std::string what = one["rs"].dump() + one["rs_lower"].dump() + one["veto"].dump();
    std::size_t t = 0;
    for (const nlohmann::json& own : one["taken"])
      for (const bool taken : own) {
        EXPECT_EQ(importance[t], taken ? 1 : 0) << what << " token " << t;
        ++t;
      }
    EXPECT_EQ(t, policy.size());
    EXPECT_EQ(rejected.tokens, one["tokens"]) << what;
    EXPECT_EQ(rejected.sequences, one["sequences"]) << what;
    EXPECT_EQ(rejected.catastrophic, one["catastrophic"]) << what;
    EXPECT_EQ(rejected.vetoed, one["vetoed"]) << what;
    EXPECT_EQ(rejected.sequences_seen, golden["policy"].size());
  }
}

class Updates : public ::testing::TestWithParam<const char*> {};

TEST_P(Updates, AreThoseOfPyTorch_NT5) {
  const nlohmann::json shared = golden_json("batch.json");
  const nlohmann::json own = golden_json(std::string(GetParam()) + ".json");
  Result<model::Model> model = golden_model(shared["model"]);
  ASSERT_TRUE(model) << render(model.error());
  TrainerConfig config = testing::trainer_config(model::testing::scratch_folder("run"));
  const nlohmann::json& options = shared["options"];
  config.algorithm = algorithm_of(options, own["options"]);
  config.batch = shape_of(options);
  config.optimizer = {.lr = options["lr"],
                      .lr_scheduler_type = LrSchedule::kConstant,
                      .lr_warmup_steps = 0,
                      .betas = {options["beta1"], options["beta2"]},
                      .eps = options["eps"],
                      .grad_clip = options["grad_clip"]};
  const std::vector<float> start(model->weights.f32().begin(), model->weights.f32().end());
  const device::Manifest manifest = model->weights.manifest();
  const auto trainer = NativeTrainer::make({.config = config,
                                            .model = *std::move(model),
                                            .records = {},
                                            .gang = nullptr,
                                            .shards = nullptr,
                                            .buckets = {},
                                            .threads = nullptr,
                                            .beat = nullptr});
  ASSERT_TRUE(trainer) << render(trainer.error());
  messages::StepReport report;
  for (std::int64_t step = 0; step < options["steps"].get<std::int64_t>(); ++step) {
    const auto trained = (*trainer)->train(batch_of(shared["groups"], StepId{step}));
    ASSERT_TRUE(trained) << render(trained.error());
    report = trained->report;
  }
  expect_figures(report, own["report"]);
  const std::span<const std::byte> bytes = (*trainer)->weights();
  ASSERT_EQ(bytes.size(), start.size() * sizeof(float));
  std::vector<float> moved(start.size());
  std::memcpy(moved.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= start[i];
  expect_movement(manifest, moved, golden_path(std::string(GetParam()) + ".safetensors"));
}

INSTANTIATE_TEST_SUITE_P(Cases, Updates,
                         ::testing::Values("vanilla", "vanilla_bypass_dual", "gspo", "cispo",
                                           "decoupled_kl_entropy", "kl_in_reward",
                                           "kl_in_group_reward", "dr_grpo", "rloo", "rloo_scaled",
                                           "scale_batch", "reinforce_baseline",
                                           "normalized_and_clipped", "overlong", "kl_loss_mse",
                                           "kl_loss_abs", "is_normalized", "is_normalized_sequence",
                                           "reject_ratio", "reject_bypass", "reject_combined"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tandem::learner
