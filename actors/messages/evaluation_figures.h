// What an evaluation came to: plain numbers, which evaluation_means.h computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tandem::actors {

struct PassAt {  // pass@k: the probability that of k samples of a prompt one at least succeeds
  std::int32_t k = 1;
  double value = 0;
  bool operator==(const PassAt&) const = default;
};

struct RewardFigures {
  std::optional<double> mean;    // none: nothing was scored
  std::optional<double> greedy;  // the mean of the greedy completions beside the sampled ones
  std::vector<PassAt> pass;      // ascending in k; without those of which no prompt tells anything
  std::int64_t scored = 0, failed = 0;  // completions, the greedy ones beside included
  bool operator==(const RewardFigures&) const = default;
};

struct EvaluationFigures {
  RewardFigures all;
  std::vector<std::pair<std::string, RewardFigures>> sources;  // by name, ascending
  bool operator==(const EvaluationFigures&) const = default;
};

}  // namespace tandem::actors
