// The values that keys of a job file choose from, and how they are spelt there.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tandem::cli {

enum class ModelInit { kPretrained, kRandom };
enum class ModelDtype { kFloat32, kBfloat16 };
enum class ChatName { kAuto, kSmolLm2, kQwen25, kQwen3, kQwen3Instruct, kLlama3, kLlama31 };
enum class WarmStartMetric { kSampleAccuracy };
enum class EngineName { kNative };
enum class RewardType { kExact, kMath, kRegex, kCommand };
enum class ResumeMode { kAuto, kDisable };
enum class LrScheduler { kConstant, kLinear, kCosine };
enum class AdvEstimator { kGrpo, kDrGrpo, kRloo, kReinforcePlusPlus };
enum class LossMode { kVanilla, kGspo, kCispo };
enum class LossAggMode { kTokenMean, kSeqMeanTokenSum, kSeqMeanTokenMean, kSeqMeanTokenSumNorm };
enum class RolloutIs { kToken, kSequence };
enum class KlPenalty { kKl, kAbs, kMse, kLowVarKl };
enum class Schedule { kBudget, kFixedLag };
enum class KvOnUpdate { kKeep, kRecompute };
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

template <class Enum>
std::string_view spelling(Enum value) {
  return value_names(value)[static_cast<std::size_t>(value)];
}

}  // namespace tandem::cli
