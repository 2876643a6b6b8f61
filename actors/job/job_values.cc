#include "actors/job/job_values.h"

#include <array>

namespace tandem::job {
namespace {

// A list of names with static storage, since value_names() returns a view of it. The order is that
// of the enumerators: spelling() and EnumField index these lists by the enumerator.
template <class... Texts>
consteval auto list(Texts... texts) {
  return std::array<std::string_view, sizeof...(Texts)>{texts...};
}

constexpr auto kModelInit = list("pretrained", "random");
constexpr auto kModelDtype = list("float32", "bfloat16");
constexpr auto kChatTemplate =
    list("auto", "smollm2", "qwen2.5", "qwen3", "qwen3-instruct", "llama3", "llama3.1");
constexpr auto kWarmStartMetric = list("sample_accuracy");
constexpr auto kEngineName = list("native");
constexpr auto kRewardType = list("exact", "math", "regex", "command");
constexpr auto kResumeMode = list("auto", "disable");
constexpr auto kLrScheduler = list("constant", "linear", "cosine");
constexpr auto kAdvEstimator = list("grpo", "dr_grpo", "rloo", "reinforce_plus_plus");
constexpr auto kLossMode = list("vanilla", "gspo", "cispo");
constexpr auto kLossAggMode =
    list("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm");
constexpr auto kRolloutIs = list("token", "sequence");
constexpr auto kKlPenalty = list("kl", "abs", "mse", "low_var_kl", "k1", "k2", "k3");
constexpr auto kSchedule = list("budget", "fixed_lag");
constexpr auto kKvOnUpdate = list("keep", "recompute");
constexpr auto kBroadcastType = list("auto", "shm", "disk", "cuda_ipc", "tcp", "nccl");
constexpr auto kPoolStrategy = list("pack", "spread");

}  // namespace

std::string join(Names names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// Overloads by the type of the argument, whose value is not looked at.
Names value_names(ModelInit) { return kModelInit; }
Names value_names(ModelDtype) { return kModelDtype; }
Names value_names(WarmStartMetric) { return kWarmStartMetric; }
Names value_names(EngineName) { return kEngineName; }
Names value_names(RewardType) { return kRewardType; }
Names value_names(ResumeMode) { return kResumeMode; }
Names value_names(LrScheduler) { return kLrScheduler; }
Names value_names(AdvEstimator) { return kAdvEstimator; }
Names value_names(LossMode) { return kLossMode; }
Names value_names(LossAggMode) { return kLossAggMode; }
Names value_names(RolloutIs) { return kRolloutIs; }
Names value_names(KlPenalty) { return kKlPenalty; }
Names value_names(Schedule) { return kSchedule; }
Names value_names(KvOnUpdate) { return kKvOnUpdate; }
Names value_names(BroadcastType) { return kBroadcastType; }
Names value_names(PoolStrategy) { return kPoolStrategy; }

Names chat_template_names() { return kChatTemplate; }

}  // namespace tandem::job
