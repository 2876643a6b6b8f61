// Which deltas a server offers, and which of them lead from one version to another. Internal to
// runtime/weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "runtime/weights/delta.h"

namespace tandem::weights {

inline constexpr std::size_t kDeltasMax = 64;  // of one server

struct DeltaOffer {
  DeltaName name;
  std::uint64_t bytes = 0;
};
TANDEM_WIRE(DeltaOffer, name, bytes)

// The deltas that give `to` when they are applied to `from`, one after the other; empty where there
// are none, or where together they are not smaller than `bytes_end`.
std::vector<DeltaOffer> changes_between(std::span<const DeltaOffer> offered, WeightOffer from,
                                        WeightOffer to, std::uint64_t bytes_end);

// Keeps the newest deltas, of at most `bytes_max` bytes together.
class DeltaLog {
 public:
  explicit DeltaLog(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void add(Delta delta);
  std::shared_ptr<const Delta> find(const DeltaName& name) const;  // null: not kept
  std::vector<DeltaOffer> offers() const;

 private:
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::deque<std::shared_ptr<const Delta>> kept_;  // the oldest first
};

}  // namespace tandem::weights
