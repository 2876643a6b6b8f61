// One float for each completion token of a batch. Values are put and read by micro-batch, whose
// items may come in any order; the store has them in batch order. A rank puts only the trajectories
// of its own share.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "actors/learner/packing.h"
#include "actors/learner/train_batch.h"

namespace tandem::learner {

class TokenStore {
 public:
  // Forgets all values and makes room for those of another batch.
  void reset(const TrainBatch& batch);

  // `values` [M] are of the items of the micro-batch.
  void put(const MicroBatch& micro, std::span<const float> values);
  // Reads the values of the micro-batch's items. CHECKs that all of them were put.
  void get(const MicroBatch& micro, std::span<float> values) const;

  bool empty() const { return !filled_; }  // no put() since reset()
  // The values [T_i] of trajectory i of the batch. Empty: none were put.
  std::span<const float> of(std::size_t trajectory) const;
  // The place of the trajectory's first token among the tokens of all trajectories.
  std::size_t begin_of(std::size_t trajectory) const { return begin_[trajectory]; }
  std::size_t tokens() const { return values_.size(); }

 private:
  std::vector<std::size_t> begin_;  // [trajectories + 1]
  std::vector<bool> held_;          // [trajectories]
  std::vector<float> values_;       // [sum T]
  bool filled_ = false;
};

}  // namespace tandem::learner
