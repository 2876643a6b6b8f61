// A publisher of weights that keeps the versions' checksums, and whose disk may refuse.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"
#include "runtime/weights/weight_ends.h"

namespace tandem::learner {

class MapPublisher final : public weights::WeightPublisher {
 public:
  MapPublisher(std::map<PolicyVersion, std::uint64_t>* versions, std::vector<PolicyVersion>* order,
               const int* os_error)
      : versions_(versions), order_(order), os_error_(os_error) {}
  Result<weights::PublishStats> publish(PolicyVersion version, std::span<const std::byte> arena,
                                        Duration) override {
    if (*os_error_ != 0) return file_error("write file", "weights/staging/arena.bin", *os_error_);
    const std::uint64_t checksum = checksum64(arena);
    (*versions_)[version] = checksum;
    order_->push_back(version);
    weights::PublishStats stats{.bytes = arena.size(), .checksum = checksum};
    if (version.value >= 0)  // the untrained weights come before any group has formed
      stats.broadcast = {.epoch = 5, .sequence = static_cast<std::uint64_t>(version.value) + 1};
    return stats;
  }
  void retain(PolicyVersion oldest) override {
    std::erase_if(*versions_, [&](const auto& entry) { return entry.first < oldest; });
  }
  void forget_after(PolicyVersion last) override {
    std::erase_if(*versions_, [&](const auto& entry) { return entry.first > last; });
  }
  std::vector<PolicyVersion> offered() override {
    std::vector<PolicyVersion> all;
    for (const auto& [version, checksum] : *versions_) all.push_back(version);
    return all;
  }

 private:
  std::map<PolicyVersion, std::uint64_t>* versions_;
  std::vector<PolicyVersion>* order_;
  const int* os_error_;
};

}  // namespace tandem::learner
