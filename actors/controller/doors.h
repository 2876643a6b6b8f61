// Which messages of which peers are taken (runtime/net/remote.h: Door). A door sees one message and
// who sent it, and no state: that the sender speaks for itself, and that every number is one that
// some honest sender could mean. Whether it fits what the exchange or the controller knows is
// theirs to say; what they refuse ends the peer in the same way (ExchangeLinks::refuse).
//
//   DR-1  A message that names an actor, an incarnation or a rank comes from the link of that very
//         rank, and a node speaks only of ranks that were not started elsewhere.
//   DR-2  What passes has no negative count, no version below kInitialWeights, no step that
//         arithmetic on it could overflow, and no number that is not finite where one is summed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actors/messages/broadcast.h"
#include "actors/messages/learner.h"
#include "actors/messages/rank.h"
#include "actors/messages/reward.h"
#include "actors/messages/rollout.h"
#include "runtime/net/link.h"
#include "runtime/net/remote.h"
#include "runtime/node/agent_messages.h"

namespace tandem::actors {

inline constexpr std::int64_t kStepsMax = std::int64_t{1} << 40;  // of a run

// The ports of a job's exchange.
runtime::Door<RolloutEvents> rollout_door(std::string job);
runtime::Door<RewardEvents> reward_door(std::string job);
runtime::Door<LearnerEvents> learner_door(std::string job);
runtime::Door<BroadcastEvents> broadcast_door(std::string job);

// The ports of the controller.
runtime::Door<RankEvents> rank_door();
// The node on which a rank was started; nothing for ranks that are not known (any more).
using NodeOf = std::function<std::optional<std::string>(const runtime::RankId&)>;
runtime::Door<runtime::AgentEvents> agent_door(NodeOf node_of);

// Whom the controller expects: the ranks that it had started, by their link's name, and any node.
// Plain state; its owner guards it.
class Roster {
 public:
  void started(const std::string& node, const runtime::RankId& rank);  // before it can dial
  void forget(const std::string& job);                                 // all of its ranks are gone
  void has_agent(std::string own_node);  // its agent lives beside the controller and dials nobody
  // kInvalid: a name that was not started or another incarnation of it, and a hello whose actor and
  // rank are not those of its name.
  Result<void> admit(const runtime::Hello& hello) const;
  std::optional<std::string> node_of(const runtime::RankId& rank) const;

 private:
  struct Rank {
    Incarnation incarnation;
    std::string node;
  };
  std::map<std::string, Rank> ranks_;  // by link name
  std::string own_node_;
};

}  // namespace tandem::actors
