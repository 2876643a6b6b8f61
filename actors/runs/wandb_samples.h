// Lines of samples.jsonl as tables of wandb. Each table has a limit of rows and of characters in a
// cell, so that what waits for its step stays small.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::runs {

inline constexpr std::size_t kTableRowsMax = 256;
inline constexpr std::size_t kTrainingRowsMax = 64;  // the newest
inline constexpr std::size_t kCellBytesMax = 8192;

// {"columns": […], "data": [[…], …]} with a row per sample.
class SampleTable {
 public:
  static constexpr std::size_t kColumns = 7;  // step, prompt, completion, reward, …

  void add(const nlohmann::json& sample, std::size_t rows_max);  // the oldest row makes room
  std::size_t rows() const { return rows_.size(); }
  std::string text() const;  // as JSON
  void clear() { rows_.clear(); }

 private:
  std::vector<nlohmann::json> rows_;
};

// Samples that wait for the record of their evaluation.
class WandbSamples {
 public:
  void add(std::string_view sample_line);
  // The samples of the evaluation of this version, which are given up, and older ones with them.
  SampleTable take_evaluation(std::int64_t version);
  SampleTable& training() { return training_; }

 private:
  static constexpr std::size_t kEvaluationsMax = 4;  // that run at a time

  std::map<std::int64_t, SampleTable> evaluations_;  // by version
  SampleTable training_;
};

}  // namespace tandem::runs
