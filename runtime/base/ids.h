// Strong ids: two of different meaning never compare or convert. JSON and tables print `.value`.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace tandem {

template <class Tag, class Value = std::uint64_t>
struct Id {
  Value value = 0;
  auto operator<=>(const Id&) const = default;
};

using GroupId = Id<struct GroupTag>;              // one prompt and its n trajectories, within a job
using StepId = Id<struct StepTag, std::int64_t>;  // step s trains at version s and produces s+1
using Incarnation = Id<struct IncarnationTag>;    // which life of an actor; never reused, 0 = none
using Epoch = Id<struct EpochTag>;                // which life of a controller

// Committed training steps since the warm start. kInitialWeights, the only negative one, names the
// weights before the warm start, which exist so that they can be evaluated.
using PolicyVersion = Id<struct PolicyVersionTag, std::int64_t>;
inline constexpr PolicyVersion kInitialWeights{-1};

}  // namespace tandem

template <class Tag, class Value>
struct std::hash<tandem::Id<Tag, Value>> {
  std::size_t operator()(const tandem::Id<Tag, Value>& id) const {
    return std::hash<Value>{}(id.value);
  }
};
