// The figures of an evaluation as text. `figures` is {mean, scored, failed, greedy, pass@k ...}
// and, under `sources`, the same for each data set; figures that are missing are not shown. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// The text beside a mean: "  pass@8 0.930  greedy 0.800", with the greatest k alone.
std::string evaluation_beside(const nlohmann::json& figures);
// The same as " (pass@8 0.930, greedy 0.800)"; empty where there is neither.
std::string evaluation_in_brackets(const nlohmann::json& figures);
// The same as " eval_pass@8=0.930 eval_greedy=0.800".
std::string evaluation_pairs(const nlohmann::json& figures);
// "gsm8k 0.812, math 0.400 over 97 of 100, 3 failed"; empty without sources.
std::string means_of_sources(const nlohmann::json& figures);
// The text beside a mean that leaves completions out: " over 97 of 100, 3 failed"; empty where none
// failed. With `scored` 0 the run did not count them, and only the failures are shown.
std::string left_out(const nlohmann::json& scored, const nlohmann::json& failed);

// The answer of `tandem eval`, which has `prompts` and `failure` as well: every figure, and a table
// of the sources. Empty where nothing was scored; the caller then reports the failure.
std::string render_evaluation(const nlohmann::json& answer, int width);

}  // namespace tandem::cli
