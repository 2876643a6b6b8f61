// Published versions without weights, for simulated fleets: a board that the simulated learner
// writes to, and subscribers that copy the checksum of a version and take a number of progress()
// calls for it. All of them run on one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "runtime/weights/weight_ends.h"

namespace tandem::rollout {

// The versions that the simulated learner offers, shared by all subscribers of a fleet.
class FakeWeightBoard {
 public:
  // Adds `version` and removes all versions below `oldest_retained`.
  void publish(PolicyVersion version, PolicyVersion oldest_retained, std::uint64_t checksum);
  // From now on copies of `version` end damaged, until it is published again.
  void damage(PolicyVersion version) { damaged_.insert(version); }
  bool is_damaged(PolicyVersion version) const { return damaged_.contains(version); }
  // Removes the versions above `last`, as a learner does that restarts from an older checkpoint.
  void forget_after(PolicyVersion last);
  bool holds(PolicyVersion version) const { return versions_.contains(version); }
  std::uint64_t checksum_of(PolicyVersion version) const { return versions_.at(version); }
  std::optional<PolicyVersion> newest() const;

 private:
  std::map<PolicyVersion, std::uint64_t> versions_;  // the checksum of each version
  std::set<PolicyVersion> damaged_;
};

// Reads one board. begin() fails with kNotFound for a version that the board does not hold.
class FakeWeightSubscriber : public weights::WeightSubscriber {
 public:
  // `progress_calls` (at least 1): the number of progress() calls that a copy takes.
  FakeWeightSubscriber(std::shared_ptr<const FakeWeightBoard> board, int progress_calls);

  Result<std::optional<PolicyVersion>> newest() override { return board_->newest(); }
  bool available(PolicyVersion version) override { return board_->holds(version); }
  Result<void> begin(PolicyVersion version, std::span<std::byte> buffer) override;
  Result<weights::UpdateProgress> progress(std::uint64_t bytes_max) override;
  void cancel() override { copying_.reset(); }
  std::optional<Installed> installed() const override { return installed_; }
  std::uint64_t publisher_life() override { return board_->newest() ? 1 : 0; }

 private:
  const std::shared_ptr<const FakeWeightBoard> board_;
  const int progress_calls_;
  std::optional<Installed> copying_;
  int calls_left_ = 0;
  std::optional<Installed> installed_;
};

}  // namespace tandem::rollout
