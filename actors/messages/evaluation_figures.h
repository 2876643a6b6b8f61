// The results of an evaluation as plain numbers. evaluation_means.h in actors/exchange computes
// them and defines them exactly; messages, reports and `tandem eval` carry them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/wire/fields.h"

namespace tandem::messages {

// A figure of k samples of a prompt.
struct FigureAt {
  std::int32_t k = 1;
  double value = 0;
  bool operator==(const FigureAt&) const = default;
};
TANDEM_WIRE(FigureAt, k, value)

// Rewards over one set of prompts. Every prompt weighs the same, however many of its completions
// have a score.
struct RewardFigures {
  // The mean reward of the sampled completions. Empty when nothing was scored.
  std::optional<double> mean;
  // The mean reward of the greedy completions. Empty when the evaluation made none beside the
  // sampled ones.
  std::optional<double> greedy;
  // pass@k: the probability that at least one of k samples of a prompt succeeds, estimated from the
  // sampled completions. Ascending in k. A k for which no prompt has k scored samples is left out.
  std::vector<FigureAt> pass;
  // Numbers of completions, sampled and greedy together. A failed completion is in no mean.
  std::int64_t scored = 0, failed = 0;
  // The standard error of `mean` over prompts. Empty with fewer than two prompts.
  std::optional<double> standard_error = {};
  // The mean reward of the answer that most of k samples give; ascending in k. Empty where the
  // reward finds no answers.
  std::vector<FigureAt> majority = {};
  // The mean if each failed sample had the reward that the job gives to failures, 0 where it
  // discards them. Empty where none failed.
  std::optional<double> mean_with_failures = {};
  // The means of the numbers in objects `extra` of the reward, by name, over the samples that have
  // them. There are at most kExtraKeysMax.
  std::map<std::string, double> extra = {};
  bool operator==(const RewardFigures&) const = default;
};
TANDEM_WIRE(RewardFigures, mean, greedy, pass, scored, failed, standard_error, majority,
            mean_with_failures, extra)

struct EvaluationFigures {
  RewardFigures all;  // over every prompt
  // The figures of each data source of the prompts, by name, ascending. Empty when prompts name no
  // source.
  std::vector<std::pair<std::string, RewardFigures>> sources;
  bool operator==(const EvaluationFigures&) const = default;
};

}  // namespace tandem::messages
