// Which payloads belong to groups. A rollout speaks of each payload once, after it was stored; a
// reference to one that a group has already, or that nobody stored, is not the speaker's to give,
// and frees nothing.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "actors/exchange/run_record.h"

namespace tandem::actors {

class HeldPayloads {
 public:
  explicit HeldPayloads(PayloadShelf& shelf) : shelf_(shelf) {}  // borrowed

  // It was stored, was not released, and no group has it.
  bool free(const runtime::PayloadRef& payload) const {
    return !held_.contains(place(payload)) && shelf_.holds(payload);
  }
  void hold(const runtime::PayloadRef& payload) { held_.insert(place(payload)); }
  void release(const runtime::PayloadRef& payload) {
    held_.erase(place(payload));
    shelf_.release(payload);
  }
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
