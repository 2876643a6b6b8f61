// Strong ids: a number with a type of its own, so that two ids of different meaning never compare
// or convert. JSON and tables print `.value`. Ids that only one folder uses are declared there.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace tandem {

// `Tag` is an incomplete type whose only use is to make two kinds of ids different types. The
// default value is 0.
template <class Tag, class Value = std::uint64_t>
struct Id {
  Value value = 0;
  auto operator<=>(const Id&) const = default;
};

using GroupId = Id<struct GroupTag>;              // one prompt and its n trajectories, within a job
using StepId = Id<struct StepTag, std::int64_t>;  // step s trains at version s and produces s+1
// One start of an actor, by a number that is never used again; 0 stands for no start, or for any.
using Incarnation = Id<struct IncarnationTag>;
// One incarnation of an actor, or of a process that speaks for it. Names are "controller",
// "exchange/arith-1", "arith-1/rollout/0", "node/vm". As a destination incarnation 0 stands for the
// one that is running, whichever that is.
struct ActorId {
  std::string name;
  Incarnation incarnation;
  auto operator<=>(const ActorId&) const = default;
};
inline std::string to_string(const ActorId& id) {  // "arith-1/rollout/0#3"
  return id.name + "#" + std::to_string(id.incarnation.value);
}
// One start of the controller of a TANDEM_HOME; grows with each start.
using Epoch = Id<struct EpochTag>;

// How many training steps have been committed since the warm start. The only negative version,
// kInitialWeights, names the weights before the warm start; they exist to be evaluated.
using PolicyVersion = Id<struct PolicyVersionTag, std::int64_t>;
inline constexpr PolicyVersion kInitialWeights{-1};

}  // namespace tandem

template <class Tag, class Value>
struct std::hash<tandem::Id<Tag, Value>> {
  std::size_t operator()(const tandem::Id<Tag, Value>& id) const {
    return std::hash<Value>{}(id.value);
  }
};
