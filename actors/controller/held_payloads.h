// Which payloads belong to groups. A rollout names each payload once, after it was stored. A
// reference to a payload that a group has already, or that was never stored, is a fault of the
// sender, and frees nothing: otherwise one rollout could release the payload of another one's
// group.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "actors/controller/run_record.h"

namespace tandem::actors {

// A set beside the payload store, which must outlive this object. One thread.
class HeldPayloads {
 public:
  explicit HeldPayloads(PayloadShelf& shelf) : shelf_(shelf) {}  // borrowed

  // True for a payload that was stored, was not released, and belongs to no group.
  bool free(const runtime::PayloadRef& payload) const {
    return !held_.contains(place(payload)) && shelf_.holds(payload);
  }
  // The payload belongs to a group from now on, until release() frees its bytes.
  void hold(const runtime::PayloadRef& payload) { held_.insert(place(payload)); }
  void release(const runtime::PayloadRef& payload) {
    held_.erase(place(payload));
    shelf_.release(payload);
  }
  // For the samples; see PayloadShelf::read().
  Result<std::string> read(const runtime::PayloadRef& payload) { return shelf_.read(payload); }

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // segment and offset
  static Place place(const runtime::PayloadRef& payload) {
    return {payload.segment, payload.offset};
  }

  PayloadShelf& shelf_;
  std::set<Place> held_;
};

}  // namespace tandem::actors
