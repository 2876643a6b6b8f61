// Which payloads belong to groups. A rollout speaks of each payload once, after it was stored; a
// reference to one that a group has already is not the speaker's to give, and frees nothing. Pure:
// whether a payload is stored, and its bytes, are the payload store's (run_record.h).
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "runtime/wire/payload_ref.h"

namespace tandem::exchange {

class HeldPayloads {
 public:
  bool contains(const wire::PayloadRef& payload) const { return held_.contains(place(payload)); }
  void hold(const wire::PayloadRef& payload) { held_.insert(place(payload)); }
  void forget(const wire::PayloadRef& payload) { held_.erase(place(payload)); }

 private:
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // segment and offset
  static Place place(const wire::PayloadRef& payload) { return {payload.segment, payload.offset}; }

  std::set<Place> held_;
};

}  // namespace tandem::exchange
