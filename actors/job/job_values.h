// The values that keys of a job file choose from, and how these are spelt in YAML. Each enum is
// declared once, with its names, by the part of the system that it configures
// (runtime/base/enum_names.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "actors/learner/learner_config.h"
#include "actors/model/model_directory.h"
#include "actors/reward/code_choices.h"
#include "actors/reward/math_answer.h"
#include "actors/reward/python_program.h"
#include "actors/reward/verifier_type.h"
#include "actors/rollout/engine_config.h"
#include "actors/rollout/engine_name.h"
#include "kernels/ops/policy_loss.h"
#include "runtime/base/enum_names.h"
#include "runtime/sandbox/profile.h"
#include "runtime/weights/weights_type.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::job {

// Values that only the job file has.
//
// model.dtype. Sums, logits, gradients and the weights that AdamW updates are float32 with both.
enum class ModelDtype { kFloat32, kBfloat16 };
constexpr auto enum_names(ModelDtype) {
  using enum ModelDtype;
  return enum_name_rows<ModelDtype>({{kFloat32, "float32"}, {kBfloat16, "bfloat16"}});
}
// data.prompt_is: whether a text is the prompt itself, or the message of a user, of which a chat
// template makes the prompt. A list of messages is a conversation with both.
enum class PromptIs { kText, kChat };
constexpr auto enum_names(PromptIs) {
  using enum PromptIs;
  return enum_name_rows<PromptIs>({{kText, "text"}, {kChat, "chat"}});
}
// async.schedule: earliest deadline first, or a fixed lag.
enum class Schedule { kBudget, kFixedLag };
constexpr auto enum_names(Schedule) {
  using enum Schedule;
  return enum_name_rows<Schedule>({{kBudget, "budget"}, {kFixedLag, "fixed_lag"}});
}

// learner.keep_best_mode: which value of learner.keep_best is the best one.
enum class KeepBestMode { kMax, kMin };
constexpr auto enum_names(KeepBestMode) {
  using enum KeepBestMode;
  return enum_name_rows<KeepBestMode>({{kMax, "max"}, {kMin, "min"}});
}

// trackers: which programs get files of their own beside metrics.jsonl.
enum class TrackerName { kTensorboard, kWandb };
constexpr auto enum_names(TrackerName) {
  using enum TrackerName;
  return enum_name_rows<TrackerName>({{kTensorboard, "tensorboard"}, {kWandb, "wandb"}});
}

// rollout.dtype: what a server of an engine computes in.
enum class EngineDtype { kFloat32, kBfloat16, kFloat16 };
constexpr auto enum_names(EngineDtype) {
  using enum EngineDtype;
  return enum_name_rows<EngineDtype>(
      {{kFloat32, "float32"}, {kBfloat16, "bfloat16"}, {kFloat16, "float16"}});
}

// load_format: what a server of an engine has before the first version of the weights comes.
enum class LoadFormat { kDummy, kAuto };
constexpr auto enum_names(LoadFormat) {
  using enum LoadFormat;
  return enum_name_rows<LoadFormat>({{kDummy, "dummy"}, {kAuto, "auto"}});
}

// record: what a run keeps of its training besides checkpoints.
enum class Recording { kNone, kReplay };
constexpr auto enum_names(Recording) {
  using enum Recording;
  return enum_name_rows<Recording>({{kNone, "none"}, {kReplay, "replay"}});
}

// Values of the model, the learner, the engine, the reward and the scheduler, under the names of
// their keys.
using learner::KlPenalty;
using learner::ResumeMode;       // a job file does not take kPath
using learner::WarmStartMetric;  // nor kLoss
using rollout::EngineName;
using rollout::KvOnUpdate;
using rollout::Truncation;
using rollout::WeightTransfer;
using AdvEstimator = learner::AdvantageEstimator;
using BroadcastDelta = weights::DeltaUse;
using BroadcastType = weights::WeightsType;
using LossAggMode = learner::LossAggregation;
using LossMode = kernels::LossMode;
using LrScheduler = learner::LrSchedule;
using ModelInit = model::InitMode;
using reward::CodeLanguage;
using reward::CodeScore;
using reward::PercentReading;
using reward::PythonSignature;
using PoolStrategy = scheduler::Strategy;
using RewardType = reward::VerifierType;
using sandbox::SandboxMode;
using RolloutIs = kernels::ImportanceLevel;

using Names = std::span<const std::string_view>;
std::string join(Names names);  // "a, b, c"

// A word that is a name, or the path of a file: one with a slash, or with the end ".jinja". A path
// is absolute once the job is read.
struct NameOrPath {
  std::string text;
  bool operator==(const NameOrPath&) const = default;
};
bool is_path(const NameOrPath& word);

}  // namespace tandem::job
