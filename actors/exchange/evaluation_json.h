// The figures of an evaluation as JSON: {mean, stderr, scored, failed, greedy, pass@k, maj@k …},
// under `extra` the means of the numbers that the reward sends beside its scores, and under
// `sources` the same for each data set. This form is used in result.json, the HTTP API
// and `tandem eval`; add_metrics() writes the figures as keys of metrics.jsonl.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "actors/messages/evaluation_figures.h"

namespace tandem::exchange {

// How evaluations are compared.
struct BestBy {
  std::string key;     // of their records in metrics.jsonl; empty: none is the best
  bool least = false;  // the least value is the best, not the greatest
};

nlohmann::json figures_json(const messages::EvaluationFigures& figures);
// True if there is more than a mean and its counts: pass@k, a greedy mean or sources.
bool has_more_than_mean(const messages::EvaluationFigures& figures);

// Sets `val/reward/mean` …, and `val/SOURCE/reward/mean` … of each source.
void add_metrics(nlohmann::json& line, const messages::EvaluationFigures& figures);

// The figure of a key that add_metrics() sets; nullopt where the evaluation has none.
std::optional<double> figure_of(const messages::EvaluationFigures& figures, const std::string& key);

}  // namespace tandem::exchange
