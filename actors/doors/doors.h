// The doors: which messages of which peers are taken (runtime/link/remote.h: Door). A door sees one
// message and its sender, and no state. It checks that the sender speaks for itself, and that every
// number is one that some honest sender could mean. Whether a message fits the state of the
// exchange or the controller is for them to say; a message that they refuse ends the peer in the
// same way (ExchangeLinks::refuse).
//
//   DR-1  A message that names an actor, an incarnation or a rank comes from the link of that very
//         rank, and a node speaks only of ranks that were not started elsewhere.
//   DR-2  A message that passes has no negative count, no version below kInitialWeights, no step
//         that arithmetic on it could overflow, and no number that is not finite where one is
//         summed.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "actors/messages/rank.h"
#include "runtime/link/link.h"
#include "runtime/link/remote.h"
#include "runtime/node/agent_messages.h"

namespace tandem::doors {

// The ports of the controller.
link::Door<messages::RankEvents> rank_door();
// The node on which a rank was started; nullopt for a rank that is not known, or not any more.
using NodeOf = std::function<std::optional<std::string>(const node::RankId&)>;
link::Door<node::AgentEvents> agent_door(NodeOf node_of);

// The peers that the controller expects: the ranks that it has started, by the name of their link,
// and any node. Plain state; its owner guards it.
class Roster {
 public:
  void started(const std::string& node, const node::RankId& rank);  // call before it can dial
  void forget(const std::string& job);                              // when all its ranks are gone
  // Whether a peer that dials may come in. kInvalid: a rank that was not started, or another
  // incarnation of it, or a hello whose actor and rank are not those of its name.
  Result<void> admit(const link::Hello& hello) const;
  std::optional<std::string> node_of(const node::RankId& rank) const;

 private:
  struct Rank {
    Incarnation incarnation;
    std::string node;
  };
  std::map<std::string, Rank> ranks_;  // by link name
};

}  // namespace tandem::doors
