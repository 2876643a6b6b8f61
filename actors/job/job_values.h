// The values that keys of a job file choose from, and how these are spelt in YAML. Each enum is
// declared once, by the part of the system that it configures; value_names() lists its spellings in
// the order of its enumerators.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "actors/learner/learner_config.h"
#include "actors/reward/verifier_type.h"
#include "actors/rollout/engine_config.h"
#include "kernels/ops/policy_loss.h"
#include "runtime/weights/weights_type.h"
#include "scheduler/fleet/placement_input.h"

namespace tandem::job {

// Values that only the job file has.
//
// model.init: weights read from safetensors, or drawn from the seed.
enum class ModelInit { kPretrained, kRandom };
// model.dtype. Sums, logits, gradients and the weights that AdamW updates are float32 with both.
enum class ModelDtype { kFloat32, kBfloat16 };
enum class EngineName { kNative };
// async.schedule: earliest deadline first, or a fixed lag.
enum class Schedule { kBudget, kFixedLag };

// Values of the learner, the engine, the reward and the scheduler, under the names of their keys.
using actors::KlPenalty;
using actors::KvOnUpdate;
using actors::ResumeMode;       // a job file does not take kPath
using actors::WarmStartMetric;  // nor kLoss
using AdvEstimator = actors::AdvantageEstimator;
using BroadcastType = weights::WeightsType;
using LossAggMode = actors::LossAggregation;
using LossMode = kernels::LossMode;
using LrScheduler = actors::LrSchedule;
using PoolStrategy = scheduler::Strategy;
using RewardType = actors::VerifierType;
using RolloutIs = kernels::ImportanceLevel;

// The YAML spellings, in enumerator order: value_names(ModelInit{}) is {"pretrained", "random"}.
using Names = std::span<const std::string_view>;
std::string join(Names names);  // "a, b, c"
Names value_names(ModelInit);
Names value_names(ModelDtype);
Names value_names(WarmStartMetric);
Names value_names(EngineName);
Names value_names(RewardType);
Names value_names(ResumeMode);
Names value_names(LrScheduler);
Names value_names(AdvEstimator);
Names value_names(LossMode);
Names value_names(LossAggMode);
Names value_names(RolloutIs);
Names value_names(KlPenalty);
Names value_names(Schedule);
Names value_names(KvOnUpdate);
Names value_names(BroadcastType);
Names value_names(PoolStrategy);
// Of data.chat_template: "auto", the model's own template, and then actors::ChatTemplate.
Names chat_template_names();

// The YAML spelling of one value: "fixed_lag".
template <class Enum>
std::string_view spelling(Enum value) {
  return value_names(value)[static_cast<std::size_t>(value)];
}

}  // namespace tandem::job
