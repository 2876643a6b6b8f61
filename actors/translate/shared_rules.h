// Parts of rules that several dialects have: the sentences about keys without a counterpart, and
// conversions of values. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "actors/translate/dialect.h"

namespace tandem::translate {

inline constexpr std::string_view kLayout =
    "how models are laid out on GPUs and machines, and how memory is used";
inline constexpr std::string_view kLogs = "what is logged, and where files are written or sent";
inline constexpr std::string_view kEngine =
    "Tandem's own engine generates, unless `rollout.name` says vllm or sglang";
inline constexpr std::string_view kMicro =
    "micro-batches: a rank packs sequences into passes of at most `learner.max_token_len` tokens";
inline constexpr std::string_view kAdamW = "AdamW is the only optimizer";
inline constexpr std::string_view kNotKnown = "not known here; nothing was made of it";
inline constexpr std::string_view kAdapters =
    "adapters (LoRA) and quantised weights are not in this version: all parameters are trained";
inline constexpr std::string_view kTurns =
    "agents, turns and tools are not in this version: a prompt has one completion";
inline constexpr std::string_view kRewardModel =
    "reward models are not in this version: the reward would have to be a function or a server";

// Where a framework writes "none" or "no limit" as a negative number.
Converted negative_is_zero(const nlohmann::json& value);
Converted unless_negative(const nlohmann::json& value);  // negative: the key is left out
// The names of the two types that models compute in.
Converted dtype(const nlohmann::json& value);

}  // namespace tandem::translate
