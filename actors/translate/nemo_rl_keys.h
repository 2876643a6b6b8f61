// The tables of NeMo-RL's dialect: its keys, and its own values of those that are left out. What
// takes several keys is computed in nemo_rl.cc.
#pragma once

#include <span>
#include <string_view>

#include "actors/translate/dialect.h"

namespace tandem::translate {

std::span<const Rule> nemo_rl_rules();
std::span<const ForeignDefault> nemo_rl_defaults();
std::span<const std::string_view> nemo_rl_marks();
std::span<const std::string_view> nemo_rl_programs();

// Sentences of findings, by rules and by what is computed.
inline constexpr std::string_view kNemoRlSameDecay = "the weight decay stays the same";
inline constexpr std::string_view kNemoRlPromptFile =
    "the text of this file is put around each problem: write it into the data, or into "
    "`data.system_prompt`";
inline constexpr std::string_view kNemoRlEnvironments =
    "environments other than `math` have no counterpart: write the reward as a function "
    "(`reward.type: python`)";

}  // namespace tandem::translate
