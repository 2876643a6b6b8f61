// An evaluation's figures as text. `figures` is {mean, scored, failed, greedy, pass@k …} and, under
// `sources`, the same for each data set; what is missing is not shown. Pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::cli {

// What stands beside a mean: "  pass@8 0.930  greedy 0.800", of the greatest k alone.
std::string evaluation_beside(const nlohmann::json& figures);
// The same as " (pass@8 0.930, greedy 0.800)"; empty where there is neither.
std::string evaluation_in_brackets(const nlohmann::json& figures);
// The same as " eval_pass@8=0.930 eval_greedy=0.800".
std::string evaluation_pairs(const nlohmann::json& figures);
// "gsm8k 0.812, math 0.400 over 97 of 100, 3 failed"; empty without sources.
std::string means_of_sources(const nlohmann::json& figures);
// Beside a mean that leaves completions out: " over 97 of 100, 3 failed". A mean over none is one
// whose run did not count them.
std::string left_out(const nlohmann::json& scored, const nlohmann::json& failed);

// The answer of `tandem eval`, which has `prompts` and `failure` as well: every figure, and a table
// of the sources. Empty where nothing was scored.
std::string render_evaluation(const nlohmann::json& answer, int width);

}  // namespace tandem::cli
