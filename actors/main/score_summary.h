// What a reward would pay for a set of completions, as figures: counts, mean, standard deviation,
// the least and the greatest reward, a histogram, and the reasons of failures; of all completions
// and of each data source. Its memory does not grow with the number of completions. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "actors/messages/reward.h"

namespace tandem::app {

inline constexpr std::size_t kSourcesShownMax = 100;  // further ones are counted as "others"
inline constexpr std::size_t kReasonsKept = 50;       // further ones are counted as "others"
inline constexpr std::size_t kValuesExact = 1000;     // distinct rewards that are kept as they are
inline constexpr std::size_t kHistogramBins = 10;     // of more than kHistogramBins values

// The rewards of some completions. Mean and standard deviation are those of the completions that
// have a score; the latter divides by their number, as numpy.std does.
class RewardFigures {
 public:
  void scored(double reward);
  void failed() { ++failed_; }

  // {count, scored, failed, mean, std, min, max, histogram}; the latter is a list of {from, to,
  // count}, a bin for each value where there are few of them. Figures of no score are null.
  nlohmann::json json() const;

 private:
  std::int64_t scored_ = 0, failed_ = 0;
  double mean_ = 0, squares_ = 0;  // Welford's sums
  double least_ = 0, greatest_ = 0;
  // Where there are more than kValuesExact values, these are rounded to two significant digits.
  std::map<double, std::int64_t> values_;
  bool rounded_ = false;
};

class ScoreSummary {
 public:
  // A completion without a data source has an empty `source`.
  void add(const std::string& source, const messages::TrajectoryScore& score);
  void skipped() { ++skipped_; }  // a record that has no completion to score
  std::int64_t failures() const { return failures_; }
  std::int64_t count() const { return count_; }

  // {…the figures of all…, skipped, sources: {NAME: figures}, failures: {REASON: count}}.
  nlohmann::json json() const;
  // The same as text for people, at most `width` columns wide.
  std::string text(int width) const;

 private:
  RewardFigures all_;
  std::map<std::string, RewardFigures> sources_;
  std::map<std::string, std::int64_t> reasons_;
  std::int64_t count_ = 0, failures_ = 0, skipped_ = 0;
};

}  // namespace tandem::app
