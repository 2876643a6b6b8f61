// The data of the supervised warm start: decides which records train, which are held out, and in
// which order batches come.
//
// Invariants
//   WS-1  A held-out record's prompt is never trained on: equal prompts fall on the same side.
//   WS-2  The same records and seed give the same batches in the same order, for any rank count.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/learner/learner_config.h"
#include "actors/learner/packing.h"

namespace tandem::learner {

struct WarmStartRecord {
  std::vector<std::int32_t> prompt;      // >= 1 token
  std::vector<std::int32_t> completion;  // >= 1 token, the end-of-sequence token included
};

// AdamW's configuration for the warm start.
OptimizerConfig warm_start_optimizer(const WarmStartConfig& config);

inline constexpr std::size_t kHeldOutEvaluatedMax = 512;  // records per measurement

// Rank `rank`'s share of a batch: every ranks-th record, each a group of one completion. The groups
// are views of the records.
std::vector<PromptGroup> groups_of_rank(std::span<const WarmStartRecord* const> records, int rank,
                                        int ranks);

class WarmStartData {
 public:
  // About a tenth of `records` (at least one of two or more) is held out.
  WarmStartData(std::vector<WarmStartRecord> records, std::uint64_t seed);
  WarmStartData(const WarmStartData&) = delete;
  WarmStartData& operator=(const WarmStartData&) = delete;

  // The records of batch `index`, from 0. Each epoch is shuffled anew, and a batch may span two
  // epochs. Calls with ascending indices are cheap.
  std::vector<const WarmStartRecord*> batch(std::int64_t index, std::int64_t batch_size);

  // The records to measure on: at most kHeldOutEvaluatedMax. Where all records have one prompt,
  // nothing can be held out, and these are training records.
  std::span<const WarmStartRecord* const> held_out() const { return held_out_; }
  std::size_t train_size() const { return train_.size(); }

 private:
  void shuffle_for(std::int64_t epoch);

  std::vector<WarmStartRecord> records_;
  std::uint64_t seed_;
  std::vector<const WarmStartRecord*> train_;
  std::vector<const WarmStartRecord*> held_out_;
  std::int64_t epoch_ = -1;
  std::vector<const WarmStartRecord*> order_;  // train_ as epoch_ shuffles it
};

}  // namespace tandem::learner
