// The values that keys of a job file choose from, and how these are spelt in YAML. The order of
// enumerators matters: value_names() lists spellings in it, and role_config.cc casts several of
// these enums to those of the learner, the kernels and the scheduler, which have the same order.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem::cli {

// model.init: weights read from safetensors, or drawn from the seed.
enum class ModelInit { kPretrained, kRandom };
// model.dtype. Sums, logits, gradients and the weights that AdamW updates are float32 with both.
enum class ModelDtype { kFloat32, kBfloat16 };
// data.chat_template. Behind kAuto, which means "by the model's own template", the values are in
// the order of actors::ChatTemplate.
enum class ChatName { kAuto, kSmolLm2, kQwen25, kQwen3, kQwen3Instruct, kLlama3, kLlama31 };
enum class WarmStartMetric { kSampleAccuracy };
enum class EngineName { kNative };
// reward.type: how a completion is judged (actors/reward/verifier.h).
enum class RewardType { kExact, kMath, kRegex, kCommand };
// learner.resume_mode: whether --resume may continue the run.
enum class ResumeMode { kAuto, kDisable };
enum class LrScheduler { kConstant, kLinear, kCosine };
// The choices of `algorithm`.
enum class AdvEstimator { kGrpo, kDrGrpo, kRloo, kReinforcePlusPlus };
enum class LossMode { kVanilla, kGspo, kCispo };
enum class LossAggMode { kTokenMean, kSeqMeanTokenSum, kSeqMeanTokenMean, kSeqMeanTokenSumNorm };
enum class RolloutIs { kToken, kSequence };
enum class KlPenalty { kKl, kAbs, kMse, kLowVarKl };
// The choices of `async`: earliest deadline first or a fixed lag; and the fate of keys and values
// of running sequences when weights change.
enum class Schedule { kBudget, kFixedLag };
enum class KvOnUpdate { kKeep, kRecompute };
// weight_broadcast.type and pools.*.strategy.
enum class BroadcastType { kAuto, kShm, kDisk, kCudaIpc, kTcp, kNccl };
enum class PoolStrategy { kPack, kSpread };

// The YAML spellings, in enumerator order: value_names(ModelInit{}) is {"pretrained", "random"}.
using Names = std::span<const std::string_view>;
std::string join(Names names);  // "a, b, c"
Names value_names(ModelInit);
Names value_names(ModelDtype);
Names value_names(ChatName);
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

// The YAML spelling of one value: "fixed_lag".
template <class Enum>
std::string_view spelling(Enum value) {
  return value_names(value)[static_cast<std::size_t>(value)];
}

}  // namespace tandem::cli
