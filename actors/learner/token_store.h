// One float for each completion token of a batch, kept and found by micro-batches.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/learner/packing.h"
#include "actors/learner/train_batch.h"

namespace tandem::actors {

class TokenStore {
 public:
  // Forgets all values and makes room for those of another batch.
  void reset(const TrainBatch& batch);

  // `values` [M] are of the items of the micro-batch.
  void put(const MicroBatch& micro, std::span<const float> values);
  // Those of the micro-batch's items, all of which were put.
  void get(const MicroBatch& micro, std::span<float> values) const;

  bool empty() const { return !filled_; }
  // Of trajectory i of the batch; empty: nothing was put.
  std::span<const float> of(std::size_t trajectory) const;
  // Where its first token lies among those of all trajectories.
  std::size_t begin_of(std::size_t trajectory) const { return begin_[trajectory]; }
  std::size_t tokens() const { return values_.size(); }

 private:
  std::vector<std::size_t> begin_;  // [trajectories + 1]
  std::vector<bool> held_;          // [trajectories]
  std::vector<float> values_;       // [sum T]
  bool filled_ = false;
};

}  // namespace tandem::actors
